"""A report of a shipped softmax that Nsight Compute wrote on an H100 (`python benchmarks/gpu/run.py ncu`)."""

from __future__ import annotations

import gzip
from pathlib import Path

KERNEL = "softmax_float"


def written_to(folder: Path) -> Path:
    """The report as a file."""
    path = folder / "softmax.ncu-rep"
    path.write_bytes(gzip.decompress((Path(__file__).parent / "data/softmax_4096.ncu-rep.gz").read_bytes()))
    return path

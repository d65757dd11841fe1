"""Compare matrix products from packed weights (oneDNN) with torch's own, which call the BLAS library.

    python benchmarks/products.py

Both run interleaved, in random order, on fresh rows each time, with the code that artifacts ship. Writes
benchmarks/results/products.json at the end, and products.part after each product.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import torch  # noqa: E402
from _provenance import provenance  # noqa: E402
from _published import write_results  # noqa: E402

from agentforge.devices import detect, measure_roofline  # noqa: E402
from agentforge.referee.timing.statistics import log_ratios, speedup  # noqa: E402
from agentforge.stitch.runtime.products import Products, product  # noqa: E402

RESULTS = HERE / "results" / "products.json"
ROUNDS = 40
SHAPES = (
    (1, 4096, 4096), (16, 1024, 1024), (128, 512, 512), (768, 288, 288), (768, 288, 768), (768, 768, 288),
    (1024, 768, 768), (1024, 768, 3072), (1024, 3072, 768), (2048, 512, 256),
)  # fmt: skip
"""Rows, columns of the input, columns of the result."""


class _Counts(ModuleType):
    def count(self, name: str, times: int = 1) -> None:
        """No counting in this benchmark."""


def compare(rows: int, width: int, columns: int, peak: float) -> dict[str, Any]:
    """Times of one product, and their ratio with its interval."""
    weight = torch.nn.Parameter(torch.randn(columns, width))
    bias = torch.nn.Parameter(torch.randn(columns))
    packed = Products(_Counts("counts"))
    parties: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "torch": lambda x: product(x, weight, bias, False),
        "packed": lambda x: packed(x, weight, bias, False),
    }
    seconds: dict[str, list[float]] = {name: [] for name in parties}
    with torch.inference_mode():
        for _ in range(ROUNDS):
            x = torch.randn(rows, width)
            for name in random.sample(list(parties), len(parties)):
                parties[name](x)
                start = time.perf_counter()
                parties[name](x)
                seconds[name].append(time.perf_counter() - start)
    ratio = speedup([log_ratios(seconds["torch"], seconds["packed"])])
    operations = 2.0 * rows * width * columns
    return {
        "rows": rows, "width": width, "columns": columns, "speedup": ratio.model_dump(),
        **{f"{n}_ms": statistics.median(s) * 1e3 for n, s in seconds.items()},
        **{f"{n}_share_of_peak": operations / statistics.median(s) / peak for n, s in seconds.items()},
    }  # fmt: skip


def main() -> None:
    """Measure and write."""
    device = detect("cpu")
    torch.set_num_threads(device.threads)
    with tempfile.TemporaryDirectory() as cache:
        peak = measure_roofline(device, Path(cache)).peak_flops["float32"]
    found: list[dict[str, Any]] = []
    content = {"provenance": provenance(), "peak_flops": peak, "products": found}
    for shape in SHAPES:
        found.append(compare(*shape, peak))
        print(json.dumps(found[-1]), flush=True)
        write_results(RESULTS, content, whole=len(found) == len(SHAPES))


if __name__ == "__main__":
    main()

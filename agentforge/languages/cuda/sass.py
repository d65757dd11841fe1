"""Facts from the machine code of a cubin: tensor cores, width of loads and stores, local memory.

The code is disassembled by nvdisasm, from pip's `nvidia-cuda-nvdisasm`, a toolkit, or Triton's package.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import lru_cache
from pathlib import Path

from agentforge.schema import Metric

_TENSOR = re.compile(r"^(?:HMMA|IMMA|DMMA|BMMA|QMMA|OMMA|HGMMA|IGMMA|QGMMA|BGMMA|UTC\w*MMA)\b")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$.]+?),")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<name>[A-Z][\w.]*)")
_MEMORY = {"LDG": "global_load", "STG": "global_store", "LDS": "shared_load", "STS": "shared_store"}


@lru_cache(maxsize=1)
def disassembler() -> str | None:
    """Path of nvdisasm; None where it is not installed."""
    for entry in sys.path:
        packages = Path(entry or ".")
        for name in (
            *sorted(packages.glob("nvidia/cu*/bin/nvdisasm")),
            packages / "triton/backends/nvidia/bin/nvdisasm",
        ):
            if os.access(name, os.X_OK):
                return str(name)
    return shutil.which("nvdisasm") or shutil.which("/usr/local/cuda/bin/nvdisasm")


def _bits(name: str) -> int:
    for part in name.split(".")[1:]:
        if part in ("64", "128", "256"):
            return int(part)
        if part in ("U8", "S8"):
            return 8
        if part in ("U16", "S16"):
            return 16
    return 32


def parse_sass(text: str) -> tuple[Metric, ...]:
    """Metrics of each kernel in a disassembly: what its instructions are, not how often they run.

    `tensor_core_instructions`, `local_memory_instructions`, `instructions`, and for each of
    `global_load_bits`, `global_store_bits`, `shared_load_bits`, `shared_store_bits` the widest access of a
    thread, where there is one. Never raises.
    """
    kernels: dict[str, dict[str, float]] = {}
    facts: dict[str, float] | None = None
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            facts = kernels.setdefault(
                section[1],
                {"instructions": 0, "tensor_core_instructions": 0, "local_memory_instructions": 0},
            )
            continue
        match = _INSTRUCTION.match(line)
        if match is None or facts is None or match["name"].split(".")[0] == "NOP":
            continue
        _count(facts, match["name"])
    return tuple(
        Metric(
            name=name, value=value, unit="bit" if name.endswith("_bits") else "", source="sass", kernel=kernel
        )
        for kernel, found in kernels.items()
        for name, value in found.items()
    )


def _count(facts: dict[str, float], name: str) -> None:
    root = name.split(".")[0]
    facts["instructions"] += 1
    facts["tensor_core_instructions"] += bool(_TENSOR.match(name))
    facts["local_memory_instructions"] += root in ("LDL", "STL")
    if root in _MEMORY:
        key = f"{_MEMORY[root]}_bits"
        facts[key] = max(facts.get(key, 0), _bits(name))

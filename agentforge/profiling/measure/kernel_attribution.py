"""Attribute kernels to a graph's operators, from the rows of a profiler's trace.

A kernel's row has the correlation number of its launch, which lies inside the mark open on its thread. All
kernels of a CUDA graph have the number of the graph's launch. A kernel whose launch has no row names the
operator that was running.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MARK = "agentforge::"
"""Prefix of the names of marks around operators."""
_ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_LAUNCHES = {"cuda_runtime", "cuda_driver"}
_OPERATORS = {"cpu_op"}
_MARKS = {"user_annotation", "cpu_op"}
_US = 1e-6
_FAMILIES = (
    ("Triton", r"^triton_"),  # Inductor's names spell out the operators that they fuse
    ("NCCL", r"^nccl"),
    ("copy", r"^memcpy"),
    ("fill", r"^memset"),
    ("attention", r"flash|fmha|sdpa"),  # before CUTLASS and cuDNN, whose names these kernels also contain
    (
        "torch",
        r"\bat::(native|cuda)|at_cuda_detail|anonymous namespace\)::(softmax_|elementwise_)|^void cunn_",
    ),
    ("cuDNN", r"cudnn|xmma_(fprop|dgrad|wgrad)|convolve|winograd|[dw]grad\w*_engine"),
    ("CUTLASS", r"cutlass"),
    (
        "cuBLAS",
        r"nvjet|cublas|xmma_gemm|(volta|turing|ampere|hopper)_\w*gemm|gemv|gemmk1|gemmsn_|gemm_largek",
    ),
)
"""Searched in this order, ignoring case; the first matching pattern names the kernel."""


@dataclass(frozen=True)
class DeviceTime:
    """One forward as the GPU executed it, in seconds."""

    by_mark: Mapping[str, float]
    """Time of the kernels launched inside each mark."""
    kernels: Mapping[str, tuple[str, ...]]
    """Their names, in execution order."""
    busy_s: float
    """Time in which at least one kernel ran."""
    launches: int = 0
    """Launching calls of the host; a CUDA graph is one call."""


@dataclass
class _Marks:
    """Nested marks of one thread."""

    begins: list[float] = field(default_factory=list)
    rows: list[tuple[float, str, int]] = field(default_factory=list)
    """End, name, and index of the enclosing mark (-1 for none)."""

    def add(self, begin: float, end: float, name: str) -> None:
        """Add a mark that began after all earlier ones, or together with a longer one."""
        around = self._open_at(begin, len(self.rows) - 1)
        self.begins.append(begin)
        self.rows.append((end, name, around))

    def at(self, moment: float) -> str | None:
        """The innermost mark open at a moment."""
        place = self._open_at(moment, bisect_right(self.begins, moment) - 1)
        return self.rows[place][1] if place >= 0 else None

    def _open_at(self, moment: float, place: int) -> int:
        while place >= 0 and self.rows[place][0] < moment:
            place = self.rows[place][2]
        return place


def family(kernel: str) -> str:
    """Library or compiler of a kernel, from its name: `cuBLAS`, `cuDNN`, `CUTLASS`, `Triton`, `torch`, ...;
    else `other`.
    """
    return next((name for name, sign in _FAMILIES if re.search(sign, kernel, re.IGNORECASE)), "other")


def device_time(rows: Iterable[Mapping[str, Any]]) -> DeviceTime:
    """Attribute kernels to marks."""
    found = [r for r in rows if r.get("ph") == "X"]
    marks = _marks(found)
    launches = _places(found, _LAUNCHES, "correlation")
    operators = _places(found, _OPERATORS, "External id")
    by_mark: dict[str, float] = {}
    kernels: dict[str, list[str]] = {}
    device = sorted((r for r in found if r.get("cat") in _ON_DEVICE), key=_begin)
    for row in device:
        place = launches.get(_arg(row, "correlation")) or operators.get(_arg(row, "External id"))
        mark = marks[place[0]].at(place[1]) if place and place[0] in marks else None
        if mark is not None:
            by_mark[mark] = by_mark.get(mark, 0.0) + float(row["dur"]) * _US
            kernels.setdefault(mark, []).append(str(row.get("name", "")))
    names = {mark: tuple(found) for mark, found in kernels.items()}
    launched = len({_arg(row, "correlation") for row in device})
    return DeviceTime(by_mark, names, _busy(device), launched)


def _marks(rows: Sequence[Mapping[str, Any]]) -> dict[Any, _Marks]:
    threads: dict[Any, _Marks] = {}
    ours = (r for r in rows if r.get("cat") in _MARKS and str(r.get("name", "")).startswith(MARK))
    for row in sorted(ours, key=lambda r: (_begin(r), -float(r["dur"]))):
        begin = _begin(row)
        name = str(row["name"]).removeprefix(MARK)
        threads.setdefault(row.get("tid"), _Marks()).add(begin, begin + float(row["dur"]), name)
    return threads


def _places(
    rows: Sequence[Mapping[str, Any]], kinds: Collection[str], number: str
) -> dict[Any, tuple[Any, float]]:
    """Thread and begin of the rows of some kinds, by a number in their arguments."""
    numbered = ((_arg(r, number), r) for r in rows if r.get("cat") in kinds)
    return {n: (r.get("tid"), _begin(r)) for n, r in numbered if n is not None}


def _arg(row: Mapping[str, Any], name: str) -> Any:
    return row.get("args", {}).get(name)


def _begin(row: Mapping[str, Any]) -> float:
    return float(row["ts"])


def _busy(device: Sequence[Mapping[str, Any]]) -> float:
    """Seconds in which at least one kernel ran; streams may overlap."""
    busy, end = 0.0, float("-inf")
    for row in device:
        begin, until = _begin(row), _begin(row) + float(row["dur"])
        busy += max(until - max(begin, end), 0.0)
        end = max(end, until)
    return busy * _US

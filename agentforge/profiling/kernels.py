"""Which operator of a graph launched which kernel, from the rows of a profiler's trace.

torch.profiler writes what the host did and what the GPU did as rows of a Chrome trace. A kernel's row carries
the correlation number of the call that launched it, and that call lies inside the mark that was open on its
thread. Only kernels, copies and fills of the GPU are counted: an operator's own row and its kernels' are the
same time seen twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MARK = "agentforge::"
"""Beginning of the names of marks that are opened around operators."""
_ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_LAUNCHES = {"cuda_runtime", "cuda_driver"}
_MARKS = {"user_annotation", "cpu_op"}
_US = 1e-6
_FAMILIES = (
    ("cutlass", "CUTLASS"), ("nvjet", "cuBLAS"), ("cublas", "cuBLAS"), ("gemm", "cuBLAS"), ("gemv", "cuBLAS"),
    ("cudnn", "cuDNN"), ("flash", "attention"), ("fmha", "attention"), ("triton", "Triton"),
    ("at::native", "torch"), ("memcpy", "copy"), ("memset", "fill"),
)  # fmt: skip


@dataclass(frozen=True)
class DeviceTime:
    """One forward as the GPU saw it, seconds."""

    by_mark: Mapping[str, float]
    """Time of the kernels that were launched inside each mark."""
    kernels: Mapping[str, tuple[str, ...]]
    """Their names, in the order of their launches."""
    busy_s: float
    """Some kernel ran."""
    span_s: float
    """From the first kernel's beginning to the last one's end."""
    unbound_s: float = 0.0
    """Of kernels whose launch lies in no mark."""
    launches: int = 0

    @property
    def gaps_s(self) -> float:
        """Between the first and the last kernel, none ran: the GPU waited for the host."""
        return max(self.span_s - self.busy_s, 0.0)


@dataclass
class _Marks:
    """Marks of one thread; they nest, so the innermost that holds a moment is the last that began before."""

    begins: list[float] = field(default_factory=list)
    rows: list[tuple[float, float, str]] = field(default_factory=list)

    def at(self, moment: float) -> str | None:
        place = bisect_right(self.begins, moment)
        for begin, end, name in reversed(self.rows[:place]):
            if begin <= moment <= end:
                return name
        return None


def family(kernel: str) -> str:
    """Whose kernel it is, by its name: `cuBLAS`, `cuDNN`, `CUTLASS`, `Triton`, `torch`, ...; else `other`."""
    lower = kernel.lower()
    return next((name for part, name in _FAMILIES if part in lower), "other")


def device_time(rows: Iterable[Mapping[str, Any]]) -> DeviceTime:
    """Bind kernels to marks.

    Args:
        rows: `traceEvents` of one forward, in any order; rows of other kinds are passed over.
    """
    found = [r for r in rows if r.get("ph") == "X"]
    marks = _marks(found)
    launched: dict[Any, str | None] = {}
    for row in found:
        if row.get("cat") in _LAUNCHES and _correlation(row) is not None:
            threads = marks.get(row.get("tid"))
            launched[_correlation(row)] = threads.at(float(row["ts"])) if threads else None
    by_mark: dict[str, float] = {}
    kernels: dict[str, tuple[str, ...]] = {}
    unbound, device = 0.0, sorted((r for r in found if r.get("cat") in _ON_DEVICE), key=_begin)
    for row in device:
        mark = launched.get(_correlation(row))
        if mark is None:
            unbound += float(row["dur"]) * _US
            continue
        by_mark[mark] = by_mark.get(mark, 0.0) + float(row["dur"]) * _US
        kernels[mark] = (*kernels.get(mark, ()), str(row.get("name", "")))
    busy, span = _busy(device)
    return DeviceTime(by_mark, kernels, busy, span, unbound, len(device))


def _marks(rows: Sequence[Mapping[str, Any]]) -> dict[Any, _Marks]:
    threads: dict[Any, _Marks] = {}
    ours = (r for r in rows if r.get("cat") in _MARKS and str(r.get("name", "")).startswith(MARK))
    for row in sorted(ours, key=_begin):
        begin = float(row["ts"])
        thread = threads.setdefault(row.get("tid"), _Marks())
        thread.begins.append(begin)
        thread.rows.append((begin, begin + float(row["dur"]), str(row["name"]).removeprefix(MARK)))
    return threads


def _begin(row: Mapping[str, Any]) -> float:
    return float(row["ts"])


def _correlation(row: Mapping[str, Any]) -> Any:
    return row.get("args", {}).get("correlation")


def _busy(device: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Seconds in which at least one kernel ran, and from the first to the last; streams may overlap."""
    busy, end, first = 0.0, float("-inf"), None
    for row in device:
        begin, until = float(row["ts"]), float(row["ts"]) + float(row["dur"])
        first = begin if first is None else first
        busy += max(until - max(begin, end), 0.0)
        end = max(end, until)
    return busy * _US, (end - first) * _US if first is not None else 0.0

"""What limits a kernel: rules over measured values, each citing the values and thresholds that it rests on.

Two sets of rules end in the same noun (`agentforge.schema.Bound`). Where hardware counters were read, shares
of peak, occupancy and issue rate decide. Where they were not (a CPU, a hosted GPU), the achieved bandwidth
and rate are held against the measured roofline.

A rule fires on values that are there; a value that was not collected never fires one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentforge.schema import Bound, Classification, Metric, Reason

Values = Mapping[str, float]

# -- names of the roofline's metrics, on any device

BANDWIDTH = "achieved_bandwidth"
BANDWIDTH_SHARE = "bandwidth_share"
RATE = "achieved_flops"
RATE_SHARE = "flops_share"
THREADS_BUSY = "threads_busy"
THREADS_SHARE = "threads_share"
CALL_OVERHEAD_SHARE = "call_overhead_share"
KERNEL_TIME_SHARE = "kernel_time_share"

# -- thresholds

SATURATED_PCT = 60.0
"""Percent of peak from which a unit limits a kernel: below it, says Nsight Compute's own bottleneck rule, a
kernel suffers from latency."""
LAUNCH_S = 5e-6
"""A kernel shorter than this takes about as long as its launch."""
KERNEL_SHARE = 0.5
"""Share of a call that its kernels run; below it the gaps between them are more than the work."""
FULL_WAVE = 1.0
"""Waves of blocks a multiprocessor; below one, some have nothing to do."""
OCCUPIED_PCT = 30.0
"""Percent of the possible warps that are active: with fewer there is nothing to hide latency behind."""
ISSUE_PCT = 60.0
"""Percent of cycles in which a scheduler issues."""
REACHED = 0.6
"""Share of the measured roofline from which it is what limits."""
OVERHEAD_SHARE = 0.2
"""Cost of an empty call / time of a call, from which calling is what costs."""
THREADS = 0.6
"""Share of the threads at work; with fewer some cores idle."""


@dataclass(frozen=True)
class _Test:
    """One comparison."""

    metric: str
    relation: Literal["at least", "below"]
    threshold: float
    unit: str = ""

    def reason(self, values: Values) -> Reason | None:
        """The value with its threshold; None where it was not collected or the test fails."""
        value = values.get(self.metric)
        if value is None or (value >= self.threshold) is not (self.relation == "at least"):
            return None
        return Reason(
            metric=self.metric, value=value, relation=self.relation, threshold=self.threshold, unit=self.unit
        )


@dataclass(frozen=True)
class _Rule:
    """Fires where any of `deciding` holds; `supporting` ones that hold are cited beside it."""

    bound: Bound
    deciding: tuple[_Test, ...]
    supporting: tuple[_Test, ...] = ()

    def fire(self, values: Values) -> tuple[Reason, ...]:
        decided = tuple(r for r in (t.reason(values) for t in self.deciding) if r is not None)
        if not decided:
            return ()
        return (*decided, *(r for r in (t.reason(values) for t in self.supporting) if r is not None))


DURATION = "gpu__time_duration.sum"
"""Nanoseconds."""
MEMORY_PCT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_PCT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SM_PCT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
TENSOR_PCT = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
WARPS_PCT = "sm__warps_active.avg.pct_of_peak_sustained_active"
ISSUED_PCT = "smsp__issue_active.avg.pct_of_peak_sustained_active"
WAVES = "launch__waves_per_multiprocessor"
STALL_PREFIX = "smsp__average_warps_issue_stalled_"
STALL_SUFFIX = "_per_issue_active.ratio"

_LAUNCH = _Rule(
    Bound.OVERHEAD,
    (
        _Test(KERNEL_TIME_SHARE, "below", KERNEL_SHARE),
        _Test(DURATION, "below", LAUNCH_S * 1e9, "ns"),
    ),
)
_MEMORY = _Rule(
    Bound.MEMORY,
    (_Test(DRAM_PCT, "at least", SATURATED_PCT, "%"), _Test(MEMORY_PCT, "at least", SATURATED_PCT, "%")),
    (_Test(SM_PCT, "at least", SATURATED_PCT, "%"),),  # nearly as busy: less of one alone does not help
)
_COMPUTE = _Rule(
    Bound.COMPUTE,
    (_Test(TENSOR_PCT, "at least", SATURATED_PCT, "%"), _Test(SM_PCT, "at least", SATURATED_PCT, "%")),
    (_Test(ISSUED_PCT, "at least", ISSUE_PCT, "%"), _Test(MEMORY_PCT, "at least", SATURATED_PCT, "%")),
)
_OCCUPANCY = _Rule(
    Bound.OCCUPANCY,
    (_Test(WAVES, "below", FULL_WAVE), _Test(WARPS_PCT, "below", OCCUPIED_PCT, "%")),
)
_LATENCY = _Rule(
    Bound.LATENCY,
    (
        _Test(MEMORY_PCT, "below", SATURATED_PCT, "%"),
        _Test(SM_PCT, "below", SATURATED_PCT, "%"),
    ),
    (_Test(ISSUED_PCT, "below", ISSUE_PCT, "%"), _Test(WARPS_PCT, "at least", OCCUPIED_PCT, "%")),
)

_ROOFLINE: tuple[_Rule, ...] = (
    _Rule(
        Bound.OVERHEAD,
        (
            _Test(KERNEL_TIME_SHARE, "below", KERNEL_SHARE),
            _Test(CALL_OVERHEAD_SHARE, "at least", OVERHEAD_SHARE),
        ),
    ),
    _Rule(Bound.MEMORY, (_Test(BANDWIDTH_SHARE, "at least", REACHED),)),
    _Rule(Bound.COMPUTE, (_Test(RATE_SHARE, "at least", REACHED),)),
    _Rule(Bound.OCCUPANCY, (_Test(THREADS_SHARE, "below", THREADS),)),
    _Rule(
        Bound.LATENCY,
        (_Test(BANDWIDTH_SHARE, "below", REACHED),),
        (_Test(RATE_SHARE, "below", REACHED), _Test(THREADS_SHARE, "at least", THREADS)),
    ),
)
"""In this order; a saturated roofline goes before idle cores, since few cores can saturate a memory."""


def by_counters(values: Values, *, kernel: str = "") -> Classification | None:
    """The class of one GPU kernel from its hardware counters.

    Args:
        values: Nsight Compute's metrics by name, in its base units (ns, %); what was not collected is absent.
        kernel: its name.

    Returns:
        None where too little was collected to tell.
    """
    memory_first = max(values.get(MEMORY_PCT, 0.0), values.get(DRAM_PCT, 0.0)) >= max(
        values.get(SM_PCT, 0.0), values.get(TENSOR_PCT, 0.0)
    )
    saturated = (_MEMORY, _COMPUTE) if memory_first else (_COMPUTE, _MEMORY)
    for rule in (_LAUNCH, *saturated, _OCCUPANCY, _LATENCY):
        # Neither memory nor arithmetic may be taken for idle where only one of them was measured.
        if rule is _LATENCY and not (MEMORY_PCT in values and SM_PCT in values):
            continue
        if reasons := rule.fire(values):
            stalls = _stalls(values) if rule in (_OCCUPANCY, _LATENCY) else ()
            return Classification(bound=rule.bound, reasons=(*reasons, *stalls), kernel=kernel, source="ncu")
    return None


def by_roofline(values: Values, *, source: str = "roofline") -> Classification | None:
    """The class of a measured call from what it achieved of the roofline.

    Args:
        values: by the names of this module; what was not measured is absent.
        source: who measured.

    Returns:
        None where too little was measured to tell.
    """
    for rule in _ROOFLINE:
        if reasons := rule.fire(values):
            return Classification(bound=rule.bound, reasons=reasons, source=source)
    return None


def values_of(metrics: Sequence[Metric], kernel: str = "") -> dict[str, float]:
    """Metrics by name: those of a kernel, and those of the whole solution."""
    return {m.name: m.value for m in metrics if m.kernel in ("", kernel)}


def _stalls(values: Values) -> tuple[Reason, ...]:
    """The stall with most warps waiting in it, where any was collected.

    `selected` is no stall, and `not_selected` means that another warp was issued.
    """
    found = {
        name: value
        for name, value in values.items()
        if name.startswith(STALL_PREFIX)
        and name.endswith(STALL_SUFFIX)
        and name.removeprefix(STALL_PREFIX).removesuffix(STALL_SUFFIX) not in ("selected", "not_selected")
    }
    if not found:
        return ()
    worst = max(found, key=lambda name: found[name])
    least = sorted(found.values())[-2] if len(found) > 1 else 0.0
    return (Reason(metric=worst, value=found[worst], relation="at least", threshold=least),)

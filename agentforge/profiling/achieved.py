"""What a solution achieved of the roofline, in the shape that hardware counters have on a GPU.

From the referee's latency and the bytes and operations that the profiler counted: bandwidth, rate, their
share of the measured ceilings. Beside what the build said (vectorised loops) and what the referee saw
(threads at work), these are what a judge and a planner can cite.
"""

from __future__ import annotations

from agentforge.devices import DeviceSpec, Roofline
from agentforge.schema import Evaluation, Metric, Profile, merged_metrics

from .classify import (
    BANDWIDTH,
    BANDWIDTH_SHARE,
    CALL_OVERHEAD_SHARE,
    RATE,
    RATE_SHARE,
    THREADS_BUSY,
    THREADS_SHARE,
    by_roofline,
    values_of,
)
from .light import Work, bandwidth_for, peak_for, work_of


def work_by_definition(profile: Profile) -> dict[str, Work]:
    """Bytes and operations of one call, by hash of the definition.

    Where call sites of a definition differ, the costliest counts, as it does for the context.
    """
    found: dict[str, Work] = {}
    for bottleneck in profile.bottlenecks:
        site = max(bottleneck.call_sites, key=lambda s: s.time_s)
        found[bottleneck.definition.hash] = work_of(site)
    return found


def achieved(
    latency_s: float, work: Work, device: DeviceSpec, roofline: Roofline, *, source: str = "roofline"
) -> tuple[Metric, ...]:
    """What one call of this latency achieved.

    Args:
        latency_s: seconds a call, positive.
        work: of that call.
        device: for the size of its caches.
        roofline: measured ceilings.
        source: who measured the latency.
    """
    metrics: list[Metric] = []

    def add(name: str, value: float, unit: str = "1") -> None:
        metrics.append(Metric(name=name, value=value, unit=unit, source=source))

    if work.bytes > 0:
        ceiling = bandwidth_for(work.bytes, device, roofline)
        add(BANDWIDTH, work.bytes / latency_s, "B/s")
        add("bandwidth_ceiling", ceiling, "B/s")
        if ceiling > 0:
            add(BANDWIDTH_SHARE, work.bytes / latency_s / ceiling)
    if work.flops > 0:
        peak = peak_for(work.dtype, roofline)
        add(RATE, work.flops / latency_s, "FLOP/s")
        if peak > 0:
            add("flops_ceiling", peak, "FLOP/s")
            add(RATE_SHARE, work.flops / latency_s / peak)
    if roofline.call_overhead_s > 0:
        add(CALL_OVERHEAD_SHARE, roofline.call_overhead_s / latency_s)
    return tuple(metrics)


def with_roofline(
    evaluation: Evaluation, work: Work | None, device: DeviceSpec, roofline: Roofline
) -> Evaluation:
    """The evaluation with what its solution achieved, and its class. Untouched where nothing was timed.

    Args:
        evaluation: of any status; metrics of the build and of the referee stay.
        work: of one call; None where it is not known.
        device: that it was measured on.
        roofline: of that device.
    """
    performance = evaluation.performance
    if performance is None or performance.latency_s <= 0:
        return evaluation
    found = list(achieved(performance.latency_s, work, device, roofline)) if work else []
    busy = values_of(evaluation.metrics).get(THREADS_BUSY)
    if busy is not None and device.threads:
        found.append(Metric(name=THREADS_SHARE, value=busy / device.threads, unit="1", source="referee"))
    # What a profiler found in the kernels' own time stays: the classification cites it.
    metrics = merged_metrics(found, evaluation.metrics)
    return evaluation.model_copy(
        update={
            "metrics": metrics,
            "classification": evaluation.classification or by_roofline(values_of(metrics)),
        }
    )

"""What a solution achieved of the roofline, in the same form as a GPU's hardware counters."""

from __future__ import annotations

from collections.abc import Sequence

from agentforge.devices import DeviceSpec, Roofline
from agentforge.schema import CallSite, Evaluation, Metric, Profile, merged_metrics

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
from .speed_of_light import Work, bandwidth_for, peak_for, work_of


def work_by_definition(profile: Profile) -> dict[str, Work]:
    """Bytes and operations of one call, by definition hash.

    If call sites of a definition differ, as for a range of shapes, it is the mean over their calls: so is the
    latency that an evaluation has.
    """
    return {b.definition.hash: _mean_work(b.call_sites) for b in (*profile.bottlenecks, *profile.merges)}


def _mean_work(sites: Sequence[CallSite]) -> Work:
    calls = sum(site.calls for site in sites)
    moved = sum(site.bytes * site.calls for site in sites) / calls
    flops = sum(site.flops * site.calls for site in sites) / calls
    return Work(moved, flops, work_of(sites[0]).dtype)


def achieved(
    latency_s: float, work: Work, device: DeviceSpec, roofline: Roofline, *, source: str = "roofline"
) -> tuple[Metric, ...]:
    """Metrics that one call of this latency achieved.

    Args:
        latency_s: seconds per call, positive.
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
    """Add what the solution achieved, and its class, to the evaluation; unchanged if nothing was timed.

    Args:
        work: work of one call; None if unknown.
    """
    performance = evaluation.performance
    if performance is None or performance.latency_s <= 0:
        return evaluation
    found = list(achieved(performance.latency_s, work, device, roofline)) if work else []
    busy = values_of(evaluation.metrics).get(THREADS_BUSY)
    if busy is not None and device.threads and device.torch_device == "cpu":  # else they only launch
        found.append(Metric(name=THREADS_SHARE, value=busy / device.threads, unit="1", source="referee"))
    # A profiler's metrics over the kernels' own time stay: the classification cites them.
    metrics = merged_metrics(found, evaluation.metrics)
    return evaluation.model_copy(
        update={
            "metrics": metrics,
            "classification": evaluation.classification or by_roofline(values_of(metrics)),
        }
    )

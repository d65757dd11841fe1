"""Speed of light: the least seconds that work takes at the measured ceilings.

Williams, Waterman, Patterson: Roofline, CACM 2009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean

from agentforge.devices import DeviceSpec, Roofline
from agentforge.schema import Bottleneck, Bound, CallSite, Profile, TensorInput, ranked

REACHABLE = 0.8
"""Share of the measured roofline that a good kernel reaches on real shapes. The streaming kernels of the
built-in playbook reach 0.75 to 0.9 of the machine's measured bandwidth.
"""
_CACHE_SHARE = 0.5
"""A working set below this share of the last cache counts as cached; the model's weights need room there too.
"""


@dataclass(frozen=True)
class Work:
    """The least that one call of a definition must do."""

    bytes: float
    """Bytes moved: every distinct input element read once, every output written once."""
    flops: float
    """Floating-point operations."""
    dtype: str = "float32"
    """Dtype of the operations; empty (highest peak) if unknown."""


@dataclass(frozen=True)
class SpeedOfLight:
    """The least time that one call takes."""

    seconds: float
    bound: Bound
    """`memory`, `compute`, or `overhead` if an operator call costs more."""
    floor_s: float
    """The larger of the speed of light and one empty operator call, in seconds."""


def dtype_of(outputs: Iterable[TensorInput]) -> str:
    """Dtype of the first floating-point output; empty if there is none."""
    return next((t.dtype.value for t in outputs if t.dtype.is_floating), "")


def work_of(site: CallSite) -> Work:
    """The least that one call of a call site must do."""
    return Work(site.bytes, site.flops, site.dtype or dtype_of(site.outputs))


def work_of_model(profile: Profile) -> Work | None:
    """The least that one forward must do, if one region is the whole model; None otherwise.

    The sum of several regions is no bound, because a kernel over two of them moves less than both: see
    `least_time`.
    """
    if len(profile.call_sites) != 1:
        return None
    (site,) = profile.call_sites
    return work_of(site) if not site.unit and site.calls == 1 and site.bytes else None


def least_time(profile: Profile, device: DeviceSpec, roofline: Roofline) -> float | None:
    """Speed-of-light seconds of one forward as a whole; None if they are not known. If the reference lists
    several workloads, their geometric mean.

    Every input and weight is read once, every output is written once, and all operations run at their peaks:
    what regions pass to each other may stay in registers. It serves scores and no verdict: an algorithm with
    fewer operations, such as Winograd's convolution, can be faster.
    """
    if work := work_of_model(profile):
        return speed_of_light(work, device, roofline).seconds
    whole = {f"@{name}": moved for name, moved in profile.workload_bytes.items()}
    whole = whole or {"": profile.least_bytes}
    if not all(whole.values()):
        return None
    compute = dict.fromkeys(whole, 0.0)
    for site in profile.call_sites:
        if site.unit in compute:
            compute[site.unit] += _compute_s(site, roofline) * site.calls
    times = [max(n / bandwidth_for(n, device, roofline), compute[unit]) for unit, n in whole.items()]
    return geometric_mean(times) if len(times) > 1 else times[0]


def _compute_s(site: CallSite, roofline: Roofline) -> float:
    peak = peak_for(work_of(site).dtype, roofline)
    return site.flops / peak if peak else 0.0


def bandwidth_for(moved: float, device: DeviceSpec, roofline: Roofline) -> float:
    """Bytes/s for moving `moved` bytes: the cache's bandwidth if the working set fits the last cache."""
    cache = device.cache_bytes[-1] if device.cache_bytes else 0
    if roofline.cache_bandwidth and moved <= _CACHE_SHARE * cache:
        return max(roofline.cache_bandwidth, roofline.bandwidth)
    return roofline.bandwidth


def peak_for(dtype: str, roofline: Roofline) -> float:
    """Peak FLOP/s of a dtype; the highest peak if it was not measured, 0 if none was."""
    return roofline.peak_flops.get(dtype) or max(roofline.peak_flops.values(), default=0.0)


def speed_of_light(work: Work, device: DeviceSpec, roofline: Roofline) -> SpeedOfLight:
    """Compute the speed of light of one call with the roofline model."""
    peak = peak_for(work.dtype, roofline)
    compute = work.flops / peak if peak else 0.0
    memory = work.bytes / bandwidth_for(work.bytes, device, roofline)
    seconds = max(compute, memory)
    bound = Bound.COMPUTE if compute > memory else Bound.MEMORY
    if seconds < roofline.call_overhead_s:
        bound = Bound.OVERHEAD
    return SpeedOfLight(seconds, bound, max(seconds, roofline.call_overhead_s))


def gain_of(time_s: float, floor_s: float) -> float:
    """Seconds that a kernel could save by reaching `REACHABLE` of the roofline."""
    return max(time_s - floor_s / REACHABLE, 0.0)


def amdahl_limit(share: float, time_s: float, floor_s: float) -> float:
    """End-to-end speedup if a region of this share ran in `floor_s`: its speed of light, at least one call.

    1 / (1 - share (1 - 1/s)) with s = time_s / floor_s (Amdahl, AFIPS 1967). A region measured below its
    speed of light (a cache that the roofline does not model) cannot gain: 1.
    """
    if time_s <= 0 or floor_s >= time_s:
        return 1.0
    rest = 1 - share * (1 - floor_s / time_s)
    return 1 / max(rest, 1e-9)


def at_ceilings(profile: Profile, device: DeviceSpec, roofline: Roofline) -> Profile:
    """Recompute a profile's speed of light and ranking with other ceilings; measured times stay."""
    bottlenecks = ranked(_at_ceilings(b, device, roofline) for b in profile.bottlenecks)
    sites = [_site_at(s, device, roofline) for s in profile.call_sites]
    merges = tuple(_at_ceilings(b, device, roofline) for b in profile.merges)
    changes = {"bottlenecks": bottlenecks, "call_sites": tuple(sites), "merges": merges}
    return profile.model_copy(update=changes)


def _at_ceilings(bottleneck: Bottleneck, device: DeviceSpec, roofline: Roofline) -> Bottleneck:
    lights = [(speed_of_light(work_of(s), device, roofline), s.calls) for s in bottleneck.call_sites]
    calls = sum(w.weight for w in bottleneck.workloads) / sum(n for _, n in lights)
    sol_s = calls * sum(light.seconds * n for light, n in lights)
    floor_s = calls * sum(light.floor_s * n for light, n in lights)
    most, _ = max(lights, key=lambda found: found[0].seconds * found[1])
    time_s = bottleneck.time_s
    return bottleneck.model_copy(
        update={
            "call_sites": tuple(_site_at(s, device, roofline) for s in bottleneck.call_sites),
            "sol_s": sol_s,
            "bound": most.bound,
            "gain_s": gain_of(time_s, floor_s) if bottleneck.optimizable else 0.0,
            "speedup_limit": amdahl_limit(bottleneck.share, time_s, floor_s),
        }
    )


def _site_at(site: CallSite, device: DeviceSpec, roofline: Roofline) -> CallSite:
    if not site.bytes and not site.flops:  # runs outside of all regions, so its work is unknown
        return site
    return site.model_copy(update={"sol_s": speed_of_light(work_of(site), device, roofline).seconds})

"""The speed of light: the least seconds that work takes at measured ceilings.

Williams, Waterman, Patterson: Roofline, CACM 2009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentforge.devices import DeviceSpec, Roofline
from agentforge.schema import Bottleneck, Bound, CallSite, Profile, TensorInput

REACHABLE = 0.8
"""Share of the measured roofline that a good kernel reaches on real shapes: the streaming kernels of our own
playbook reach 0.75 to 0.9 of the same machine's measured bandwidth. A documented allowance, so that a region
which already runs near its ceiling is not promised a gain."""
_CACHE_SHARE = 0.5
"""A working set below this share of the last cache counts as cached; the model's weights live there too."""


@dataclass(frozen=True)
class Work:
    """The least that one call of a definition must do."""

    bytes: float
    """Moved: every distinct input element read once, every output written once."""
    flops: float
    """Floating-point operations."""
    dtype: str = "float32"
    """That the operations are done in; empty, for the highest peak, where it is not known."""


@dataclass(frozen=True)
class Light:
    """The least that one call takes."""

    seconds: float
    bound: Bound
    """`memory`, `compute`, or `overhead` where an operator call costs more."""
    floor_s: float
    """The speed of light, or where longer the seconds of one empty operator call."""


def dtype_of(outputs: Iterable[TensorInput]) -> str:
    """Whose peak counts: the first floating-point output's; empty where none is known."""
    return next((t.dtype.value for t in outputs if t.dtype.is_floating), "")


def work_of(site: CallSite) -> Work:
    """What one call of a call site must do."""
    return Work(site.bytes, site.flops, dtype_of(site.outputs))


def bandwidth_for(moved: float, device: DeviceSpec, roofline: Roofline) -> float:
    """Bytes/s that so many bytes can reach: a working set that stays in the last cache has that one's."""
    cache = device.cache_bytes[-1] if device.cache_bytes else 0
    if roofline.cache_bandwidth and moved <= _CACHE_SHARE * cache:
        return max(roofline.cache_bandwidth, roofline.bandwidth)
    return roofline.bandwidth


def peak_for(dtype: str, roofline: Roofline) -> float:
    """FLOP/s of a dtype; the highest of all where it was not measured, 0 where none was."""
    return roofline.peak_flops.get(dtype) or max(roofline.peak_flops.values(), default=0.0)


def light_of(work: Work, device: DeviceSpec, roofline: Roofline) -> Light:
    """The roofline's answer for one call."""
    peak = peak_for(work.dtype, roofline)
    compute = work.flops / peak if peak else 0.0
    memory = work.bytes / bandwidth_for(work.bytes, device, roofline)
    seconds = max(compute, memory)
    bound = Bound.COMPUTE if compute > memory else Bound.MEMORY
    if seconds < roofline.call_overhead_s:
        bound = Bound.OVERHEAD
    return Light(seconds, bound, max(seconds, roofline.call_overhead_s))


def gain_of(time_s: float, floor_s: float) -> float:
    """Seconds still to be had by a kernel that reaches what good ones reach."""
    return max(time_s - floor_s / REACHABLE, 0.0)


def amdahl_limit(share: float, time_s: float, sol_s: float) -> float:
    """End-to-end speedup if a region of this share ran at its speed of light.

    1 / (1 - share (1 - 1/s)) with s = time_s / sol_s (Amdahl, AFIPS 1967). A region that is measured
    below its speed of light (a cache that the roofline does not know) has nothing to gain: 1.
    """
    if time_s <= 0 or sol_s >= time_s:
        return 1.0
    rest = 1 - share * (1 - sol_s / time_s)
    return 1 / max(rest, 1e-9)


def at_ceilings(profile: Profile, device: DeviceSpec, roofline: Roofline) -> Profile:
    """The profile with the speed of light of other ceilings; measured times stay, the ranking follows."""
    bottlenecks = [_at_ceilings(b, device, roofline) for b in profile.bottlenecks]
    bottlenecks.sort(key=lambda b: (b.gain_s, b.time_s), reverse=True)
    sites = [_site_at(s, device, roofline) for s in profile.call_sites]
    return profile.model_copy(update={"bottlenecks": tuple(bottlenecks), "call_sites": tuple(sites)})


def _at_ceilings(bottleneck: Bottleneck, device: DeviceSpec, roofline: Roofline) -> Bottleneck:
    light = light_of(work_of(bottleneck.call_sites[0]), device, roofline)
    calls = sum(w.weight for w in bottleneck.workloads)
    sol_s, time_s = light.seconds * calls, bottleneck.time_s
    return bottleneck.model_copy(
        update={
            "call_sites": tuple(_site_at(s, device, roofline) for s in bottleneck.call_sites),
            "sol_s": sol_s,
            "bound": light.bound,
            "gain_s": gain_of(time_s, light.floor_s * calls) if bottleneck.optimizable else 0.0,
            "speedup_limit": amdahl_limit(bottleneck.share, time_s, sol_s),
        }
    )


def _site_at(site: CallSite, device: DeviceSpec, roofline: Roofline) -> CallSite:
    if not site.bytes and not site.flops:  # what runs outside of all regions: nothing is known of its work
        return site
    return site.model_copy(update={"sol_s": light_of(work_of(site), device, roofline).seconds})

"""Call sites become ranked bottlenecks: Amdahl's law with the headroom to the speed of light."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch.fx import Node

from agentforge.schema import Bottleneck, CallSite

from .cost import Cost
from .extract import CannotExtract, extract, structure_key
from .light import amdahl_limit, gain_of
from .operators import Kind, kind_of
from .record import Seen
from .region import Region


@dataclass(frozen=True)
class Site:
    """A call site with the graph objects behind it."""

    call_site: CallSite
    region: Region
    seen: Mapping[Node, Seen]
    cost: Cost
    calls: int
    """Calls of its unit in one forward."""


def rank(sites: Iterable[Site], total_s: float) -> tuple[list[Bottleneck], list[str]]:
    """Group call sites with the same structure and rank them by the end-to-end gain still to be had.

    Args:
        sites: all call sites.
        total_s: seconds of one eager forward.

    Returns:
        Bottlenecks, largest `gain_s` first, and notes on regions that could not be written as source.
    """
    groups: dict[str, list[Site]] = {}
    notes: list[str] = []
    for site in sites:
        try:
            groups.setdefault(structure_key(site.region, site.seen), []).append(site)
        except CannotExtract as reason:
            notes.append(f"{site.call_site.name} is not extracted: {reason}")
    bottlenecks = [_bottleneck(group, total_s) for group in groups.values()]
    return sorted(bottlenecks, key=lambda b: (b.gain_s, b.time_s), reverse=True), notes


def _bottleneck(sites: list[Site], total_s: float) -> Bottleneck:
    first = sites[0]
    extracted = extract(first.region, first.seen)
    calls = sum(s.calls for s in sites)
    time_s = sum(s.call_site.time_s * s.calls for s in sites)
    sol_s = sum(s.cost.sol_s * s.calls for s in sites)
    floor_s = sum(s.cost.floor_s * s.calls for s in sites)
    optimizable = _optimizable(first.region)
    share = min(time_s / total_s, 1.0) if total_s else 0.0
    return Bottleneck(
        definition=extracted.definition,
        workloads=(extracted.workload.model_copy(update={"weight": float(calls)}),),
        call_sites=tuple(s.call_site for s in sites),
        time_s=time_s,
        share=share,
        sol_s=sol_s,
        bound=first.cost.bound,
        gain_s=gain_of(time_s, floor_s) if optimizable else 0.0,
        speedup_limit=amdahl_limit(share, time_s, sol_s),
        optimizable=optimizable,
    )


def _optimizable(region: Region) -> bool:
    """Bare vendor calls and operators that may not move are left alone."""
    return not region.vendor and all(kind_of(n) is not Kind.OPAQUE for n in region.nodes)

"""Rank call sites as bottlenecks by Amdahl's law and the headroom to the speed of light."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch.fx import Node

from agentforge.schema import Bottleneck, CallSite, ranked

from .cost import Cost
from .graph.extract import CannotExtract, Extracted, extract, structure_key
from .graph.operators import Kind, kind_of, op_name, value_of
from .graph.region import Region
from .graph.value_capture import CapturedValues
from .speed_of_light import amdahl_limit, gain_of


@dataclass(frozen=True)
class Site:
    """A call site with its graph objects."""

    call_site: CallSite
    region: Region
    seen: Mapping[Node, CapturedValues]
    cost: Cost
    calls: int
    """Calls of its unit in one forward."""


def rank(sites: Iterable[Site], total_s: float) -> tuple[tuple[Bottleneck, ...], list[str]]:
    """Group call sites with the same structure and rank them by the possible end-to-end gain.

    Args:
        total_s: seconds of one eager forward.

    Returns:
        Bottlenecks, largest `gain_s` first, and notes on regions that cannot be written as source.
    """
    groups: dict[str, tuple[Extracted, list[Site]]] = {}
    notes: list[str] = []
    for site in sites:
        try:
            key = structure_key(site.region, site.seen)
            if key not in groups:
                groups[key] = extract(site.region, site.seen), []
            groups[key][1].append(site)
        except CannotExtract as reason:
            notes.append(f"{site.call_site.name} gets no kernel: {reason}")
    bottlenecks = [_bottleneck(extracted, group, total_s) for extracted, group in groups.values()]
    return ranked(bottlenecks), notes


def _bottleneck(extracted: Extracted, sites: list[Site], total_s: float) -> Bottleneck:
    first = sites[0]
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
        speedup_limit=amdahl_limit(share, time_s, floor_s),
        optimizable=optimizable,
    )


def _optimizable(region: Region) -> bool:
    """False for bare vendor calls and for operators that must not move; a product with one row on a CPU may
    be a kernel's."""
    if region.vendor:
        return all(_one_row(n) for n in region.nodes)
    return all(kind_of(n) is not Kind.OPAQUE for n in region.nodes)


def _one_row(node: Node) -> bool:
    """True for a `linear` of one row on a CPU: the weight's memory limits it, not arithmetic."""
    result = value_of(node)
    if op_name(node) != "linear" or result is None or result.device.type != "cpu":
        return False
    return bool(result.ndim) and result.numel() == result.shape[-1]

"""Rank call sites as bottlenecks by Amdahl's law and the headroom to the speed of light."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch.fx import Node

from agentforge.schema import Bottleneck, CallSite, Definition, Workload, ranked

from .cost import Cost
from .graph.extract import CannotExtract, body_skeleton, extract, extract_range, structure_key
from .graph.operators import Kind, kind_of, op_name, value_of
from .graph.region import Region
from .graph.value_capture import CapturedValues
from .speed_of_light import amdahl_limit, gain_of

_LEAST_NOTED = 0.01
"""Share of the time from which call sites without a kernel get a note, together for each reason."""


@dataclass(frozen=True)
class Site:
    """A call site with its graph objects."""

    call_site: CallSite
    region: Region
    seen: Mapping[Node, CapturedValues]
    cost: Cost
    calls: int
    """Calls of its unit in one forward."""


@dataclass
class _Group:
    """Call sites with one definition."""

    definition: Definition
    workloads: tuple[Workload, ...]
    calls: list[int]
    """Of each workload."""
    sites: list[Site]


def rank(
    sites: Iterable[Site], total_s: float, *, ranged: bool = False
) -> tuple[tuple[Bottleneck, ...], list[str]]:
    """Group call sites with the same structure and rank them by the possible end-to-end gain.

    Args:
        total_s: seconds of one eager forward.
        ranged: True if the units are one model at several shapes: a call site at all of them is one
            bottleneck with several workloads, if its sizes follow from its inputs.

    Returns:
        Bottlenecks, largest `gain_s` first, and notes on regions that cannot be written as source.
    """
    groups: dict[str, _Group] = {}
    without: dict[str, list[Site]] = {}
    for same in _at_all_shapes(sites) if ranged else [[site] for site in sites]:
        try:
            _add(groups, same)
        except CannotExtract as reason:
            without.setdefault(str(reason), []).extend(same)
    notes = [
        f"{_named(found)} no kernel: {reason}"
        for reason, found in without.items()
        if sum(s.call_site.time_s * s.calls for s in found) >= _LEAST_NOTED * total_s
    ]
    return ranked([_bottleneck(group, total_s) for group in groups.values()]), notes


def _named(sites: Sequence[Site]) -> str:
    """The slowest call site and the number of the others, with a verb."""
    slowest = max(sites, key=lambda s: s.call_site.time_s * s.calls).call_site.name
    return f"{slowest} and {len(sites) - 1} more get" if len(sites) > 1 else f"{slowest} gets"


def _at_all_shapes(sites: Iterable[Site]) -> list[list[Site]]:
    """Call sites that are one place of the model at several shapes."""
    found: dict[object, list[Site]] = {}
    for site in sites:
        try:
            structure = body_skeleton(site.region)
        except CannotExtract:
            structure = site.call_site.name
        unit = site.call_site.unit.partition("@")[0]
        found.setdefault((unit, site.call_site.nodes, structure), []).append(site)
    return list(found.values())


def _add(groups: dict[str, _Group], same: list[Site]) -> None:
    several = extract_range([(s.region, s.seen) for s in same]) if len(same) > 1 else None
    if several is not None:
        key, definition, workloads = several
        group = groups.setdefault(key, _Group(definition, workloads, [0] * len(same), []))
        group.sites += same
        group.calls = [n + s.calls for n, s in zip(group.calls, same, strict=True)]
        return
    for site in same:
        key = structure_key(site.region, site.seen)
        if key not in groups:
            found = extract(site.region, site.seen)
            groups[key] = _Group(found.definition, (found.workload,), [0], [])
        groups[key].sites.append(site)
        groups[key].calls[0] += site.calls


def _bottleneck(group: _Group, total_s: float) -> Bottleneck:
    sites, first = group.sites, group.sites[0]
    most = max(sites, key=lambda s: s.cost.sol_s * s.calls)
    time_s = sum(s.call_site.time_s * s.calls for s in sites)
    sol_s = sum(s.cost.sol_s * s.calls for s in sites)
    floor_s = sum(s.cost.floor_s * s.calls for s in sites)
    optimizable = _optimizable(first.region)
    share = min(time_s / total_s, 1.0) if total_s else 0.0
    return Bottleneck(
        definition=group.definition,
        workloads=tuple(
            w.model_copy(update={"weight": float(n)})
            for w, n in zip(group.workloads, group.calls, strict=True)
        ),
        call_sites=tuple(s.call_site for s in sites),
        time_s=time_s,
        share=share,
        sol_s=sol_s,
        bound=most.cost.bound,
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

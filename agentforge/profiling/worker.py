"""The child process of a profile: it holds the user's model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_map

from agentforge.devices import DeviceSpec, Roofline
from agentforge.harness.convention import load_problem
from agentforge.schema import Bottleneck, CallSite, Profile, Target

from .capture import Capture, Unit, capture_units
from .cost import cost_of, masked_at
from .on_device import DeviceTraces, measure_on_device
from .operators import Kind, kind_of
from .ranking import Site, rank
from .record import Seen, record
from .region import Region
from .regions import partition
from .timing import Traces, ablate, measure
from .unexported import of_kernels, of_operators, self_times

_ABLATED = 3
_UNEXPORTED_TRACES = 5
_ABLATION_ROUNDS = 5
_SEED = 0


def profile(payload: dict[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Profile a target in this process.

    Args:
        payload: JSON of `target`, `device`, `roofline`, and `traces`.
        report: receives progress lines.

    Returns:
        JSON of a `Profile`.
    """
    target = Target.model_validate(payload["target"])
    device = DeviceSpec.model_validate(payload["device"])
    roofline = Roofline.model_validate(payload["roofline"])
    where = torch.device(target.device)
    if where.type == "cpu":
        torch.set_num_threads(max(1, device.threads))
    report("building the model")
    problem = load_problem(target.definition)
    model = problem.build(_SEED).to(where)
    args, kwargs = _move(problem.inputs(_SEED), where)
    report("exporting the graph")
    captured = capture_units(model, args, kwargs)
    regions = {unit.path: partition(unit.graph_module.graph) for unit in captured.units}
    seen = {unit.path: record(unit, _wanted(regions[unit.path])) for unit in captured.units}
    report(f"timing {sum(map(len, regions.values()))} regions, {payload['traces']} traces")
    forward = lambda: model(*args, **kwargs)  # noqa: E731
    there = None
    if where.type == "cpu":
        traces = measure(forward, captured.units, where, payload["traces"])
    else:
        there = measure_on_device(forward, captured.units, where, payload["traces"])
        traces = there.traces
    sites = [
        _site(unit, region, seen[unit.path], traces, device, roofline, there)
        for unit in captured.units
        for region in regions[unit.path]
    ]
    rest = _rest(model, forward, captured, there)
    bottlenecks, notes = rank(sites, traces.total_s)
    report("checking the largest shares by ablation")
    bottlenecks = _check_shares(bottlenecks, sites, captured.units, traces.total_s, where)
    found = Profile(
        target=target.definition.hash,
        device=device.name,
        architecture=device.architecture,
        total_s=traces.total_s,
        traces=len(traces.totals),
        attributed=_attributed(sites, rest) / traces.total_s,
        call_sites=(*(s.call_site for s in sites), *rest),
        bottlenecks=tuple(bottlenecks),
        notes=(
            *target.notes,
            *captured.notes,
            *notes,
            *(there.notes() if there else ()),
            *_unsteady(traces),
        ),
    )
    return found.model_dump(mode="json")


def _move(arguments: tuple[tuple[Any, ...], dict[str, Any]], where: torch.device) -> Any:
    return tree_map(lambda a: a.to(where) if isinstance(a, torch.Tensor) else a, arguments)


def _wanted(regions: Sequence[Region]) -> set[Node]:
    return {n for r in regions for n in (*r.inputs, *r.outputs, *masked_at(r))}


def _site(
    unit: Unit,
    region: Region,
    seen: dict[Node, Seen],
    traces: Traces,
    device: DeviceSpec,
    roofline: Roofline,
    there: DeviceTraces | None,
) -> Site:
    cost = cost_of(region, seen, device, roofline)
    work = [n for n in region.nodes if kind_of(n) is not Kind.VIEW] or list(region.nodes)
    module_path = _module_path(work[-1])
    prefix = ".".join(p for p in (unit.path, module_path) if p)
    call_site = CallSite(
        name=f"{prefix}/{work[-1].name}" if prefix else work[-1].name,
        unit=unit.path,
        module_path=module_path,
        nodes=tuple(n.name for n in region.nodes),
        operators=tuple(str(n.target) for n in region.nodes),
        inputs=tuple(seen[n].tensor for n in region.inputs if n in seen),
        outputs=tuple(seen[n].tensor for n in region.outputs if n in seen),
        time_s=traces.time_of(region.nodes),
        flops=cost.flops,
        bytes=cost.bytes,
        sol_s=cost.sol_s,
        kernels=there.kernels_of(region.nodes) if there else (),
    )
    return Site(call_site, region, seen, cost, unit.calls)


def _module_path(node: Node) -> str:
    """Path of the module whose forward wrote the operator."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [str(entry[0]) for entry in stack.values()]
    return paths[-1].replace("L['self'].", "").replace("L['self']", "") if paths else ""


def _check_shares(
    bottlenecks: Sequence[Bottleneck],
    sites: Sequence[Site],
    units: Sequence[Unit],
    total_s: float,
    where: torch.device,
) -> list[Bottleneck]:
    """Ablate the largest optimizable bottlenecks; only where the model is one unit."""
    checked = list(bottlenecks)
    if len(units) != 1:
        return checked
    by_name = {s.call_site.name: s.region for s in sites}
    for index, bottleneck in enumerate(checked[:_ABLATED]):
        if not bottleneck.optimizable:
            continue
        regions = [by_name[c.name] for c in bottleneck.call_sites]
        nodes = {n for r in regions for n in r.nodes}
        outputs = {n for r in regions for n in r.outputs}
        share = ablate(units[0], nodes, outputs, where, _ABLATION_ROUNDS)
        checked[index] = bottleneck.model_copy(update={"ablation_share": share})
    return checked


def _rest(
    model: torch.nn.Module, forward: Callable[[], Any], captured: Capture, there: DeviceTraces | None
) -> list[CallSite]:
    """Call sites without nodes for what runs outside the exported units, and on a GPU for the host's time."""
    host = [there.call_site()] if there else []
    exported = [u.path for u in captured.units]
    if "" in exported:
        return host
    trace = of_kernels if there else of_operators
    times = self_times(model, forward, exported, _UNEXPORTED_TRACES, trace)
    return [
        *(
            CallSite(
                name=f"{path or 'model'} (not exported)", module_path=path, nodes=(), operators=(), time_s=t
            )
            for path, t in times.items()
            if t > 0
        ),
        *host,
    ]


def _attributed(sites: Sequence[Site], rest: Sequence[CallSite]) -> float:
    """Seconds of one forward that have a call site."""
    return sum(s.call_site.time_s * s.calls for s in sites) + sum(c.time_s for c in rest)


def _unsteady(traces: Traces) -> list[str]:
    if not traces.unsteady:
        return []
    return [
        f"the machine was unsteady: the middle half of the eager forwards spreads over "
        f"{traces.spread:.0%} of their median; profile again when it is idle"
    ]

"""Child process of a profile; it loads the user's model."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.export._trace  # what an export imports at first use: here it is once for all children
from torch.fx import Node

from agentforge.devices import DeviceSpec, Fallback, Roofline
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import Bottleneck, CallSite, Profile, Target

from .cost import cost_of, least_bytes, masked_at
from .examples import examples_of, expanded_notes
from .float32 import precision_notes
from .graph.capture import Buffers, Capture, CapturedUnit, Example, capture_examples
from .graph.merges import merges
from .graph.operators import GATHERS, Kind, kind_of, op_name
from .graph.region import Region
from .graph.regions import partition
from .graph.value_capture import CapturedValues, flat_arguments, record
from .measure.device import DeviceTraces, measure_on_device
from .measure.host import Clock, Traces, ablate, measure
from .measure.modules import KernelTime, WallClock, self_times
from .measure.operators import only_in_graphs, program_notes
from .ranking import Site, rank

_ABLATED = 3
_DEVICE_TRACES = 5
_EXAMPLE_TRACES = 9
_ABLATION_ROUNDS = 5
_SEED = 0
_MOST_MERGES = 12
_LEAST_MERGED = 0.01
"""Possible merges below this share of the target's time are not kept."""
_IDLE = frozenset({Kind.VIEW, Kind.FACTORY, Kind.NONE})
_LEAST_ATTRIBUTED, _MOST_ATTRIBUTED = 0.6, 1.5
"""Outside of these shares of a forward, the sum of all call sites gets a note."""


def profile(payload: dict[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Profile a target in this process.

    Args:
        payload: JSON of `target`, `device`, `roofline`, `traces` and `ablation`.

    Returns:
        JSON of a `Profile`.
    """
    target = Target.model_validate(payload["target"])
    device = DeviceSpec.model_validate(payload["device"])
    roofline = Roofline.model_validate(payload["roofline"])
    torch_device = torch.device(target.device)
    threads = max(1, device.threads) if torch_device.type == "cpu" else torch.get_num_threads()
    torch.set_num_threads(threads)
    steps = 4 if payload["ablation"] else 3
    report(f"step 1 of {steps}: building the model")
    problem = load_problem(target.definition)
    model = problem.build(_SEED).to(torch_device)
    own_threads = _set_again(threads)
    examples = examples_of(problem, target.workloads, _SEED, torch_device)
    weights = [_times(w.weight, target) for w in target.workloads]
    report(f"step 2 of {steps}: exporting the graph")
    regions: dict[str, tuple[Region, ...]] = {}
    possible: dict[str, tuple[Region, ...]] = {}
    seen: dict[str, dict[Node, CapturedValues]] = {}

    def analyse(unit: CapturedUnit) -> None:
        graph = unit.graph_module.graph
        parts = partition(graph)
        possible[unit.name] = merges(parts, {node: i for i, node in enumerate(graph.nodes)})
        seen[unit.name] = record(unit, _wanted((*parts, *possible[unit.name])))
        regions[unit.name] = parts

    captured = _weighted(capture_examples(model, examples, analyse), examples, weights)
    graphs = [unit.graph_module for unit in captured.units]
    given = [*map(flat_arguments, captured.units), *((e.args, dict(e.kwargs)) for e in examples)]
    buffers = Buffers(model, *graphs, arguments=given)
    timed = sum(map(len, regions.values()))
    report(f"step 3 of {steps}: timing {timed} regions, {payload['traces']} traces")

    def forward() -> None:
        for example, times in zip(examples, weights, strict=True):
            for _ in range(times):
                model(*example.args, **example.kwargs)

    traces, device_traces = _measure(
        forward, captured, torch_device, payload["traces"], buffers.restore, device
    )
    sites, merged = (
        [
            _site(unit, region, seen[unit.name], traces, device, roofline, device_traces)
            for unit in captured.units
            for region in found[unit.name]
        ]
        for found in (regions, possible)
    )

    rest = _rest(
        model, examples, weights, captured, buffers.restore, len(traces.totals), device_traces, torch_device
    )
    bottlenecks, notes = rank(sites, traces.total_s, ranged=target.ranged)
    buffers.restore()
    if payload["ablation"]:
        report(f"step 4 of {steps}: checking the largest shares by ablation")
        bottlenecks = _check_shares(bottlenecks, sites, captured.whole, torch_device)
    attributed = _attributed(sites, rest) / traces.total_s
    rates = _rates(model, examples, target, torch_device)
    found = Profile(
        tokens_per_second=rates,
        target=target.definition.hash,
        device=device.name,
        architecture=device.architecture,
        total_s=traces.total_s,
        traces=len(traces.totals),
        attributed=attributed,
        least_bytes=_least_bytes(captured),
        workload_bytes=_workload_bytes(captured, examples) if target.listed and len(examples) > 1 else {},
        call_sites=(*(s.call_site for s in sites), *rest),
        bottlenecks=bottlenecks,
        merges=_worth_planning(merged, traces.total_s, target.ranged),
        notes=(
            *target.notes,
            *own_threads,
            *expanded_notes(target.workloads),
            *precision_notes(),
            *captured.notes,
            *program_notes(only_in_graphs(model, captured.units, buffers.restore)),
            *notes,
            *(device_traces.notes() if device_traces else _without_kernel_times(torch_device)),
            *_unsteady(traces),
            *(f"eager {name}: {rate:,.1f} tokens per second" for name, rate in rates.items()),
            *_far_from_whole(attributed),
        ),
    )
    return found.model_dump(mode="json")


def _set_again(threads: int) -> list[str]:
    """Set torch's number of threads, with a note if the model's file changed it."""
    changed = torch.get_num_threads()
    torch.set_num_threads(threads)
    if changed == threads:
        return []
    return [f"the model's file sets {changed} threads for torch; all that is measured has {threads}"]


def _worth_planning(sites: Sequence[Site], total_s: float, ranged: bool) -> tuple[Bottleneck, ...]:
    """The possible merges that take most of the time."""
    named = [replace(s, call_site=_renamed(s.call_site)) for s in sites]
    found = [b for b in rank(named, total_s, ranged=ranged)[0] if b.share >= _LEAST_MERGED]
    return tuple(sorted(found, key=lambda b: b.time_s, reverse=True)[:_MOST_MERGES])


def _renamed(site: CallSite) -> CallSite:
    """A name of its own: the last part of a merge has the unmarked one."""
    return site.model_copy(update={"name": f"{site.name}/merged"})


def _measure(
    forward: Callable[[], Any],
    captured: Capture,
    torch_device: torch.device,
    rounds: int,
    restore: Callable[[], None],
    device: DeviceSpec,
) -> tuple[Traces, DeviceTraces | None]:
    """Times by kernels if the profiler sees any; else of operators, with the device idle before and after."""
    if torch_device.type != "cpu" and Fallback.NO_KERNEL_TIMES not in device.fallbacks:
        found = measure_on_device(forward, captured.units, torch_device, rounds, restore=restore)
        if found.launches:
            return found.traces, found
    return measure(forward, captured.units, torch_device, rounds, restore), None


def _without_kernel_times(torch_device: torch.device) -> list[str]:
    if torch_device.type == "cpu":
        return []
    return [
        "torch's profiler sees no kernels on this GPU: operators are timed one by one, each with its launch; "
        "how long the GPU waits for the host is unknown"
    ]


def _times(weight: float, target: Target) -> int:
    """How often a profile runs a workload in one forward: its weight, if there are several."""
    return round(weight) if len(target.workloads) > 1 else 1


def _weighted(captured: Capture, examples: Sequence[Example], weights: Sequence[int]) -> Capture:
    """The capture with the calls of its units in all examples together."""
    times = {example.name: weight for example, weight in zip(examples, weights, strict=True)}
    units = (replace(unit, calls=unit.calls * times[unit.example]) for unit in captured.units)
    return replace(captured, units=tuple(units))


def _rates(
    model: torch.nn.Module, examples: Sequence[Example], target: Target, torch_device: torch.device
) -> dict[str, float]:
    """Eager's tokens per second in each part of a generation."""
    if not target.generation:
        return {}
    clock = Clock(torch_device)
    found: dict[str, float] = {}
    with torch.no_grad():
        for example, workload in zip(examples, target.workloads, strict=True):
            run = partial(model, *example.args, **example.kwargs)
            seconds = statistics.median([clock.time(run)[0] for _ in range(_EXAMPLE_TRACES)])
            found[workload.name] = workload.tokens / seconds
    return found


def _wanted(regions: Sequence[Region]) -> set[Node]:
    return {n for r in regions for n in (*r.inputs, *r.outputs, *masked_at(r))}


def _site(
    unit: CapturedUnit,
    region: Region,
    seen: dict[Node, CapturedValues],
    traces: Traces,
    device: DeviceSpec,
    roofline: Roofline,
    device_traces: DeviceTraces | None,
) -> Site:
    cost = cost_of(region, seen, device, roofline)
    work = [n for n in region.nodes if kind_of(n) is not Kind.VIEW] or list(region.nodes)
    module_path = _module_path(work[-1])
    prefix = ".".join(p for p in (unit.example, unit.path, module_path) if p)
    call_site = CallSite(
        name=f"{prefix}/{work[-1].name}" if prefix else work[-1].name,
        unit=unit.name,
        module_path=module_path,
        nodes=tuple(n.name for n in region.nodes),
        operators=tuple(str(n.target) for n in region.nodes),
        kinds=_kinds(region),
        inputs=tuple(seen[n].tensor for n in region.inputs if n in seen),
        outputs=tuple(seen[n].tensor for n in region.outputs if n in seen),
        calls=unit.calls,
        time_s=traces.time_of(region.nodes),
        flops=cost.flops,
        bytes=cost.bytes,
        dtype=cost.dtype,
        sol_s=cost.sol_s,
        kernels=device_traces.kernels_of(region.nodes) if device_traces else (),
    )
    return Site(call_site, region, seen, cost, unit.calls)


def _kinds(region: Region) -> dict[str, int]:
    """Operators of a region by kind, without those that move no data."""
    working = [node for node in region.nodes if kind_of(node) not in _IDLE]
    kinds = Counter("gather" if op_name(node) in GATHERS else kind_of(node).value for node in working)
    return dict(sorted(kinds.items()))


def _module_path(node: Node) -> str:
    """Path of the module whose forward called the operator."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [str(entry[0]) for entry in stack.values()]
    return paths[-1].replace("L['self'].", "").replace("L['self']", "") if paths else ""


def _check_shares(
    bottlenecks: Sequence[Bottleneck],
    sites: Sequence[Site],
    whole: CapturedUnit | None,
    torch_device: torch.device,
) -> tuple[Bottleneck, ...]:
    """Ablate the largest optimizable bottlenecks, only if the model is one unit."""
    checked = list(bottlenecks)
    if whole is None:
        return tuple(checked)
    by_name = {s.call_site.name: s.region for s in sites}
    for index, bottleneck in enumerate(checked[:_ABLATED]):
        if not bottleneck.optimizable:
            continue
        regions = [by_name[c.name] for c in bottleneck.call_sites]
        nodes = {n for r in regions for n in r.nodes}
        outputs = {n for r in regions for n in r.outputs}
        share = ablate(whole, nodes, outputs, torch_device, _ABLATION_ROUNDS)
        checked[index] = bottleneck.model_copy(update={"ablation_share": share})
    return tuple(checked)


def _least_bytes(captured: Capture) -> float:
    """See `Profile.least_bytes`."""
    whole = captured.whole
    return least_bytes(whole.graph_module.graph) if whole and whole.calls == 1 else 0.0


def _workload_bytes(captured: Capture, examples: Sequence[Example]) -> dict[str, float]:
    """See `Profile.workload_bytes`."""
    units = [unit for unit in captured.units if not unit.path and unit.calls == 1]
    whole = len(units) == len(captured.units) == len(examples)
    return {unit.example: least_bytes(unit.graph_module.graph) for unit in units if whole}


def _rest(
    model: torch.nn.Module,
    examples: Sequence[Example],
    weights: Sequence[int],
    captured: Capture,
    restore: Callable[[], None],
    rounds: int,
    device_traces: DeviceTraces | None,
    torch_device: torch.device,
) -> list[CallSite]:
    """Call sites without nodes: work outside the exported units and, on a GPU, the host's time.

    Args:
        weights: calls of each example in one forward.
        restore: see `measure`.
        rounds: forwards that are traced without kernel times, as many as for their whole time.
    """
    found: dict[str, float] = {}
    for example, times in zip(examples, weights, strict=True):
        exported = [unit.path for unit in captured.units if unit.example == example.name]
        if exported == [""]:
            continue

        def forward(call: Example = example) -> None:
            restore()
            model(*call.args, **call.kwargs)

        watch = KernelTime() if device_traces else WallClock(Clock(torch_device).drain)
        traces = _DEVICE_TRACES if device_traces else rounds
        for path, seconds in self_times(model, forward, exported, traces, watch).items():
            found[path] = found.get(path, 0.0) + times * seconds
    return [
        *(
            CallSite(
                name=f"{path or 'model'} (not exported)", module_path=path, nodes=(), operators=(), time_s=t
            )
            for path, t in found.items()
            if t > 0
        ),
        *([device_traces.call_site()] if device_traces else []),
    ]


def _attributed(sites: Sequence[Site], rest: Sequence[CallSite]) -> float:
    """Seconds of one forward that belong to a call site."""
    return sum(s.call_site.time_s * s.calls for s in sites) + sum(c.time_s for c in rest)


def _far_from_whole(attributed: float) -> list[str]:
    if _LEAST_ATTRIBUTED <= attributed <= _MOST_ATTRIBUTED:
        return []
    less = "the rest is Python between operators, or calls that differ from the first one of their module"
    more = "operators take longer one by one"
    why = less if attributed < 1 else more
    return [
        f"the times below add up to {attributed:.0%} of a forward: {why}; compare shares only with each other"
    ]


def _unsteady(traces: Traces) -> list[str]:
    if not traces.unsteady:
        return []
    return [
        f"the machine was unsteady: the middle half of the eager forwards spreads over "
        f"{traces.spread:.0%} of their median; profile again when it is idle"
    ]

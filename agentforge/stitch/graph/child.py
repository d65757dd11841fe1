"""Child process of stitching: captures the user's model and rewrites its units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.export._trace  # see profiling/worker.py

from agentforge.problems.kernelbench import import_root, load_problem
from agentforge.profiling.examples import examples_of
from agentforge.profiling.graph.capture import Capture, CapturedUnit, capture_examples, warm_up
from agentforge.profiling.graph.operators import Kind, kind_of
from agentforge.schema import Target

from ..moves import carry_out
from .dataflow import Replacement
from .printer import Unprintable
from .ranged import ranges_of
from .rewrite import RewrittenUnit, outline, rewrite

_SEED = 0


def rewrite_target(payload: Mapping[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Rewrite the units of a target for several selections of kernels; for none, only describe the model.

    Args:
        payload: has these keys. `target`. `sites`: each with
            `name`, `unit`, `nodes` and `kernel`. `selections`: each with `kernels` (names), `everything`
            (also units without kernels), `packed` (products from packed weights), `streams` (use several)
            and `moves` (kinds).
            `measured`: for streams, call sites with `unit`, `nodes`, `time_s` and `fill`.
            `fewer`: numbers of selections that are rewritten once more without each of the moves that found
            a place, if there are several.

    Returns:
        Has these keys.
            `outline`: plan of the whole model without generated code, for torch.compile.
            `fewer`: the further selections.
            `selections`: of the selections, then of `fewer`, each with `units` (plans), `ranges` (units for
                ranges of shapes), `texts` (sources by file), `constants`, `sites` (kernel by replaced site),
                `refused` (reason by site), `saved_s` (seconds saved per forward) and `moves` (places by
                kind, in one forward).
            `calls`: calls of each unit in one forward; empty without selections.
            `notes`: remarks for the report.
    """
    target = Target.model_validate(payload["target"])
    with import_root(target.definition.import_root):
        problem = load_problem(target.definition)
        device = torch.device(target.device)
        model = problem.build(_SEED).to(device)
        ranged = bool(target.shapes) and any(s["kernels"] for s in payload["selections"])
        calls = (*target.workloads, *target.probes) if ranged else target.workloads
        examples = examples_of(problem, calls, _SEED, device)
        if payload["selections"]:
            report("exporting the model")
            capture = capture_examples(model, examples)
        else:
            capture = Capture(())
            for example in examples:  # the first call may create modules and parameters
                warm_up(model, example)
        notes = list(capture.notes)
        every = {unit.name: unit for unit in capture.units}
        unmeasured = {w.name for w in target.probes}
        units = {name: unit for name, unit in every.items() if unit.example not in unmeasured}
        rewrite_selection = partial(_rewrite_selection, model, units, payload["sites"], payload["measured"])
        wanted: list[Mapping[str, Any]] = payload["selections"]
        selections = [rewrite_selection(**selection) for selection in wanted]
        fewer = [
            {**wanted[number], "moves": [kind for kind in places if kind != one]}
            for number in payload["fewer"]
            if len(places := selections[number]["moves"]) > 1
            for one in places
        ]
        selections += [rewrite_selection(**selection) for selection in fewer]
        for selection, found in zip([*wanted, *fewer], selections, strict=True):
            found["ranges"] = []
            if ranged and selection["kernels"] and not selection["everything"]:
                rewriter = partial(_alike, model, payload["sites"], selection)
                found["ranges"], remarks = ranges_of(target, model, every, rewriter)
                notes += remarks
        try:
            whole = outline(model, "", (examples[0].args, dict(examples[0].kwargs)))
        except Unprintable:  # torch.compile needs no description of the call
            whole = outline(model, "")
    return {
        "outline": whole,
        "fewer": fewer,
        "selections": selections,
        "calls": {name: unit.calls for name, unit in units.items()},
        "notes": notes,
    }


def _alike(
    model: torch.nn.Module,
    sites: Sequence[Mapping[str, Any]],
    selection: Mapping[str, Any],
    units: Sequence[CapturedUnit],
) -> list[RewrittenUnit] | None:
    """The same model at several shapes, with the kernels that are in all of those that have call sites."""
    names = {site["unit"] for site in sites}
    known = [unit for unit in units if unit.name in names]
    places = [{(s["kernel"], tuple(s["nodes"])) for s in sites if s["unit"] == unit.name} for unit in known]
    shared = set.intersection(*places) if places else set()
    wanted = [
        {"name": nodes[-1], "kernel": kernel, "nodes": nodes}
        for kernel, nodes in sorted(shared)
        if kernel in selection["kernels"]
    ]
    if not wanted:
        return None
    found = []
    for unit in units:
        replacements, missing = _replacements(unit, wanted)
        if missing:
            return None
        found.append(rewrite(unit, model, replacements, ""))
    return found


def _rewrite_selection(
    model: torch.nn.Module,
    units: Mapping[str, CapturedUnit],
    sites: Sequence[Mapping[str, Any]],
    measured: Sequence[Mapping[str, Any]],
    *,
    kernels: Sequence[str],
    everything: bool,
    packed: bool,
    streams: bool,
    moves: Sequence[str],
) -> dict[str, Any]:
    plans: list[dict[str, Any]] = []
    texts: dict[str, str] = {}
    constants: dict[str, str] = {}
    done: dict[str, str] = {}
    refused: dict[str, str] = {}
    saved_s = 0.0
    places = Counter[str]()
    for name in dict.fromkeys([*(site["unit"] for site in sites), *(units if everything else ())]):
        wanted = [site for site in sites if site["unit"] == name and site["kernel"] in kernels]
        if not wanted and not everything:
            continue
        unit = units.get(name)
        if unit is None:
            refused.update({site["name"]: "its module was not captured again" for site in wanted})
            continue
        found: dict[str, int] = {}
        if moves:
            unit, found = carry_out(unit, moves, {node for site in wanted for node in site["nodes"]})
        replacements, missing = _replacements(unit, wanted)
        refused.update(missing)
        source_name = f"units/unit{len(plans)}.py"
        try:
            times = _node_times(unit, measured) if streams else None
            module = model.get_submodule(unit.path)
            rewritten = rewrite(unit, module, replacements, source_name, times, packed)
        except Unprintable as error:
            reason = f"its module cannot be written as straight-line code: it has {error}"
            refused.update({site["name"]: reason for site in wanted})
            continue
        refused.update(rewritten.refused)
        if rewritten.sites or everything:
            plans.append(rewritten.plan)
            texts[source_name] = rewritten.source
            constants.update(rewritten.constants)
            done.update(rewritten.sites)
            saved_s += rewritten.saved_s * unit.calls
            places.update({kind: number * unit.calls for kind, number in found.items()})
    return {
        "units": plans,
        "texts": texts,
        "constants": constants,
        "sites": done,
        "refused": refused,
        "saved_s": saved_s,
        "moves": dict(places),
    }


def _node_times(unit: CapturedUnit, measured: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Seconds and fill of each computing node: an equal part of its call site's."""
    working = {n.name for n in unit.graph_module.graph.nodes if kind_of(n) not in (Kind.VIEW, Kind.NONE)}
    times: dict[str, tuple[float, float]] = {}
    for site in measured:
        names = [name for name in site["nodes"] if name in working] if site["unit"] == unit.name else []
        times.update(dict.fromkeys(names, (site["time_s"] / max(len(names), 1), site["fill"])))
    return times


def _replacements(
    unit: CapturedUnit, sites: Sequence[Mapping[str, Any]]
) -> tuple[list[Replacement], dict[str, str]]:
    """Nodes of the sites in the graph, and the missing sites with the reason."""
    order = {node: index for index, node in enumerate(unit.graph_module.graph.nodes)}
    by_name = {node.name: node for node in order}
    found: list[Replacement] = []
    missing: dict[str, str] = {}
    taken: set[str] = set()
    for site in sites:
        names = set(site["nodes"])
        if names - by_name.keys():
            missing[site["name"]] = f"the graph no longer has {sorted(names - by_name.keys())[0]}"
            continue
        if names & taken:
            missing[site["name"]] = "another kernel replaces a part of it"
            continue
        taken |= names
        nodes = tuple(sorted((by_name[name] for name in names), key=order.__getitem__))
        entering = dict.fromkeys(s for n in nodes for s in n.all_input_nodes if s.name not in names)
        leaving = tuple(n for n in nodes if any(user.name not in names for user in n.users))
        found.append(Replacement(site["name"], site["kernel"], nodes, tuple(entering), leaving))
    return found, missing

"""A unit for a range of shapes: the common text of the units that were rewritten for several shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from agentforge.problems.sizes import Sizes, common
from agentforge.profiling.eager_branches import eager_branches
from agentforge.profiling.graph.capture import CapturedUnit, quiet
from agentforge.schema import Target, TensorInput, Workload

from .dataflow import written_to
from .printer import Unprintable

_LEAST = 3
"""Shapes that a range is made from: two fix a line, the third confirms it."""


def ranges_of(
    target: Target, model: torch.nn.Module, units: Mapping[str, CapturedUnit], rewrite: Callable[..., Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Units for ranges of shapes, with the names of the units that they replace, and notes on what has none.

    Shapes with the same sizes of 1 have a unit in common, because `torch.export` gives them other graphs.

    Args:
        units: captured for each workload and probe of the target, by name.
        rewrite: returns rewritten units with the same kernels in each; None if that is impossible.
    """
    calls = [*target.workloads, *target.probes]
    sizes = [_sizes(target, w) for w in calls]
    groups: dict[tuple[bool, ...], list[int]] = {}
    for number, found in enumerate(sizes):
        groups.setdefault(tuple(n == 1 for n in found.values()), []).append(number)
    ranges, notes = [], []
    for ones, members in groups.items():
        captured = [units.get(f"@{calls[n].name}") for n in members]
        where = [
            (1, 1) if one else (max(2, r.low) if r.low == 1 else r.low, r.high)
            for one, r in zip(ones, target.shapes, strict=True)
        ]
        try:
            made = _range([u for u in captured if u], [sizes[n] for n in members], rewrite)
            reason = _unproven(target, model, calls[members[-1]], where)
        except Unprintable as error:
            made, reason = None, f"it has {error}"
        if made is None or reason:
            names = ", ".join(calls[n].name for n in members)
            notes.append(f"only the measured ones of {names} have kernels: {reason or 'their graphs differ'}")
            continue
        low, high = zip(*where, strict=True)
        replaced = [f"@{w.name}" for w in target.workloads]
        made |= {
            "sizes": [_place(target.workloads[0], r.places[0]) for r in target.shapes],
            "names": list(sizes[0]),
            "low": low,
            "high": high,
            "units": [name for name in replaced if name in {f"@{calls[n].name}" for n in members}],
        }
        ranges.append(made)
    return ranges, notes


def _sizes(target: Target, workload: Workload) -> Sizes:
    shapes = {i.name: i.shape for i in workload.inputs if isinstance(i, TensorInput)}
    return {re.sub(r"\W", "_", r.name): shapes[r.places[0][0]][r.places[0][1]] for r in target.shapes}


def _place(workload: Workload, place: tuple[str, int]) -> dict[str, Any]:
    """Where the runtime reads a size: an argument by position and by name, and its dimension."""
    positional = [i.name for i in workload.inputs if not i.keyword]
    name, dimension = place
    position = positional.index(name) if name in positional else len(positional)
    return {"position": position, "name": name, "dimension": dimension}


def _range(units: Sequence[CapturedUnit], sizes: Sequence[Sizes], rewrite: Callable[..., Any]) -> Any:
    """Plan and source for these sizes and those between them; None if there are none in common."""
    if len(units) < _LEAST or len(units) < len(sizes) or any(u.path or u.constants for u in units):
        return None
    for unit in units:
        if any(n.op in ("placeholder", "get_attr") for n in written_to(list(unit.graph_module.graph.nodes))):
            return None  # a kernel that fails midway could not be undone
    rewritten = rewrite(units)
    if rewritten is None or any(r.plan["derived"] for r in rewritten):
        return None
    plans = [json.dumps({**r.plan, "unit": "", "source": ""}) for r in rewritten]
    sources = [re.sub(r"  # .*$", "", r.source, flags=re.MULTILINE) for r in rewritten]
    plan, source = common(plans, sizes), common(sources, sizes)
    if plan is None or source is None:
        return None
    return {"plan": asdict(plan), "source": asdict(source), "example": list(sizes[0].values())}


def _unproven(
    target: Target, model: torch.nn.Module, workload: Workload, where: Sequence[tuple[int, int]]
) -> str:
    """Why the model may run other operators elsewhere in the range; empty if torch.export excludes it."""
    named = {}
    for r, (low, high) in zip(target.shapes, where, strict=True):
        if low < high:
            dim = torch.export.Dim(re.sub(r"\W", "_", r.name), min=low, max=high)
            named.update(dict.fromkeys(r.places, dim))
    tensors = [i for i in workload.inputs if isinstance(i, TensorInput)]
    shapes: dict[str, Any] = {i.name: None for i in workload.inputs}
    shapes |= {
        i.name: {d: named[i.name, d] for d in range(len(i.shape)) if (i.name, d) in named} for i in tensors
    }
    args, kwargs = workload.arguments(
        lambda spec: torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype.value), device=target.device)
    )
    try:
        with quiet(), torch.no_grad(), eager_branches():
            torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=False)
    except Exception:
        return "torch.export finds that the model's operators depend on the shape"
    return ""

"""Kernels for a range of sizes: the common text of the programs for several sizes in it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from agentforge.problems.sizes import Sizes, Text, common, exact_tiles, named_sizes, skeleton
from agentforge.schema import CannotCode, InputSpec, TensorInput, Workload

from ..ir.lazy import dense_strides
from ..ir.options import Options
from ..lower.lowering import Program
from .render import Case, CaseWriter, General, Point

_STEPS = 4
"""Sizes of each dimension for which programs are compared."""
_MOST = 10
"""Programs that are compared, beside those of the workloads."""
_LEAST = 3
"""Programs of one structure that a general one is made from: two fix a line, the third confirms it."""
_ARRAY = re.compile(r"\b(?:float|double|bool|int\w*_t|uint\w*_t) \w+\[$")
"""A C++ array's declaration, whose size must be a constant."""


def general_programs(
    cases: Sequence[Case], lowered: Callable[[Workload], Program], options: Options
) -> tuple[list[Case], list[General]]:
    """The cases that programs for ranges of sizes cover, and these programs, the most general first.

    Calls with the same sizes of 1 share programs: such a dimension is no loop.

    Args:
        lowered: the reference, traced and lowered for a workload.
    """
    groups: dict[tuple[tuple[bool, ...], ...], list[Case]] = {}
    for case in cases:
        ones = tuple(tuple(n == 1 for n in t.shape) for t in _tensors(case.workload))
        groups.setdefault(ones, []).append(case)
    covered: list[Case] = []
    found: list[General] = []
    for group in groups.values():
        if len(group) > 1:
            known, made = _programs(group, lowered, options, len(groups) > 1, len(found))
            covered += known
            found += made
    return covered, found


def _programs(
    cases: Sequence[Case],
    lowered: Callable[[Workload], Program],
    options: Options,
    down: bool,
    number: int,
) -> tuple[list[Case], list[General]]:
    """Programs for ranges of sizes between those of the cases, from 2 if `down`, and the cases in them."""
    names, sizes = named_sizes([[t.shape for t in _tensors(c.workload)] for c in cases])
    layout = common([_layouts(c.workload) for c in cases], sizes) if names else None
    if layout is None:
        return [], []
    given: list[Point] = [tuple(s.values()) for s in sizes]
    programs = {p: _texts(c.program, options) for p, c in zip(given, cases, strict=True)}
    graphs = {p: _graph(c.program) for p, c in zip(given, cases, strict=True)}
    for point in _between(given, down):
        workload = _resized(cases[0].workload, layout, dict(zip(names, point, strict=True)))
        try:
            program = lowered(workload)
        except CannotCode:
            continue
        programs[point], graphs[point] = _texts(program, options), _graph(program)
    alike: dict[str, list[Point]] = {}
    for point, texts in programs.items():
        alike.setdefault(skeleton("".join(texts.values())), []).append(point)
    found: list[General] = []
    for points in sorted(alike.values(), key=len, reverse=True):
        made = _made({p: programs[p] for p in points}, names, f"g{number + len(found)}")
        if made is not None and _one_graph(made, graphs):
            found.append(made)
    covered = [c for p, c in zip(given, cases, strict=True) if any(g.holds(p) for g in found)]
    low, high = (tuple(map(pick, zip(*programs, strict=True))) for pick in (min, max))
    if found and (len(found) > 1 or (found[0].low, found[0].high) != (low, high)):
        beyond = replace(found[0], low=low, high=high, kernels=[])  # sizes outside of these ranges
        found += [beyond] if _one_graph(beyond, graphs) else []
    return covered, found


def _graph(program: Program) -> str:
    """The traced operators, with their arguments and the shapes of their results."""
    lines = []
    for node in program.traced.graph.nodes:
        value = node.meta.get("val")
        values = value if isinstance(value, (tuple, list)) else [value]
        shapes = [tuple(v.shape) for v in values if isinstance(v, torch.Tensor)]
        lines.append(f"{node.format_node()} {shapes} {node.meta.get('number')}")
    return "\n".join(lines)


def _one_graph(program: General, graphs: dict[Point, str]) -> bool:
    """True if the reference does the same at all sizes in a program's range for which it was traced."""
    points = [p for p in graphs if program.holds(p)]
    sizes = [dict(zip(program.sizes, p, strict=True)) for p in points]
    return common([graphs[p] for p in points], sizes) is not None


def _tensors(workload: Workload) -> list[TensorInput]:
    return [i for i in workload.inputs if isinstance(i, TensorInput)]


def _layouts(workload: Workload) -> str:
    return repr([(t.shape, t.strides or dense_strides(t.shape)) for t in _tensors(workload)])


def _resized(workload: Workload, layout: Text, sizes: Sizes) -> Workload:
    """A workload for other sizes."""
    layouts = iter(ast.literal_eval(layout.at(sizes)))

    def resized(spec: InputSpec) -> InputSpec:
        if not isinstance(spec, TensorInput):
            return spec
        shape, strides = next(layouts)
        strides = None if strides == dense_strides(shape) else strides
        return spec.model_copy(update={"shape": shape, "strides": strides})

    return workload.model_copy(update={"inputs": tuple(map(resized, workload.inputs))})


def _between(points: Sequence[Point], down: bool) -> list[Point]:
    """A grid of sizes between those of the points, odd ones among them."""
    axes = []
    for values in zip(*points, strict=True):
        low, high = 2 if down else min(values), max(values)
        steps = {round(low * (high / low) ** (n / (_STEPS - 1))) for n in range(_STEPS)}
        axes.append(sorted({low, high, *(min(n | 1, high) for n in steps)}))
    grid = [p for p in itertools.product(*axes) if p not in points]
    return grid[:: max(1, len(grid) // _MOST)][:_MOST]


def _texts(program: Program, options: Options) -> dict[str, str]:
    """The texts of a program that depend on sizes, with `@` in the place of the prefix of kernels."""
    writer = CaseWriter(program, options, "@")
    script = writer.script("")
    texts = {"lines": "\n".join(script["lines"]), "result": script["result"]}
    texts["arguments"] = repr(script["arguments"])
    texts["layouts"] = repr([(t["shape"], t["strides"]) for t in script["signature"]])
    texts["dtypes"] = ", ".join(t["dtype"] for t in script["signature"])
    for kernel in writer.kernels:
        head = f"{kernel['result']} {kernel['name']}({', '.join(kernel['parameters'])}) {kernel['summary']}"
        texts |= {f"head {kernel['name']}": head, f"body {kernel['name']}": kernel["body"]}
    return texts


def _made(
    programs: dict[Point, dict[str, str]], names: dict[str, tuple[int, int]], prefix: str
) -> General | None:
    """The common program; None if there is none."""
    points = list(programs)
    if len(points) < _LEAST:
        return None
    sizes = [dict(zip(names, p, strict=True)) for p in points]
    texts = {key: common([t[key] for t in programs.values()], sizes) for key in programs[points[0]]}
    found = {key: text for key, text in texts.items() if text is not None}
    if len(found) < len(texts) or any(_ARRAY.search(p) for t in found.values() for p in t.parts[:-1]):
        return None
    python = {key: text.filled(text.terms) for key, text in found.items()}
    passed = ", ".join(names)
    kernels = []
    for key in (k for k in found if k.startswith("body ")):
        result, _, rest = python[key.replace("body", "head", 1)].partition(" ")
        name, _, rest = rest.partition("(")
        parameters, _, summary = rest.partition(") ")
        body = found[key].filled([term.replace("//", "/") for term in found[key].terms])
        kernels.append({
            "name": name.replace("@", f"{prefix}_"), "body": body, "summary": summary, "result": result,
            "parameters": [parameters, *(f"int64_t {n}" for n in names)],
        })  # fmt: skip
    lines = re.sub(r"^((?:wrong = )?lib\.@.*)\)$", rf"\1, {passed})", python["lines"], flags=re.MULTILINE)
    script = {
        "name": prefix,
        "arguments": [*ast.literal_eval(python["arguments"]), *names],
        "lines": lines.replace("lib.@", f"lib.{prefix}_").splitlines(),
        "result": python["result"],
        "layouts": python["layouts"],
        "dtypes": python["dtypes"],
    }
    low, high = (tuple(pick(axis) for axis in zip(*points, strict=True)) for pick in (min, max))
    multiples = tuple(sorted({m for text in found.values() for m in exact_tiles(text, sizes)}))
    return General(low, high, names, multiples, script, kernels)

"""Proof of engagement: every installed kernel ran as often as expected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from agentforge.languages.cpp.shipped.agentforge_cpp import parse_prototypes
from agentforge.languages.cuda.shipped.agentforge_cuda import parse_kernels
from agentforge.schema import Evaluation, Solution

from .runtime.branches import STREAMS
from .runtime.derived import DERIVED
from .runtime.graph import REPLAY
from .runtime.products import LOWERED, PACKED
from .variants import Variant

_WAYS = {
    REPLAY: "a CUDA graph",
    STREAMS: "a forward on several streams",
    PACKED: "a product from packed weights",
    DERIVED: "a forward with derived weights",
    LOWERED: "a product in lower precision",
}
"""Counted like kernels, but not kernels: counter name to its description."""


def seen_runs(evaluation: Evaluation) -> dict[str, int]:
    """Calls of the solution's own kernels and functions, counted by the candidate process in one forward."""
    return {use.name: use.calls for use in evaluation.kernels if use.own}


def engagement(variant: Variant, evaluation: Evaluation, solutions: Mapping[str, Solution]) -> list[str]:
    """Return the reasons to doubt that the kernels did the work; empty if all of them ran."""
    seen = seen_runs(evaluation)
    problems: list[str] = []
    for name, expected in variant.expected.items():
        runs = seen.get(name, 0)
        if runs != expected:
            what = _WAYS.get(name, f"kernel {name}")
            problems.append(f"{what} ran {runs} times in one forward, not {expected}")
            continue
        functions = set() if name in _WAYS else _functions(solutions[name])
        if functions and not any(seen.get(function) for function in functions):
            problems.append(f"kernel {name} was entered, but none of its compiled functions ran")
    return problems


def _functions(solution: Solution) -> set[str]:
    """`extern "C"` functions of a solution's C++ and CUDA C++ sources."""
    parsers = {
        ".cpp": parse_prototypes,
        ".cc": parse_prototypes,
        ".cxx": parse_prototypes,
        ".cu": parse_kernels,
    }
    found = ((parsers.get(PurePosixPath(s.path).suffix), s.content) for s in solution.sources)
    return {name for parse, text in found if parse for name in parse(text)}

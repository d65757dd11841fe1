"""Which inputs and weights could a kernel ignore, or round to half precision, without being found out?

One input or weight after the other is replaced in the reference (zeros, ones, other values). Where the
answer then changes, but by less than the task allows, a kernel that ignores it would pass: the task cannot
tell right from wrong there. Where the answer does not depend on it at all (a bias before a normalisation, an
argument that forward never reads), ignoring it is right, and that is a note.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from .leaves import Leaf
from .party import PartyFailure
from .tolerance import Bound, measure

if TYPE_CHECKING:
    from .bench import Bench, Course

_INDEPENDENT = 1e-9
"""Relative change in float64 below which an answer does not depend on what was replaced."""
_NAMED = 8

Run = Callable[[bool], "list[Leaf] | None"]
"""Gives a mutant's answer, in float64 where asked; None where there is nothing to change."""


@dataclass
class Sensitivity:
    """What was found."""

    ignorable: list[str] = field(default_factory=list)
    """Inputs and weights that matter, but less than the tolerance."""
    independent: list[str] = field(default_factory=list)
    """Inputs and weights that the answer does not depend on."""
    tried: int = 0
    untried: int = 0
    """Left out because the time was up."""

    def weaknesses(self) -> list[str]:
        """Sentences for people, one each."""
        return [
            f"the task cannot tell {what} from the right answer: nothing that passes it is proven"
            for what in self.ignorable
        ]

    def notes(self) -> list[str]:
        found = []
        if self.independent:
            found.append(f"the reference gives the same as {_listed(self.independent)}")
        if self.untried:
            found.append(f"{self.untried} more mutants of the reference were not tried for lack of time")
        return found


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def examine(
    bench: Bench, course: Course, outputs: Sequence[Leaf], bounds: Sequence[Bound], seconds: float
) -> Sensitivity:
    """Try the mutants of a reference on the content of slot 0; the slot has it again afterwards.

    Args:
        bench: whose eager worker has the course; slots 0 and 1 hold two draws.
        course: workload made ready.
        outputs: of the reference for slot 0.
        bounds: one for each leaf.
        seconds: after which no further mutant is tried.
    """
    found, deadline = Sensitivity(), time.monotonic() + seconds
    exact = bench.exact(course, 0)
    seen: dict[str, set[str]] = {}
    for name, run in _mutants(bench, course):
        if time.monotonic() > deadline:
            found.untried += 1
            continue
        try:
            wrong = run(False)
            if wrong is None:
                continue
            found.tried += 1
            seen.setdefault(name, set()).add(_outcome(wrong, run, outputs, exact, bounds))
        except PartyFailure:
            # Not defined for such values; a worker that lives on will tell its next answer.
            if not bench.eager.worker.running:
                raise
    found.ignorable = [name for name, outcomes in seen.items() if _IGNORABLE in outcomes]
    found.independent = [name for name, outcomes in seen.items() if outcomes == {_SAME}]
    return found


_SAME, _IGNORABLE, _TOLD = "same", "ignorable", "told"


def _outcome(
    wrong: Sequence[Leaf],
    run: Run,
    outputs: Sequence[Leaf],
    exact: Sequence[Leaf] | None,
    bounds: Sequence[Bound],
) -> str:
    """Whether a mutant's answer is told from the right one, is the right one, or merely passes for it."""
    if not _within(wrong, outputs, bounds):
        return _TOLD
    better = wrong if exact is None else run(True)
    return _SAME if better is not None and _same(better, outputs if exact is None else exact) else _IGNORABLE


def _mutants(bench: Bench, course: Course) -> Iterator[tuple[str, Run]]:
    """All mutants; those of one input or weight have one name, as any of them stands for ignoring it."""
    first, second = ([t.clone() for t in course.inputs.tensors(slot)] for slot in (0, 1))
    replaced = _Replaced(bench, course, first)
    halved = [t.half().to(t.dtype) if t.dtype in (torch.float32, torch.float64) else t for t in first]
    if any(a is not b for a, b in zip(first, halved, strict=True)):
        yield "an answer computed from half-precision inputs", replaced(dict(enumerate(halved)))
    for number, (tensor, other) in enumerate(zip(first, second, strict=True)):
        name = (
            f"an answer that ignores input {number}" if len(first) > 1 else "an answer that ignores its input"
        )
        for content in (other, torch.zeros_like(tensor), torch.ones_like(tensor)):
            yield name, replaced({number: content})
    for key in bench.weights.state:
        for value in (0.0, 1.0):
            yield f"an answer that ignores {key}", _without(bench, key, value)


class _Replaced:
    """Runs the reference on slot 0 with some inputs replaced."""

    def __init__(self, bench: Bench, course: Course, original: Sequence[torch.Tensor]) -> None:
        self._bench, self._course, self._original = bench, course, original

    def __call__(self, changes: dict[int, torch.Tensor]) -> Run:
        def run(exactly: bool) -> list[Leaf] | None:
            targets = self._course.inputs.tensors(0)
            if all(torch.equal(self._original[n], t) for n, t in changes.items()):
                return None
            try:
                for n, tensor in changes.items():
                    targets[n].copy_(tensor)
                if exactly:
                    return self._bench.exact(self._course, 0)
                self._bench.eager.call(0)
                return self._bench.eager.fetch(0)
            finally:
                for n in changes:
                    targets[n].copy_(self._original[n])

        return run


def _without(bench: Bench, key: str, value: float) -> Run:
    def run(exactly: bool) -> list[Leaf] | None:
        body = {"op": "without", "slot": 0, "key": key, "value": value, "exact": exactly}
        reply = bench.eager.request(body)
        return bench.eager.leaves(reply) if reply["changed"] else None

    return run


def _within(wrong: Sequence[Leaf], right: Sequence[Leaf], bounds: Sequence[Bound]) -> bool:
    """Whether every tensor and scalar of a wrong answer would be accepted."""
    if [x.path for x in wrong] != [x.path for x in right]:
        return False
    for ours, theirs, bound in zip(wrong, right, bounds, strict=True):
        if not isinstance(theirs.value, torch.Tensor):
            if ours.value != theirs.value:
                return False
        elif (
            not isinstance(ours.value, torch.Tensor)
            or ours.value.shape != theirs.value.shape
            or ours.value.dtype != theirs.value.dtype
            or not measure(ours.value, theirs.value, bound).within(bound)
        ):
            return False
    return True


def _same(ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> bool:
    """Whether two answers differ by rounding alone, in float64."""
    bound = Bound(_INDEPENDENT, _INDEPENDENT, 0.0, 0.0)
    return _within(ours, theirs, [bound] * len(theirs))

"""Mutants of a reference: wrong answers of the kinds that cheap or lazy kernels give.

Some are made from the right answer alone (zeros, its mean), some by running the reference on other inputs or
without a weight: what a kernel gives that ignores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from .leaves import Leaf

if TYPE_CHECKING:
    from .bench import Bench, Course

_PIECE = 1 << 20

Make = Callable[[Sequence[Leaf], bool], "list[Leaf] | None"]
"""Gives the wrong answer to what slot 0 holds, from the right one, in float64 where asked; None where it
would be no other."""


@dataclass(frozen=True)
class Mutant:
    """One kind of wrong answer; several may have one name, as each of them stands for it."""

    name: str
    """Reads after "cannot tell": `zeros`, `an answer that ignores input 1`."""
    make: Make
    fixed: bool = False
    """Made without looking at the inputs, or by copying one: never right, even where it is the same."""


def mutants(bench: Bench, course: Course) -> Iterator[Mutant]:
    """All mutants for a workload, the cheap ones first; slots 0 and 1 hold two draws."""
    yield Mutant("zeros", _each(torch.zeros_like), fixed=True)
    yield Mutant("its own mean", _each(_mean), fixed=True)
    yield Mutant("one wrong row", _each(_one_row), fixed=True)
    bench.eager.call(1)
    stale = bench.eager.fetch(1)
    yield Mutant("the answer to other inputs", _others({x.path: x.value for x in stale}), fixed=True)
    del stale
    number = len(course.inputs.layouts)
    for k in range(number):
        yield Mutant(f"a copy of input {k}", _copied(course, k), fixed=True)
    if any(t.dtype in (torch.float32, torch.float64) for t in course.inputs.tensors(0)):
        halves: dict[int, _Fill] = dict.fromkeys(range(number), _halved)
        name = "an answer computed in half precision"
        yield Mutant(name, _Replaced(bench, course, halves, _rounded(bench)))
    for k in range(number):
        name = f"an answer that ignores input {k}" if number > 1 else "an answer that ignores its input"
        for content in (_other(course, k), torch.zeros_like, torch.ones_like):
            yield Mutant(name, _Replaced(bench, course, {k: content}))
    for key in bench.weights.state:
        for value in (0.0, 1.0):
            yield Mutant(f"an answer that ignores {key}", _without(bench, key, value))


# -- from the right answer


def _each(change: Callable[[torch.Tensor], torch.Tensor | None]) -> Make:
    """Every tensor changed; at least one must be."""

    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        wrong = []
        for leaf in right:
            value = leaf.value
            if isinstance(value, torch.Tensor) and value.numel():
                value = change(value)
                if value is None:
                    return None
            wrong.append(Leaf(leaf.path, value))
        return wrong if any(isinstance(x.value, torch.Tensor) and x.value.numel() for x in wrong) else None

    return make


def _mean(value: torch.Tensor) -> torch.Tensor | None:
    if value.numel() < 2 or not value.is_floating_point():
        return None
    total = sum(float(part.sum(dtype=torch.float64)) for part in value.reshape(-1).split(_PIECE))
    return torch.full_like(value, total / value.numel())


def _one_row(value: torch.Tensor) -> torch.Tensor | None:
    """The last row replaced by its neighbour, or by zeros where there is none."""
    if value.dim() == 0:
        return None
    wrong = value.clone()
    wrong[-1] = wrong[-2] if wrong.shape[0] > 1 else 0
    # Rows that are alike anyway (a broadcast) make no mutant.
    return None if torch.equal(wrong, value) else wrong


def _others(values: dict[str, object]) -> Make:
    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        wrong = [Leaf(leaf.path, _fitting(values.get(leaf.path), leaf.value)) for leaf in right]
        return None if any(x.value is None for x in wrong) else wrong

    return make


def _copied(course: Course, number: int) -> Make:
    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        tensor = course.inputs.tensors(0)[number]
        wrong = [Leaf(leaf.path, _fitting(tensor, leaf.value)) for leaf in right]
        return None if any(x.value is None for x in wrong) else wrong

    return make


def _fitting(value: object, right: object) -> object:
    """A value that has the right one's form, or None."""
    if not isinstance(right, torch.Tensor):
        return right
    fits = isinstance(value, torch.Tensor) and value.shape == right.shape and value.dtype == right.dtype
    return value if fits else None


# -- from the reference, on other inputs or without a weight

_Fill = Callable[[torch.Tensor], torch.Tensor]


def _halved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.half().to(tensor.dtype) if tensor.dtype in (torch.float32, torch.float64) else tensor


def _other(course: Course, number: int) -> _Fill:
    return lambda _: course.inputs.tensors(1)[number]


class _Replaced:
    """Runs the reference on slot 0 with some inputs replaced; the slot has them again afterwards."""

    def __init__(
        self, bench: Bench, course: Course, fills: dict[int, _Fill], run: Make | None = None
    ) -> None:
        self._bench, self._course, self._fills = bench, course, fills
        self._run = run or self._as_it_is

    def __call__(self, right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        inputs = self._course.inputs
        with inputs.kept(0):
            if not self._replace():
                return None
            return self._run(right, exactly)

    def _replace(self) -> bool:
        """Whether anything is another afterwards."""
        tensors = self._course.inputs.tensors(0)
        changed = [self._fills[n](t) if n in self._fills else t for n, t in enumerate(tensors)]
        if all(torch.equal(changed[n], tensors[n]) for n in self._fills):
            return False
        self._course.inputs.give(0, changed)
        return True

    def _as_it_is(self, right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        if exactly:
            return self._bench.exact(self._course, 0)
        self._bench.eager.call(0)
        return self._bench.eager.fetch(0)


def _rounded(bench: Bench) -> Make:
    """With weights in half precision: less than what half-precision arithmetic would lose."""

    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        return bench.eager.leaves(bench.eager.request({"op": "rounded", "slot": 0, "exact": exactly}))

    return make


def _without(bench: Bench, key: str, value: float) -> Make:
    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        body = {"op": "without", "slot": 0, "key": key, "value": value, "exact": exactly}
        reply = bench.eager.request(body)
        return bench.eager.leaves(reply) if reply["changed"] else None

    return make

"""Mutants of a reference: wrong answers of the kinds that cheap or lazy kernels give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..baselines.baselines import Baselines
from ..baselines.prepared import PreparedWorkload
from ..inputs.transforms import less_precise
from ..workers.memory.shared_memory import Layout
from ..workers.pytree import Leaf, same_bytes

_PIECE = 1 << 20

Make = Callable[[Sequence[Leaf], bool], "list[Leaf] | None"]
"""Gives the wrong answer to the content of slot 0, from the right one, in float64 where asked; None if it
would be no other."""


@dataclass(frozen=True)
class Mutant:
    """One kind of wrong answer. Several variants of one kind share a name."""

    name: str
    """Reads after "cannot tell": `zeros`, `an answer that ignores input 1`."""
    make: Make
    fixed: bool = False
    """Made without reading the inputs, or by copying one: never right, even if it equals the answer."""
    as_computed: bool = False
    """Right if it is the answer to the last bit: an epsilon that rounding hides, in a buffer, which
    training leaves."""
    may_be_right: bool = False
    """Right if no content exposes it: the mean of many 8-bit numbers can have all bits of a 16-bit output."""
    lower_precision: bool = False

    @property
    def always(self) -> bool:
        """Tried however long the reference takes: the likeliest shortcuts, most without a run of it."""
        return self.fixed or self.lower_precision


def mutants(baselines: Baselines, prepared: PreparedWorkload) -> Iterator[Mutant]:
    """All mutants for a workload, the cheap ones first; slots 0 and 1 hold two draws."""
    yield Mutant("zeros", _each(torch.zeros_like), fixed=True)
    yield Mutant("NaN everywhere", _each(_nan), fixed=True)
    yield Mutant("its own mean", _each(_mean), fixed=True)
    yield Mutant("one wrong row", _each(_one_row), fixed=True)
    baselines.eager.call(1)
    stale = baselines.eager.fetch(1)
    yield Mutant("the answer to other inputs", _others({x.path: x.value for x in stale}), fixed=True)
    del stale
    number = len(prepared.inputs.layouts)
    for k in range(number):
        yield Mutant(f"a copy of input {k}", _copied(prepared, k), fixed=True)
    less: dict[int, _Fill] = dict.fromkeys(range(number), less_precise)
    lower = _rounded(baselines)
    floats = {t.dtype for t in prepared.inputs.tensors(0) if t.is_floating_point() or t.is_complex()}
    if baselines.definition.precision is not None:
        pass  # the user allowed it
    elif floats & {torch.float32, torch.float64, torch.complex64, torch.complex128}:
        name, make = "an answer computed in half precision", _Replaced(baselines, prepared, less, lower)
        yield Mutant(name, make, may_be_right=prepared.lowers, lower_precision=True)
    elif floats:
        name, make = "an answer computed in 8-bit precision", _Replaced(baselines, prepared, less, lower)
        yield Mutant(name, make, may_be_right=True, lower_precision=True)
    if any(_is_16_bit_matrix(layout) for layout in baselines.weights.state.values()):
        yield Mutant("an answer from 8-bit weights", lower, may_be_right=True, lower_precision=True)
    for k in range(number):
        name = f"an answer that ignores input {k}" if number > 1 else "an answer that ignores its input"
        for content in (_other(prepared, k), torch.zeros_like, torch.ones_like):
            yield Mutant(name, _Replaced(baselines, prepared, {k: content}))
    for key in baselines.weights.state:
        for value in (0.0, 1.0):
            untrained = key in baselines.weights.buffers
            without = _without(baselines, key, value)
            yield Mutant(f"an answer that ignores {key}", without, as_computed=untrained)


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


def _nan(value: torch.Tensor) -> torch.Tensor | None:
    return torch.full_like(value, torch.nan) if value.is_floating_point() else None


def _mean(value: torch.Tensor) -> torch.Tensor | None:
    if value.numel() < 2 or not value.is_floating_point():
        return None
    total = sum(float(part.sum(dtype=torch.float64)) for part in value.reshape(-1).split(_PIECE))
    return torch.full_like(value, total / value.numel())


def _one_row(value: torch.Tensor) -> torch.Tensor | None:
    """The last row replaced by its neighbour, or by zeros without one."""
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


def _copied(prepared: PreparedWorkload, number: int) -> Make:
    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        tensor = prepared.inputs.tensors(0)[number]
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


def _other(prepared: PreparedWorkload, number: int) -> _Fill:
    return lambda _: prepared.inputs.tensors(1)[number]


class _Replaced:
    """Runs the reference on slot 0 with some inputs replaced; the slot has them again afterwards."""

    def __init__(
        self,
        baselines: Baselines,
        prepared: PreparedWorkload,
        fills: dict[int, _Fill],
        run: Make | None = None,
    ) -> None:
        self._baselines, self._prepared, self._fills = baselines, prepared, fills
        self._run = run or self._as_it_is

    def __call__(self, right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        inputs = self._prepared.inputs
        with inputs.kept(0):
            if not self._replace():
                return None
            return self._run(right, exactly)

    def _replace(self) -> bool:
        """Whether anything is another afterwards."""
        tensors = self._prepared.inputs.tensors(0)
        changed = [self._fills[n](t) if n in self._fills else t for n, t in enumerate(tensors)]
        if all(same_bytes(changed[n], tensors[n]) for n in self._fills):
            return False
        self._prepared.inputs.give(0, changed)
        return True

    def _as_it_is(self, right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        if exactly:
            return self._baselines.exact(self._prepared, 0)
        self._baselines.eager.call(0)
        return self._baselines.eager.fetch(0)


def _is_16_bit_matrix(encoded: Mapping[str, Any]) -> bool:
    layout = Layout.from_json(encoded)
    return layout.dtype in ("float16", "bfloat16") and len(layout.shape) > 1


def _rounded(baselines: Baselines) -> Make:
    """With all weights and buffers in less precision."""

    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        return baselines.eager.leaves(baselines.eager.request({"op": "rounded", "slot": 0, "exact": exactly}))

    return make


def _without(baselines: Baselines, key: str, value: float) -> Make:
    def make(right: Sequence[Leaf], exactly: bool) -> list[Leaf] | None:
        body = {"op": "without", "slot": 0, "key": key, "value": value, "exact": exactly}
        reply = baselines.eager.request(body)
        return baselines.eager.leaves(reply) if reply["changed"] else None

    return make

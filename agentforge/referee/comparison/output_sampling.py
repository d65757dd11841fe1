"""Samples of the outputs of timed calls: random parts, and whole outputs now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

import torch

from agentforge.schema import EvaluationStatus

from ..baselines.prepared import PreparedWorkload
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from ..workers.pytree import Leaf, Part, same_bytes
from .comparator import OutputComparator
from .draw_bounds import DrawBounds
from .tolerance import all_finite, kinds, settled

_WHOLE_BYTES = 1 << 18
"""Outputs up to this size are compared whole after every call."""
_MEDIUM_BYTES = 1 << 24
"""Of outputs up to this size one of each turn is compared whole, of larger ones one of four turns."""
_LARGE_SHARE = 0.25
_PARTS, _PART_ELEMENTS = 8, 4096
_SAMPLES, _SAMPLE_ELEMENTS = 16, 2


@dataclass(frozen=True)
class SamplePlan:
    """The parts to read of one call's output, the same for every worker; no worker knows them."""

    sample: list[Part]
    """Read while the clock runs: few elements at many places."""
    parts: list[Part]
    """Read afterwards, of outputs that are not read whole."""
    whole: bool


@dataclass(frozen=True)
class Sample:
    """What was read back of one call."""

    sampled: list[torch.Tensor] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    pieces: list[torch.Tensor] = field(default_factory=list)

    def tensors(self) -> list[torch.Tensor]:
        """All that was read after the clock stood still."""
        return self.pieces or [x.value for x in self.leaves if isinstance(x.value, torch.Tensor)]

    def needs_another_look(self, other: Sample) -> bool:
        """Whether an element is finite, NaN or infinite here and of another kind there, or an integer
        differs: the reference's output alone does not say whether that is wrong."""
        ours, theirs = self.sampled + self.tensors(), other.sampled + other.tensors()
        return any(
            a.shape == b.shape and a.dtype == b.dtype and _differ(a, b)
            for a, b in zip(ours, theirs, strict=False)
        )


def _differ(a: torch.Tensor, b: torch.Tensor) -> bool:
    if not (a.is_floating_point() or a.is_complex()):
        return not torch.equal(a, b)
    return not (all_finite(a) and all_finite(b)) and not torch.equal(kinds(a), kinds(b))


class OutputSampling:
    """Chooses, reads and compares."""

    def __init__(self, prepared: PreparedWorkload, comparator: OutputComparator, random: Random) -> None:
        self._prepared = prepared
        self._comparator = comparator
        self._random = random
        self._sizes = [(index, form.numel) for index, form in enumerate(prepared.outputs) if form.numel]
        self.nbytes = sum(form.nbytes for form in prepared.outputs)
        self.medium = self.nbytes <= _MEDIUM_BYTES

    def choose(self, calls: int) -> list[SamplePlan]:
        """Draw the parts to read in each call of a turn."""
        small = self.nbytes <= _WHOLE_BYTES
        chosen = self.medium or self._random.random() < _LARGE_SHARE
        whole = self._random.randrange(calls) if chosen else -1
        return [
            SamplePlan(
                self.parts(_SAMPLES, _SAMPLE_ELEMENTS),
                self.parts(_PARTS, _PART_ELEMENTS),
                small or number == whole,
            )
            for number in range(calls)
        ]

    def parts(self, number: int, elements: int) -> list[Part]:
        """Draw ranges of at most this many elements, sorted by leaf; none if the output has no tensors."""
        if not self._sizes:
            return []
        parts = []
        for _ in range(number):
            index, numel = self._random.choice(self._sizes)
            count = min(elements, numel)
            parts.append((index, self._random.randrange(numel - count + 1), count))
        return sorted(parts)

    def read(self, client: WorkerClient, slot: int, plan: SamplePlan) -> Sample:
        """Read back what the last call gave."""
        if plan.whole:
            return Sample(client.sampled, leaves=client.fetch(slot))
        return Sample(client.sampled, pieces=client.fetch_parts(slot, plan.parts))

    def compare(
        self,
        plan: SamplePlan,
        got: Sample,
        expected: Sample,
        harder: DrawBounds,
        when: str = "in a timed call",
    ) -> None:
        """Candidate and eager baseline agree.

        Args:
            harder: asked if they do not: another draw may be much harder to compute than the one that the
                usual bounds are from. Calls with the same inputs can share one.

        Raises:
            WorkerFailure: they do not.
        """
        prepared = self._prepared

        def compare(parts: Sequence[Part], ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor],
                    when: str) -> None:  # fmt: skip
            for (leaf, first, _), a, b in zip(parts, ours, theirs, strict=True):
                bound, scale = prepared.bounds[leaf], prepared.scales[leaf]
                where = (prepared.outputs[leaf].path, first)
                self._comparator.check_part(a, b, bound, scale, where, when, partial(harder.of, leaf))

        # First what the clock waited for: an answer that was not there in time is wrong.
        if got.sampled and expected.sampled:
            compare(plan.sample, got.sampled, expected.sampled, "when a timed call was answered")
        if got.leaves or not got.pieces:
            bounds = prepared.bounds
            self._comparator.check(got.leaves, expected.leaves, bounds, when, harder.all)
            return
        self._comparator.calls += 1
        compare(plan.parts, got.pieces, expected.pieces, when)

    def settled(self, plan: SamplePlan, got: Sample, expected: Sample, whole: Sequence[Leaf]) -> Sample:
        """What to compare a call's answer with, if float32 eager and float64 differ in kind somewhere.

        Args:
            whole: the reference's whole output for the inputs of the call, with its alternatives.
        """
        return Sample(
            _settled(plan.sample, got.sampled, expected.sampled, whole),
            [
                replace(x, alternative=y.alternative, latitude=y.latitude)
                for x, y in zip(expected.leaves, whole, strict=False)
            ],
            _settled(plan.parts, got.pieces, expected.pieces, whole),
        )

    @staticmethod
    def unchanged(
        client: WorkerClient, slot: int, plan: SamplePlan, before: Sample, ago: int, views: frozenset[int]
    ) -> None:
        """An output that is still alive is what it was.

        Args:
            views: leaves that are views of inputs, which change.

        Raises:
            WorkerFailure: CHEATING.
        """
        if plan.whole:
            was, now = (_without(views, leaves) for leaves in (before.leaves, client.fetch(slot, ago)))
        else:
            kept = [n for n, (leaf, _, _) in enumerate(plan.parts) if leaf not in views]
            was = [before.pieces[n] for n in kept]
            now = client.fetch_parts(slot, [plan.parts[n] for n in kept], ago)
        if len(now) != len(was) or not all(same_bytes(a, b) for a, b in zip(now, was, strict=True)):
            raise WorkerFailure(
                EvaluationStatus.CHEATING,
                "a later call overwrites the output of an earlier one: static buffers",
            )


def _without(views: frozenset[int], leaves: Sequence[Leaf]) -> list[torch.Tensor]:
    """The tensors of an output that are no views of inputs."""
    return [x.value for n, x in enumerate(leaves) if n not in views and isinstance(x.value, torch.Tensor)]


def _settled(
    parts: Sequence[Part],
    got: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    whole: Sequence[Leaf],
) -> list[torch.Tensor]:
    return [
        settled(a, b, _alternative(whole, part), whole[part[0]].latitude, part[1])
        for part, a, b in zip(parts, got, expected, strict=False)
    ]


def _alternative(leaves: Sequence[Leaf], part: Part) -> torch.Tensor | None:
    """A flat range of an output's alternative; None if the output has none."""
    other = leaves[part[0]].alternative
    return None if other is None else _range(other, part)


def range_of(leaves: Sequence[Leaf], part: Part) -> tuple[Part, Leaf]:
    """A flat range of an output that was read whole, with its alternative.

    Sizes may depend on the inputs: a part that does not exist in this output is moved and shortened.
    """
    index, first, count = part
    leaf = leaves[index]
    count = min(count, leaf.value.numel())
    part = index, min(first, leaf.value.numel() - count), count
    return part, replace(leaf, value=_range(leaf.value, part), alternative=_alternative(leaves, part))


def _range(tensor: torch.Tensor, part: Part) -> torch.Tensor:
    """A flat range; empty if it does not exist, as a worker gives it."""
    _, first, count = part
    flat = tensor.reshape(-1)
    return flat[first : first + count if first + count <= flat.numel() else first].clone()

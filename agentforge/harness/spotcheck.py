"""What is read back of timed calls, and how it is compared: random parts, whole outputs now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import torch

from agentforge.schema import EvaluationStatus

from .bench import Course, same_bytes
from .judge import Judge
from .leaves import Leaf
from .party import Part, Party, PartyFailure

_WHOLE_BYTES = 1 << 18
"""Outputs up to this size are compared whole after every call."""
_MEDIUM_BYTES = 1 << 24
"""Of outputs up to this size one of each turn is compared whole, of larger ones one of four turns."""
_LARGE_SHARE = 0.25
_PARTS, _PART_ELEMENTS = 8, 4096
_SAMPLES, _SAMPLE_ELEMENTS = 8, 64


@dataclass(frozen=True)
class Look:
    """What to read back of one call, the same for every party; no worker is told."""

    sample: list[Part]
    """Read while the clock runs: few elements at many places."""
    parts: list[Part]
    """Read afterwards, of outputs that are not read whole."""
    whole: bool


@dataclass(frozen=True)
class Seen:
    """What was read back of one call."""

    sampled: list[torch.Tensor] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    pieces: list[torch.Tensor] = field(default_factory=list)

    def tensors(self) -> list[torch.Tensor]:
        """All that was read after the clock stood still."""
        return self.pieces or [x.value for x in self.leaves if isinstance(x.value, torch.Tensor)]


class SpotChecks:
    """Chooses, reads and compares.

    Args:
        course: with an output of the reference.
        judge: told of every output.
        random: unpredictable.
    """

    def __init__(self, course: Course, judge: Judge, random: Random) -> None:
        self._course = course
        self._judge = judge
        self._random = random
        self._sizes = [(index, form.numel) for index, form in enumerate(course.outputs) if form.numel]
        self.nbytes = sum(form.nbytes for form in course.outputs)
        self.medium = self.nbytes <= _MEDIUM_BYTES

    def choose(self, calls: int) -> list[Look]:
        """What to look at in the calls of a turn."""
        small = self.nbytes <= _WHOLE_BYTES
        chosen = self.medium or self._random.random() < _LARGE_SHARE
        whole = self._random.randrange(calls) if chosen else -1
        return [
            Look(
                self._parts(_SAMPLES, _SAMPLE_ELEMENTS),
                self._parts(_PARTS, _PART_ELEMENTS),
                small or number == whole,
            )
            for number in range(calls)
        ]

    def _parts(self, number: int, elements: int) -> list[Part]:
        if not self._sizes:
            return []
        parts = []
        for _ in range(number):
            index, numel = self._random.choice(self._sizes)
            count = min(elements, numel)
            parts.append((index, self._random.randrange(numel - count + 1), count))
        return parts

    def read(self, party: Party, slot: int, look: Look) -> Seen:
        """Read back what the last call gave."""
        if look.whole:
            return Seen(party.sampled, leaves=party.fetch(slot))
        return Seen(party.sampled, pieces=party.fetch_parts(slot, look.parts))

    def compare(self, look: Look, got: Seen, expected: Seen) -> None:
        """Candidate and eager baseline agree.

        Raises:
            PartyFailure: they do not.
        """
        # First what the clock waited for: an answer that was not there in time is wrong.
        if got.sampled and expected.sampled:
            self._compare(look.sample, got.sampled, expected.sampled, "when a timed call was answered")
        if got.leaves or not got.pieces:
            self._judge.check(got.leaves, expected.leaves, self._course.bounds, "in a timed call")
            return
        self._judge.calls += 1
        self._compare(look.parts, got.pieces, expected.pieces, "in a timed call")

    def _compare(
        self, parts: Sequence[Part], got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], when: str
    ) -> None:
        for (leaf, first, _), a, b in zip(parts, got, expected, strict=True):
            where = (self._course.outputs[leaf].path, first)
            scale = self._course.scales[leaf]
            self._judge.check_part(a, b, self._course.bounds[leaf], scale, where, when)

    @staticmethod
    def unchanged(party: Party, slot: int, look: Look, before: Seen, ago: int) -> None:
        """An output that is still alive is what it was.

        Raises:
            PartyFailure: CHEATING.
        """
        if look.whole:
            now = [x.value for x in party.fetch(slot, ago) if isinstance(x.value, torch.Tensor)]
        else:
            now = party.fetch_parts(slot, look.parts, ago)
        was = before.tensors()
        if len(now) != len(was) or not all(same_bytes(a, b) for a, b in zip(now, was, strict=True)):
            raise PartyFailure(
                EvaluationStatus.CHEATING,
                "a later call overwrites the output of an earlier one: static buffers",
            )

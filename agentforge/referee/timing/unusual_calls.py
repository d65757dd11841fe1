"""Answers to transformed inputs among timed calls."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from ..comparison.comparator import OutputComparator, accepts
from ..comparison.draw_bounds import OwnDraw
from ..comparison.output_sampling import Sample
from ..comparison.tolerance import all_finite, kinds, widest
from ..inputs.transforms import Content, ProbeInput
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure

_SHARE = 0.8
"""Share of blocks that get one more call with transformed inputs, once all of them have come."""
_BLOCKS = 16
"""Blocks in which all of them come, if turns have room: a verdict may need no more (`LOOKS`)."""


@dataclass
class UnusualContents:
    """Transformed inputs that the candidate answered correctly, for calls among the timed ones of a workload.

    They come in random order, none again before all have come. Process groups share them.
    """

    contents: list[ProbeInput] = field(default_factory=list)
    _due: list[ProbeInput] = field(default_factory=list)
    _all_came: bool = False

    def draw(self, random: Random, most: int) -> list[ProbeInput]:
        """Those for a block: enough, up to `most`, that all come soon; then at most one."""
        if not self.contents or (self._all_came and random.random() >= _SHARE):
            return []
        number = 1 if self._all_came else min(most, math.ceil(len(self.contents) / _BLOCKS))
        if not self._due:
            self._due = random.sample(self.contents, len(self.contents))
        chosen, self._due = self._due[:number], self._due[number:]
        self._all_came |= not self._due
        return chosen


def check_unusual(
    comparator: OutputComparator, unusual: ProbeInput, got: Sample, expected: Sample, own: OwnDraw
) -> None:
    """Compare a whole answer to transformed inputs, if the reference's is determined by them.

    Args:
        unusual: the transformation; its bounds are another draw's.
        own: asked if the answers do not agree within these.

    Raises:
        WorkerFailure: the answer is wrong.
    """
    if not determined(unusual.content, expected):
        return
    situation = f"in a call among timed ones with {unusual.content.name}"
    if accepts(got.leaves, expected.leaves, unusual.bounds):
        comparator.check(got.leaves, expected.leaves, unusual.bounds, situation)
        return
    right, others = own()
    bounds = [widest([a, b]) for a, b in zip(others, unusual.bounds, strict=True)]
    comparator.check(got.leaves, right, bounds, situation)


def determined(content: Content, expected: Sample) -> bool:
    """Whether the reference's answer in this very call has only values that the content may give."""
    if content.defined == "finite":
        return all(all_finite(x) for x in expected.tensors())
    return content.defined == "nan" or not any(bool((kinds(x) == 1).any()) for x in expected.tensors())


def answers(eager: WorkerClient, slot: int, keep: int) -> bool:
    """Whether the reference answers to a slot's inputs rather than raising.

    Args:
        keep: earlier outputs of it that stay alive.
    """
    try:
        eager.call(slot, keep)
    except WorkerFailure:
        if not eager.worker.running:
            raise
        return False
    return True

"""Calls with transformed inputs among timed ones: which answers are compared, and with what."""

from __future__ import annotations

import math
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from agentforge.referee.comparison.comparator import OutputComparator
from agentforge.referee.comparison.output_sampling import Sample
from agentforge.referee.comparison.tolerance import Bound
from agentforge.referee.inputs.transforms import UNUSUAL, Content, ProbeInput
from agentforge.referee.timing.unusual_calls import UnusualContents, answers, check_unusual, determined
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import EvaluationStatus

BOUND = Bound(1e-6, 1e-6, 1e-7, 1e-7)


def content(defined: str) -> Content:
    return next(c for c in UNUSUAL if c.defined == defined)


def answer(*values: float) -> Sample:
    return Sample(leaves=[Leaf("out", torch.tensor(values))])


def check(defined: str, got: Sample, expected: Sample, own: Sample | None = None) -> None:
    right = expected if own is None else own
    probe = ProbeInput(content(defined), [BOUND])
    check_unusual(OutputComparator(), probe, got, expected, lambda: (right.leaves, [BOUND]))


@pytest.mark.parametrize(("number", "most"), [(5, 4), (24, 4), (60, 4), (24, 1)])
def test_all_contents_come_within_few_blocks_if_turns_have_room(number: int, most: int) -> None:
    contents, random = [ProbeInput(UNUSUAL[0], [BOUND]) for _ in range(number)], Random(0)
    unusual = UnusualContents(contents)
    blocks = [unusual.draw(random, most) for _ in range(max(16, number // most))]
    assert all(blocks[:5]) and max(map(len, blocks)) <= most
    came = [content for block in blocks for content in block][:number]
    assert sorted(map(id, came)) == sorted(map(id, contents))


def test_later_most_blocks_have_one_and_all_come_equally_often() -> None:
    contents, random = [ProbeInput(c, [BOUND]) for c in UNUSUAL], Random(0)
    unusual = UnusualContents(contents)
    came = 0
    while came < len(contents):
        came += len(unusual.draw(random, 4))
    later = [unusual.draw(random, 4) for _ in range(10 * len(contents))]
    assert max(map(len, later)) == 1 and 0.6 < sum(map(len, later)) / len(later) < 0.95
    drawn = [content for block in later for content in block]
    counts = [sum(content is other for other in drawn) for content in contents]
    assert max(counts) - min(counts) <= 1


def test_without_contents_no_block_has_one() -> None:
    assert UnusualContents().draw(Random(0), 4) == []


@pytest.mark.parametrize(
    ("defined", "values", "is_determined"),
    [
        ("finite", (1.0, 2.0), True),
        ("finite", (1.0, math.inf), False),
        ("infinite", (1.0, -math.inf), True),
        ("infinite", (1.0, math.nan), False),
        ("nan", (math.nan, math.inf), True),
    ],
)
def test_an_answer_says_what_is_right_if_it_holds_what_the_content_gives(
    defined: str, values: tuple[float, ...], is_determined: bool
) -> None:
    assert determined(content(defined), answer(*values)) is is_determined


@pytest.mark.parametrize(("defined", "special"), [("nan", math.nan), ("infinite", math.inf)])
def test_a_number_in_place_of_a_special_value_is_wrong(defined: str, special: float) -> None:
    check(defined, answer(1.0, special), answer(1.0, special))
    with pytest.raises(WorkerFailure, match="in a call among timed ones with some"):
        check(defined, answer(1.0, 7.9), answer(1.0, special))


def test_nothing_is_wrong_where_the_reference_overflows() -> None:
    check("finite", answer(1.0, 3.0), answer(1.0, math.inf))


def test_who_differs_is_compared_with_the_answer_to_this_very_draw() -> None:
    check("finite", answer(1.0, 3.0), answer(1.0, 2.0), own=answer(1.0, 3.0))


class Reference:
    """Answers for places that are no multiple of three, raises at others, and ends at nine."""

    def __init__(self) -> None:
        self.worker = SimpleNamespace(running=True)

    def call(self, slot: int, keep: int) -> int:
        if slot % 3 == 0:
            self.worker.running = slot != 9
            raise WorkerFailure(EvaluationStatus.RUNTIME_ERROR, "not positive definite")
        return 1


def test_a_reference_that_raises_is_asked_nothing_and_one_that_ended_is_told() -> None:
    eager = cast(WorkerClient, Reference())
    assert answers(eager, slot=1, keep=1)
    assert not answers(eager, slot=3, keep=1)
    with pytest.raises(WorkerFailure):
        answers(eager, slot=9, keep=1)

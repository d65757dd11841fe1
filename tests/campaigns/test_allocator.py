"""The allocator alone, and in a simulation beside visits in turn."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

import pytest

from agentforge.campaigns.allocator import (
    Objective,
    Past,
    Prices,
    _Field,
    _gain,
    allocate,
    visit_prices,
)
from agentforge.schema import UsageError


def past(
    item: int, best: float | None, *, visits: int = 1, seconds: float = 60.0, **more: float | None
) -> Past:
    fields = {"item": item, "problem": f"p{item}", "arm": "a", "best": best, "visits": visits}
    return Past.model_validate({**fields, "seconds": seconds, **more})


class Problem:
    """What no allocator sees: the chance of a solution, the speedup to expect, and the cost of a visit."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.number = number
        self.solvable = chance.choice([0.0, 0.1, 0.4, 0.9])
        self.expected = chance.choice([-0.3, 0.0, 0.1, 0.5, 1.2])
        self.limit = self.expected + chance.uniform(0.1, 1.0)
        self.seconds = chance.choice([20.0, 60.0, 240.0])
        self.best: float | None = None
        self.visits, self.spent = 0, 0.0

    def visit(self, chance: random.Random) -> None:
        self.visits += 1
        self.spent += self.seconds * chance.uniform(0.8, 1.2)
        # Not the allocator's own model: uniform, and worse attempts are more frequent than better ones.
        found = min(self.limit, self.expected + 0.6 * chance.random() ** 2 - 0.2)
        if chance.random() < self.solvable and (self.best is None or found > self.best):
            self.best = found

    def past(self) -> Past:
        return past(self.number, self.best, visits=self.visits, seconds=self.spent, limit=self.limit)


def simulate(seed: int, objective: Objective, pick: Callable[[Sequence[Problem], int], int | None]) -> float:
    """The objective's mean over 24 problems after a first visit of each and 1200 s more."""
    world = random.Random(seed)
    problems, chance = [Problem(n, world) for n in range(24)], random.Random(seed + 1000)
    for problem in problems:
        problem.visit(chance)
    until, step = sum(p.spent for p in problems) + 1200.0, 0
    while sum(p.spent for p in problems) < until and (picked := pick(problems, step)) is not None:
        problems[picked].visit(chance)
        step += 1
    return statistics.fmean(objective.value(p.best, p.limit) for p in problems)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fast_1", "speedup", "sol"])
def test_it_beats_visits_in_turn_at_the_same_cost(name: str) -> None:
    objective = Objective(name)

    def ours(problems: Sequence[Problem], _: int) -> int | None:
        # One visit at a time: each decision sees what the last one brought.
        found = allocate([p.past() for p in problems], objective, most=1)
        return found[0].item if found else None

    def in_turn(problems: Sequence[Problem], step: int) -> int:
        return step % len(problems)

    gains = [simulate(seed, objective, ours) - simulate(seed, objective, in_turn) for seed in range(6)]
    assert statistics.fmean(gains) > 0
    assert sum(gain >= 0 for gain in gains) >= 5


def test_the_index_is_the_expected_gain_for_its_price() -> None:
    # Below the threshold by little, far above it, and without a solution after many visits.
    near, solved, hopeless = past(0, -0.05), past(1, 0.8), past(2, None, visits=9)
    field, fast = _Field.of((near, solved, hopeless)), Objective("fast_1")
    assert _gain(solved, field, fast) == 0.0
    assert _gain(near, field, fast) > _gain(hopeless, field, fast) > 0.0
    assert _gain(solved, field, Objective("speedup")) > 0.0
    # At the speed of light nothing is left, and without a gain each visit promises less.
    assert _gain(past(3, 0.8, limit=0.8), field, Objective("sol")) == 0.0
    assert _gain(past(3, -0.1, limit=-0.05), field, fast) == 0.0
    again = [_gain(past(0, -0.05, visits=n), field, fast) for n in (1, 2, 4, 8)]
    assert again == sorted(again, reverse=True)


def test_visits_end_with_the_time_or_the_money_and_go_to_several_items() -> None:
    items = [
        past(n, -0.05, visits=2, seconds=200.0, dollars=2.0, most_dollars=1.0, share=1.0) for n in range(3)
    ]
    visits = allocate(items, Objective("fast_1"), seconds=450.0)
    assert len(visits) == 4
    assert {v.item for v in visits} == {0, 1, 2}
    assert len(allocate(items, Objective("fast_1"), seconds=1e6)) == 6  # no item more than twice its visits
    assert len(allocate(items, Objective("fast_1"), seconds=450.0, dollars=2.5)) == 2
    assert allocate([past(0, 1.0)], Objective("fast_1"), seconds=450.0) == ()


def test_a_visit_counts_with_the_most_that_it_can_spend() -> None:
    # Two visits spent 0.2 of their shares of 1.0: the next one can spend 2.8, and the one after it 1.0.
    item = past(0, -0.05, visits=2, dollars=0.2, most_dollars=2.8, share=1.0)
    assert allocate([item], Objective("fast_1"), dollars=2.7) == ()
    (visit,) = allocate([item], Objective("fast_1"), dollars=3.7)
    assert (visit.dollars, visit.most_dollars) == (pytest.approx(0.1), 2.8)
    visits = allocate([item], Objective("fast_1"), dollars=3.8)
    assert [v.most_dollars for v in visits] == [2.8, 1.0]
    free = past(0, -0.05, dollars=None, most_dollars=math.inf, share=math.inf)
    (visit,) = allocate([free], Objective("fast_1"), seconds=100.0)
    assert (visit.dollars, visit.most_dollars) == (None, None)


def test_time_of_workers_and_devices_counts_like_dollars() -> None:
    slow = past(0, -0.05, seconds=3600.0, device_seconds=36.0)
    dear = past(1, -0.05, seconds=60.0, dollars=0.5)
    assert visit_prices([slow, dear], Prices(hour=1.0))[0] == pytest.approx(1.0)
    assert visit_prices([slow, dear], Prices(hour=1.0, device_hour=100.0))[0] == pytest.approx(2.0)
    first = allocate([slow, dear], Objective("fast_1"), Prices(hour=0.1), seconds=1e6, most=1)
    assert first[0].item == 0
    first = allocate([slow, dear], Objective("fast_1"), Prices(hour=10.0), seconds=1e6, most=1)
    assert first[0].item == 1


def test_all_items_have_their_prices_in_one_unit() -> None:
    free, asked, silent = past(0, -0.05), past(1, -0.05, dollars=0.5), past(2, -0.05, dollars=None)
    silent, asked = (item.model_copy(update={"arm": "llm"}) for item in (silent, asked))
    assert visit_prices([asked, silent], Prices()) == {1: 0.5, 2: 0.5}, "its arm's mean"
    assert visit_prices([free, free.model_copy(update={"arm": "b"})], Prices()) == {0: 60.0}
    minute = pytest.approx(1 / 60), pytest.approx(0.5 + 1 / 60)
    assert visit_prices([free, asked, silent], Prices()) == {0: minute[0], 1: minute[1], 2: minute[1]}
    long = free.model_copy(update={"seconds": 6000.0})
    visits = allocate([long, asked, silent], Objective("fast_1"), seconds=1e6, most=1)
    assert visits[0].item == 1, "100 minutes cost more than 0.5 dollars and a minute"


def test_dollars_count_beside_an_arm_that_costs_none() -> None:
    free = past(0, None, visits=4, seconds=24000.0)
    paid = (past(1, -0.05, dollars=5.0), past(2, -0.05, dollars=0.05))
    dear, cheap = (item.model_copy(update={"arm": "llm"}) for item in paid)
    visits = allocate([free, dear, cheap], Objective("fast_1"), seconds=1e6)
    assert [visit.item for visit in visits][:2] == [2, 1]


def test_no_visit_is_for_a_score_that_cannot_be_computed() -> None:
    items = [past(0, None), past(1, None, limit=1.0), past(2, 0.5)]
    visits = allocate(items, Objective("sol"), seconds=1e6)
    assert {visit.item for visit in visits} == {1}


@pytest.mark.parametrize("name", ["", "fast", "fast_", "fast_-1", "fast_nan", "sol_1", "latency"])
def test_another_objective_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is none: give fast_1"):
        Objective(name)

"""The race: who wins after one verdict, who is measured again, and what a resumed tuner does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agentforge.schema import (
    Evaluation,
    EvaluationStatus,
    Interval,
    Solution,
    Trial,
)
from agentforge.testing.language import make_solution
from agentforge.tuning import Tuner, Variants
from tests.store.nouns import evaluation, performance

SPACE = {"BLOCK": (1, 2, 3)}


def solution(block: Any) -> Solution:
    return make_solution("python", {"model_new.py": f"# {block}"})


class Referee:
    """Speedups by block; an entry of None fails."""

    def __init__(self, speed: Mapping[int, float | None], spread: float = 0.02, left: int = 99) -> None:
        self.speed, self.spread, self.left = speed, spread, left
        self.asked: list[tuple[int, bool]] = []
        self.kept: list[Trial] = []

    def verdict(self, block: int) -> Evaluation:
        point = self.speed[block]
        if point is None:
            return evaluation(status=EvaluationStatus.CRASHED)
        about = Interval(point=point, low=point - self.spread, high=point + self.spread)
        return evaluation(performance=performance(point, speedup={"eager": about}))

    def evaluate(self, tried: Solution, again: bool) -> Evaluation | None:
        if len(self.asked) >= self.left:
            return None
        block = int(tried.source("model_new.py")[2:])
        self.asked.append((block, again))
        return self.verdict(block)

    def keep(self, trials: Sequence[Trial]) -> None:
        self.kept = list(trials)

    def run(self, before: tuple[Trial, ...] = ()) -> str:
        variants = Variants(SPACE, {"BLOCK": 1}, lambda point: solution(point["BLOCK"]))
        tuner = Tuner(variants, 24, "seed", self.evaluate, self.keep)
        return tuner.run(solution(1), self.verdict(1), before).source("model_new.py")[2:]


def test_a_point_that_is_clearly_slower_or_faster_needs_one_verdict() -> None:
    referee = Referee({1: 1.0, 2: 0.8, 3: 1.5})
    assert referee.run() == "3"
    assert sorted(referee.asked) == [(2, False), (3, False)]
    assert sum(t.won for t in referee.kept) == 2 and len(referee.kept) == 3


def test_close_points_are_measured_again_in_turns_with_the_incumbent() -> None:
    referee = Referee({1: 1.0, 2: 1.01, 3: 0.5})
    assert referee.run() == "2"
    assert Counter(referee.asked)[2, True] == Counter(referee.asked)[1, True] == 2
    assert Counter(referee.asked)[3, True] == 0


def test_a_point_that_eager_alone_was_measured_beside_does_not_win_by_that() -> None:
    """1 was taken from a run that measured torch.compile too, which is twice as fast as eager."""

    class Compiled(Referee):
        def verdict(self, block: int) -> Evaluation:
            found = super().verdict(block)
            if block == 1 and found.performance is not None:
                found.performance.baseline_s["compile"] = 0.5
                found.performance.speedup["compile"] = Interval(point=0.5, low=0.49, high=0.51)
            return found

    assert Compiled({1: 1.0, 2: 0.8, 3: 0.9}).run() == "1"


def test_a_failure_never_wins() -> None:
    referee = Referee({1: 1.0, 2: None, 3: None})
    assert referee.run() == "1"
    assert [t.log_speedups for t in referee.kept] == [(0.0,), (), ()]


def test_nothing_to_tune_or_no_time_changes_nothing() -> None:
    referee = Referee({1: None, 2: 1.0, 3: 1.0})
    assert referee.run() == "1" and not referee.kept
    assert Referee({1: 1.0, 2: 9.0, 3: 9.0}, left=0).run() == "1"


@pytest.mark.parametrize("done", [1, 2])
def test_a_resumed_tuner_measures_what_is_left(done: int) -> None:
    whole = Referee({1: 1.0, 2: 1.3, 3: 1.6})
    assert whole.run() == "3"
    rest = Referee(whole.speed)
    assert rest.run(tuple(whole.kept[:done])) == "3"
    assert rest.kept == whole.kept
    assert math.exp(rest.kept[-1].log_speedups[0]) > 1.2


def test_a_point_whose_race_the_budget_ended_is_measured_by_a_resume() -> None:
    whole = Referee({1: 1.0, 2: 1.01, 3: 0.5})
    assert whole.run() == "2"
    for left in range(len(whole.asked)):
        cut, rest = Referee(whole.speed, left=left), Referee(whole.speed)
        cut.run()
        assert rest.run(tuple(cut.kept)) == "2"
        assert rest.kept == whole.kept, left


def test_trials_over_another_baseline_are_made_again() -> None:
    """An older version was interrupted: torch.compile was twice as fast as eager where it measured 3."""
    whole = Referee({1: 1.0, 2: 0.8, 3: 1.5})
    assert whole.run() == "3"
    start, *_ = (trial.model_copy(update={"over": ""}) for trial in whole.kept)
    older = Trial(parameters={"BLOCK": 3}, log_speedups=(math.log(0.75),))
    again = Referee(whole.speed)
    assert again.run((start, older)) == "3"
    assert again.kept == whole.kept

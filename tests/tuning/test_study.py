"""The study: a pure function of its trials, by real optuna."""

from __future__ import annotations

import math
import sys
from itertools import product
from random import Random
from statistics import fmean

import pytest

from agentforge.schema import MachineError, Trial
from agentforge.tuning import check_tuning, next_point

SPACE = {"BLOCK": (32, 64, 128, 256), "ROWS": (1, 2, 4, 8), "online": (True, False)}


def gain(point: dict[str, int | float | str | bool]) -> float:
    """Best at BLOCK = 128, ROWS = 4, online."""
    return (
        -abs(math.log2(float(point["BLOCK"]) / 128))
        - abs(math.log2(float(point["ROWS"]) / 4))
        - (not point["online"])
    )


def searched(most: int, seed: str) -> list[Trial]:
    trials: list[Trial] = []
    while (point := next_point(SPACE, trials, seed, most)) is not None:
        trials.append(Trial(parameters=point, log_speedups=(gain(point),)))
    return trials


def test_a_rebuilt_study_asks_the_same_and_never_twice() -> None:
    trials = searched(20, "a")
    assert len(trials) == len({str(t.parameters) for t in trials}) == 20
    for number in (1, 7, 19):
        again = [Trial.model_validate_json(t.model_dump_json()) for t in trials[:number]]
        assert next_point(SPACE, again, "a", 20) == trials[number].parameters
    assert searched(6, "b") != trials[:6]
    assert next_point(SPACE, trials, "a", 20) is None
    assert len(searched(99, "a")) == 32, "a study ends with its grid"


def test_it_learns_where_the_fast_points_are() -> None:
    found = [max(gain(t.parameters) for t in searched(12, str(seed))) for seed in range(8)]
    every = [gain(dict(zip(SPACE, values, strict=True))) for values in product(*SPACE.values())]
    drawn = [max(Random(seed).sample(every, 12)) for seed in range(1000)]
    assert fmean(found) > fmean(drawn)


def test_failures_are_avoided() -> None:
    trials: list[Trial] = []
    while (point := next_point(SPACE, trials, "a", 20)) is not None:
        trials.append(Trial(parameters=point, log_speedups=() if point["online"] else (gain(point),)))
    assert sum(not t.parameters["online"] for t in trials[10:]) > 5


def test_a_missing_optuna_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    check_tuning(3)
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.setattr("agentforge.tuning.study.find_spec", lambda name: None)
    check_tuning(0)
    with pytest.raises(MachineError, match=r"pip install '\.\[tune\]'"):
        check_tuning(1)


def test_trials_from_before_a_card_was_edited_end_no_run() -> None:
    old = [
        Trial(parameters={"BLOCK": 512, "ROWS": 1, "online": True}, log_speedups=(0.1,)),
        Trial(parameters={"TILE": 64}, log_speedups=(0.2,)),
    ]
    point = next_point(SPACE, old, "a", 20)
    assert point is not None
    assert all(point[name] in values for name, values in SPACE.items())
    assert next_point(SPACE, old, "a", 2) is None

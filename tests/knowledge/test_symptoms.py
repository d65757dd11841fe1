"""The matrix of symptoms and techniques."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agentforge.knowledge import symptom_matrix
from agentforge.schema import EvaluationStatus, Evidence, Outcome
from tests.store import nouns


def outcome(name: str, **changes: Any) -> Outcome:
    fields = {
        "id": f"{name}{sorted(changes.items())}",
        "strategy": name,
        "context": nouns.context(),
        "solution": "s",
        "evaluation": "e",
        "status": EvaluationStatus.PASSED,
        "evidence": Evidence.VERIFIED,
        "log_speedup": math.log(2),
        "time": nouns.evaluation(nouns.solution("s")).timestamp,
    }
    return Outcome.model_validate({**fields, **changes})


def test_a_strategy_is_counted_under_each_symptom() -> None:
    signs, built = ("bandwidth_share", "threads_busy"), {"after": "split", "log_gain": math.log(2)}
    cells = symptom_matrix(
        [
            outcome("fuse", symptoms=signs, **built),
            outcome("fuse", symptoms=signs, **{**built, "log_gain": math.log(8)}),
            outcome("fuse", symptoms=signs[:1], **built, status=EvaluationStatus.CRASHED, log_speedup=None),
        ]
    )
    assert [(c.symptom, c.n, c.failures) for c in cells] == [
        ("bandwidth_share", 2, 1),
        ("threads_busy", 2, 0),
    ]
    assert cells[0].gain == pytest.approx(4)
    assert cells[0].low is not None
    assert cells[0].high is not None
    assert cells[0].low < 4 < cells[0].high


def test_a_tuning_is_not_counted_under_what_was_seen_after_most_was_gained() -> None:
    """Its credit is the whole speedup, as that of a first attempt."""
    first = outcome("fuse", log_speedup=math.log(3))
    tuning = outcome("fuse", log_speedup=math.log(3), symptoms=("bandwidth_share",))
    assert [(c.symptom, c.n) for c in symptom_matrix([first, tuning])] == [("memory-bound", 2)]


def test_what_was_built_on_another_strategy_counts_with_its_own_gain() -> None:
    follow_up = outcome("stream", after="fuse", log_gain=math.log(1.1), log_speedup=math.log(3))
    (cell,) = symptom_matrix([follow_up])
    assert cell.symptom == "memory-bound"
    assert cell.gain == pytest.approx(1.1)
    assert cell.low is None


@pytest.mark.parametrize(
    "changes",
    [
        {"claimed": True},
        {"status": EvaluationStatus.HARNESS_ERROR, "log_speedup": None},
        {"status": EvaluationStatus.UNSUPPORTED, "log_speedup": None},
    ],
    ids=["claimed", "harness", "unsupported"],
)
def test_claims_and_what_says_nothing_are_in_no_cell(changes: dict[str, Any]) -> None:
    assert symptom_matrix([outcome("fuse", **changes)]) == ()


def test_what_is_not_verified_is_no_gain() -> None:
    (cell,) = symptom_matrix(
        [outcome("fuse"), outcome("fuse", evidence=Evidence.UNVERIFIED, log_speedup=9.0)]
    )
    assert (cell.n, cell.gain) == (1, pytest.approx(2))

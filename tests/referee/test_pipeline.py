"""Which process groups a verdict rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from agentforge.referee import pipeline
from agentforge.referee.pipeline import EvaluationPipeline
from agentforge.referee.result import Findings
from agentforge.referee.timing.patience import Patience
from agentforge.referee.timing.timer import GroupTimes
from agentforge.schema import Level, ReasonCode

DOUBT = "its mean call is above its median"


def measured(
    monkeypatch: pytest.MonkeyPatch, doubtful: list[int], patience_s: float, *, undecided: bool = False
) -> tuple[int, Any]:
    """How many groups a verdict measures, and its context; groups with these numbers are in doubt."""
    context: Any = SimpleNamespace(
        level=Level.FULL, settings=SimpleNamespace(processes=3), groups=[], findings=Findings()
    )
    monkeypatch.setattr(pipeline, "control_steady", lambda *_: True)

    def groups() -> Iterator[list[GroupTimes]]:
        for number in range(9):
            yield [GroupTimes(doubts=[DOUBT] if number in doubtful else [])]

    left = groups()
    run: Any = object.__new__(EvaluationPipeline)
    run.context, run._untimed, run._patience = context, "", Patience(patience_s, threads=1)
    run._group = lambda *, first: next(left)
    run._fresh_group = lambda: next(left)
    run._check_deadline = lambda: None
    run._undecided = lambda: undecided
    run._measure_groups()
    return 9 - len(list(left)), context


@pytest.mark.parametrize(
    ("doubtful", "patience_s", "count", "doubts"),
    [
        ([], 9.0, 3, 0),
        ([0], 9.0, 4, 0),
        ([1, 2], 9.0, 5, 0),
        ([0, 1, 2], 9.0, 5, 1),  # two spare groups and no more
        ([0], 0.0, 3, 1),
    ],
)
def test_a_group_in_doubt_is_measured_again(
    doubtful: list[int], patience_s: float, count: int, doubts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, context = measured(monkeypatch, doubtful, patience_s)
    assert (found, len(context.groups)) == (count, 3)
    assert [text for _, text in context.findings.doubts] == [DOUBT] * doubts


@pytest.mark.parametrize(("doubtful", "kept"), [([], 5), ([0], 4), ([0, 1], 3)])
def test_spare_groups_are_two_for_all_reasons(
    doubtful: list[int], kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, context = measured(monkeypatch, doubtful, 9.0, undecided=True)
    assert (found, len(context.groups)) == (5, kept)


def test_what_was_measured_when_the_time_ended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    context: Any = SimpleNamespace(
        level=Level.FULL,
        settings=SimpleNamespace(processes=3, evaluation_timeout_s=900.0),
        groups=[],
        findings=Findings(),
    )
    monkeypatch.setattr(pipeline, "control_steady", lambda *_: True)
    run: Any = object.__new__(EvaluationPipeline)
    run.context, run._untimed, run._patience = context, "", Patience(0.0, threads=1)
    run._end, run._deadline = math.inf, 0.0
    run._group = lambda *, first: [GroupTimes()]
    run._measure_groups()
    assert len(context.groups) == 1
    ((code, sentence),) = context.findings.doubts
    assert code is ReasonCode.TIMEOUT
    assert "referee.evaluation_timeout_s" in sentence and "1 of 3 process groups" in sentence


@pytest.mark.parametrize(("end", "deadline"), [(math.inf, 1100.0), (1050.0, 1050.0)])
def test_others_time_is_not_the_evaluation_s(
    end: float, deadline: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [500.0]
    monkeypatch.setattr(pipeline.time, "monotonic", lambda: now[0])
    channel = SimpleNamespace(deadline=0.0)
    candidate = SimpleNamespace(worker=SimpleNamespace(channel=channel))
    run: Any = object.__new__(EvaluationPipeline)
    run.context = SimpleNamespace(builder=SimpleNamespace(deadline=2000.0), candidate=candidate)
    run._end, run._deadline = end, 1000.0
    with run._not_its_time():
        now[0] = 600.0
    assert run._deadline == deadline
    assert channel.deadline == run.context.builder.deadline == min(2100.0, end)

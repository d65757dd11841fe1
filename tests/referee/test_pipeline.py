"""Which process groups a verdict rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentforge.config import RefereeSettings
from agentforge.referee import EvaluationRequest, Referee, pipeline
from agentforge.referee.timing.timer import GroupTimes, Timer
from agentforge.schema import Level

from .judging import DEVICE, WORKLOAD, problem, solution_of

DOUBT = "its mean call is above its median"


@pytest.mark.parametrize(
    ("doubtful", "patience_s", "groups", "doubted"),
    [
        ([0], 1000.0, 4, False),
        ([1, 2], 1000.0, 5, False),
        ([0, 1, 2], 1000.0, 5, True),  # two spare groups and no more
        ([0], 0.0, 3, True),
    ],
)
def test_a_group_in_doubt_is_measured_again(
    doubtful: list[int],
    patience_s: float,
    groups: int,
    doubted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[GroupTimes] = []

    class Doubting(Timer):
        def run(self, *arguments: Any) -> GroupTimes:
            times = super().run(*arguments)
            times.doubts = [DOUBT] if len(measured) in doubtful else []
            measured.append(times)
            return times

    monkeypatch.setattr(pipeline, "Timer", Doubting)
    monkeypatch.setattr(pipeline, "control_steady", lambda *_: True)
    monkeypatch.setattr(pipeline, "noise", lambda *_: "")
    definition = problem("return torch.softmax(x, dim=1)", "torch.randn(64, 256)")
    settings = RefereeSettings(
        threads=1, task_seconds=0, random_seeds=1, full_blocks=4, full_seconds=0.1, compile_baseline=False,
        processes=3, patience_s=patience_s,
    )  # fmt: skip
    request = EvaluationRequest(definition, [WORKLOAD], solution_of(definition), Level.FULL)
    with Referee(settings, device=DEVICE, cache=tmp_path) as referee:
        found = referee.evaluate(request)
    assert found.passed, found.reasons
    assert len(measured) == groups
    assert any(DOUBT in reason for reason in found.reasons) == doubted

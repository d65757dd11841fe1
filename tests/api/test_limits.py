"""Limits of a run from Python: arguments, and settings that the caller names."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

import agentforge
from agentforge.api import optimize as api
from agentforge.config import Settings
from agentforge.runs import resumption
from agentforge.schema import MachineError


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        (None, {"tokens": 9000}),
        ({"budget.minutes": 30, "budget.tokens": 5}, {"minutes": 30.0, "tokens": 9000}),
        ({"budget": {"attempts": 4}}, {"attempts": 4, "tokens": 9000}),
        (["budget.dollars=2", "referee.processes=5"], {"dollars": 2.0, "tokens": 9000}),
        ("budget.dollars=2", {"dollars": 2.0, "tokens": 9000}),
    ],
)
def test_a_resume_has_the_limits_of_its_arguments_and_of_settings_that_it_is_given(
    settings: Any, limits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, float]] = []

    def resume(*_: Any, limits: dict[str, float], **__: Any) -> NoReturn:
        seen.append(limits)
        raise MachineError("enough")

    monkeypatch.setattr(resumption, "resume", resume)
    with pytest.raises(MachineError, match="enough"):
        agentforge.resume("run", tokens=9000, settings=settings, progress=False)
    assert seen == [limits]


def test_a_run_has_a_limit_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    def watched(_: Any, settings: Settings, *__: Any) -> Settings:
        return settings

    monkeypatch.setattr(api, "_watched", watched)
    chosen: Any = agentforge.optimize("model.py", tokens=9000, device="cpu")
    assert chosen.budget.tokens == 9000

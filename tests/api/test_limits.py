"""Limits of a run from Python: arguments, settings that the caller names, and errors that name arguments."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NoReturn

import pytest

import agentforge
from agentforge.api import optimize as api
from agentforge.config import Settings
from agentforge.runs import resumption
from agentforge.schema import MachineError, UsageError


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
    monkeypatch.setenv("AGENTFORGE_BUDGET__MINUTES", "7")  # for new runs
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


def test_errors_name_arguments_and_no_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "home"))
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"give at most 525600 \(a year\) with `minutes`$"):
        agentforge.optimize("model.py", minutes=1e9, device="cpu", progress=False)
    with pytest.raises(UsageError, match=f"^`out` {tmp_path} contains something that is no artifact"):
        agentforge.optimize("model.py", out=tmp_path, device="cpu", progress=False)
    with pytest.raises(UsageError, match=r"^`metric` and `bound` go with `allow`: "):
        agentforge.optimize("model.py", bound=0.1, device="cpu", progress=False)

    def fail(*_: Any, **__: Any) -> NoReturn:
        raise UsageError("raise --tokens, not --tokens-per-call or --allow")

    monkeypatch.setattr(resumption, "resume", fail)
    with pytest.raises(UsageError, match=r"^raise `tokens`, not --tokens-per-call or --allow$"):
        agentforge.resume("run", progress=False)
    assert "tokens" in inspect.signature(agentforge.resume).parameters

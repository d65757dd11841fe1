"""A coder repairs its code before it becomes an attempt: one attempt, no judge, no patience."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Literal

import pytest

from agentforge.config import LLMSettings, SearchSettings
from agentforge.llm import Ledger
from agentforge.loop import SearchResult
from agentforge.schema import AttemptEvaluated, Budget
from agentforge.search import BestFirst
from agentforge.store import Store
from tests.llm.server import LLMServer
from tests.loop.conftest import make_run
from tests.loop.scripted import SimulatedReferee

from .scene import Script
from .searching import agents_of, search_with

Mode = Literal["one-shot", "dialogue"]


def code(speed: float, status: str = "PASSED") -> str:
    said = json.dumps({"speed": speed, "status": status})
    return f"FILE: model_new.py\n```python\nSAID = {said}\nclass ModelNew: ...\n```\n"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")


def searched(
    store: Store,
    url: str,
    folder: Path,
    referee: SimulatedReferee,
    mode: Mode,
    attempts: int,
    width: int = 1,
    drafts: int = 1,
) -> SearchResult:
    return search_with(
        agents_of(f"openai:m@{url}", Ledger(store, "run"), LLMSettings(retries=0)),
        store,
        folder,
        budget=Budget(attempts=attempts),
        policy=BestFirst(starts=9),
        settings=SearchSettings(
            language="python", children=width, min_share=0, patience=9, agents=mode, drafts=drafts
        ),
        evaluator=referee,
    )


@pytest.mark.parametrize(("mode", "attempts"), [("one-shot", 3), ("dialogue", 1)])
def test_two_failures_cost_no_attempt_and_no_judge(tmp_path: Path, mode: Mode, attempts: int) -> None:
    script = Script(
        deque([code(2.0, "COMPILE_ERROR"), code(2.1, "INCORRECT_NUMERICAL"), code(2.5), code(1.0)])
    )
    referee = SimulatedReferee()
    with LLMServer(script) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        result = searched(store, server.url, tmp_path, referee, mode, attempts)
        assert [win.evaluation.performance is not None for win in result.wins] == [True]
        made = store.attempts("run")
        assert len(made) == attempts
        assert len(script.of("judge")) == attempts
        assert len(script.of("coder")) == 3
        calls = store.calls("run")
        assert sum(a.usage.tokens_in for a in made) == sum(c.tokens_in for c in calls)
        levels = [e.level.value for e in store.events("run") if isinstance(e, AttemptEvaluated)]
        assert levels.count("full") == 1
        assert levels[0] == ("smoke" if mode == "dialogue" else "quick"), "the yardstick is not shown"
    assert len(referee.evaluations) == len(set(referee.evaluations)), "what was tried is not measured again"


def test_what_is_written_side_by_side_is_tried_in_turn(tmp_path: Path) -> None:
    broken, right = (code(2.0 + i, "CRASHED") for i in range(3)), (code(2.0 + i) for i in range(3))
    script = Script(deque([*broken, *right]))
    referee = SimulatedReferee()
    busy: list[str] = []

    def alone(solution: object, level: object) -> None:
        assert not busy
        busy.append("")
        busy.pop()

    referee.before = alone
    with LLMServer(script) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        result = searched(store, server.url, tmp_path, referee, "dialogue", 3, width=3)
    assert result.attempts == 3
    assert len(result.wins) == 1

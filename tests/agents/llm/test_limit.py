"""The run's own limit ends the calls of its models, and what was measured is kept."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

import pytest

from agentforge.agents.llm.role import Role
from agentforge.config import LLMSettings, SearchSettings
from agentforge.llm import CannotAfford, Ledger, open_model
from agentforge.loop import SearchResult
from agentforge.schema import AttemptStatus, Budget
from agentforge.search import BestFirst
from agentforge.store import Store
from tests.llm.server import LLMServer, Reply
from tests.loop.conftest import make_run

from .scene import Script, role_of
from .searching import agents_of, search_with
from .test_dialogue import code

SETTINGS = LLMSettings(retries=0, timeout_s=50.0)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")


class Soon(Ledger):
    """The limit is always two seconds away."""

    deadline = property(lambda self: time.monotonic() + 2.0, lambda self, value: None)  # type: ignore[assignment]


class Slow:
    """A script whose `role` never ends its answer."""

    def __init__(self, role: str, ledger: Ledger) -> None:
        self.role, self.ledger = role, ledger
        self.script = Script(deque([code(2.0), code(3.0)]))

    def __call__(self, body: dict[str, object]) -> Reply:
        if role_of(body) == self.role:
            return Reply("a beginning " * 20, fault="stall")
        return self.script(body)

    def search(self, server: LLMServer, store: Store, folder: Path, *, drafts: int = 1) -> SearchResult:
        return search_with(
            agents_of(f"openai:m@{server.url}", self.ledger, SETTINGS),
            store,
            folder,
            budget=Budget(attempts=1),
            policy=BestFirst(starts=9),
            settings=SearchSettings(language="python", children=1, min_share=0, patience=9, drafts=drafts),
        )


@pytest.mark.slow
def test_a_judge_without_time_repeats_the_verdict_and_the_win_is_kept(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        slow = Slow("judge", Soon(store, "run"))
        with LLMServer(slow) as server:
            result = slow.search(server, store, tmp_path)
        assert [win.evaluation.passed for win in result.wins] == [True]
        (attempt,) = store.attempts("run")
        assert attempt.status is AttemptStatus.DONE
        assert attempt.critique is not None
        assert "limit of time ended the call" in attempt.critique.cause


@pytest.mark.slow
@pytest.mark.parametrize("drafts", [1, 8])
def test_an_attempt_without_a_draft_stays_planned(tmp_path: Path, drafts: int) -> None:
    """Calls that the limit ends are no failures of the endpoint either."""
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        slow = Slow("coder", Soon(store, "run"))
        with LLMServer(slow) as server:
            result = slow.search(server, store, tmp_path, drafts=drafts)
            assert [a.status for a in store.attempts("run")] == [AttemptStatus.PLANNED]
            assert result.out_of_budget
            slow.role, slow.ledger = "", Ledger(store, "run")
            again = slow.search(server, store, tmp_path)
        assert (again.attempts, len(again.wins)) == (1, 1)


def test_no_call_is_made_after_the_limit(tmp_path: Path) -> None:
    with LLMServer() as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        ledger = Ledger(store, "run", deadline=time.monotonic())
        role = Role("judge", open_model(f"openai:m@{server.url}", SETTINGS), ledger, SETTINGS)
        with pytest.raises(CannotAfford, match="limit of time"):
            role.ask((), "hello", lambda response, again: response, attempt="")
    assert server.seen == []
    assert store.calls("run") == ()

"""Several drafts of a plan."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from agentforge.agents import Draft, Past, Task
from agentforge.agents.llm import LLMCoder
from agentforge.agents.llm.role import Role
from agentforge.config import LLMSettings
from agentforge.llm import CallFailed, Ledger, Request, Response, Tokens
from agentforge.schema import (
    AttemptEvaluated,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    Plan,
    Solution,
    StoreError,
    UsageError,
)
from agentforge.store import Store
from agentforge.testing.agents import make_evaluation, make_task
from agentforge.testing.language import make_solution
from tests.llm.server import LLMServer
from tests.loop.conftest import make_run
from tests.loop.scripted import SimulatedReferee

from .scene import CONTEXT, HARDWARE, Script, Scripted, bottleneck
from .test_dialogue import code, key, searched

__all__ = ["key"]


def test_the_fastest_of_several_drafts_is_the_attempt(tmp_path: Path) -> None:
    script = Script(deque([code(2.0), code(2.5), code(1.5, "CRASHED"), code(1.2)]))
    referee = SimulatedReferee()
    with LLMServer(script) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        result = searched(store, server.url, tmp_path, referee, "dialogue", 1, drafts=3)
        assert '"speed": 2.5' in result.wins[0].solution.source("model_new.py")
        attempt, calls = store.attempts("run")[0], store.calls("run")
        assert attempt.usage.tokens_in == sum(c.tokens_in for c in calls)
        assert sum(c.role == "coder" for c in calls) == 4
        prompts = sorted(p.rpartition("This is draft ")[2][:6] for p in script.of("coder") if "This is" in p)
        assert prompts[:3] == ["1 of 3", "2 of 3", "3 of 3"]
        full = [e for e in store.events("run") if isinstance(e, AttemptEvaluated) and e.level is Level.FULL]
        assert len(full) == 1
    assert len(referee.evaluations) == len(set(referee.evaluations))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreError("full"), UsageError("the key is refused")])
def test_what_ends_the_run_is_no_draft_that_failed(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def draft(
        _: LLMCoder, task: Task, plan: Plan, parent: Past | None, number: int, verdicts: object
    ) -> Draft:
        if number == 2:
            raise error
        return Draft(make_solution("python", {"model_new.py": f"# {number}"}))

    def check(solution: Solution, level: Level) -> NoReturn:
        raise AssertionError("the other drafts were measured")

    monkeypatch.setattr(LLMCoder, "_draft", draft)
    coder = LLMCoder(Role("coder", Scripted(), Ledger(store, "run"), LLMSettings()))
    asked = Task(bottleneck(), HARDWARE, CONTEXT, (), ("python",), (), "run/0001", drafts=3, check=check)
    with pytest.raises(type(error)):
        coder.code(asked, Plan(strategy="rows"), None)


class ByDraft(Scripted):
    """The first draft is wrong, the second one is right."""

    def complete(self, request: Request) -> Response:
        wrong = "This is draft 1 of 2" in request.messages[0].text
        return Response(text=code(2.0, "INCORRECT_NUMERICAL" if wrong else "PASSED"), model="scripted-1")


@pytest.mark.parametrize("ends", [False, True])
def test_a_right_draft_is_handed_in_although_another_is_as_fast(store: Store, ends: bool) -> None:
    """Either nothing can be timed, or the budget ends with the second draft's own measurement."""
    ended: list[Level] = []

    def check(solution: Solution, level: Level) -> Evaluation | None:
        if ended:
            return None
        right = "PASSED" in solution.source("model_new.py")
        status = EvaluationStatus.PASSED if right else EvaluationStatus.INCORRECT_NUMERICAL
        if ends and right and level is Level.QUICK:
            ended.append(level)
        return make_evaluation(make_task(), status).model_copy(update={} if ends else {"performance": None})

    coder = LLMCoder(Role("coder", ByDraft(), Ledger(store, "run"), LLMSettings()))
    asked = Task(bottleneck(), HARDWARE, CONTEXT, (), ("python",), (), "run/0001", drafts=2, check=check)
    made = coder.code(asked, Plan(strategy="rows", language="python"), None)
    assert "PASSED" in made.solution.source("model_new.py")


def test_the_cost_of_all_drafts_counts_if_none_is_written(store: Store) -> None:
    failures = [CallFailed("busy", Tokens(input=100 * n, output=n)) for n in (1, 2, 3)]
    coder = LLMCoder(Role("coder", Scripted(*failures), Ledger(store, "run"), LLMSettings()))
    own = replace(make_task(), languages=("python",), drafts=3, check=lambda solution, level: None)
    with pytest.raises(CallFailed) as caught:
        coder.code(own, Plan(strategy="rows", language="python"), None)
    assert (caught.value.usage.tokens_in, caught.value.usage.tokens_out) == (600, 6)


def test_a_suspicious_draft_loses_though_it_is_faster(store: Store) -> None:
    """It could never be kept."""

    def check(solution: Solution, level: Level) -> Evaluation | None:
        honest = "PASSED" in solution.source("model_new.py")
        made = make_evaluation(make_task(), EvaluationStatus.PASSED, speedup=2.0 if honest else 9.0)
        return made if honest else made.model_copy(update={"evidence": Evidence.SUSPICIOUS})

    coder = LLMCoder(Role("coder", ByDraft(), Ledger(store, "run"), LLMSettings()))
    asked = Task(bottleneck(), HARDWARE, CONTEXT, (), ("python",), (), "run/0001", drafts=2, check=check)
    made = coder.code(asked, Plan(strategy="rows", language="python"), None)
    assert "PASSED" in made.solution.source("model_new.py")

"""The cheaper proposer goes on while it gains; specifications make agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentforge.agents import (
    Draft,
    Past,
    Task,
    check_agents,
    create_coder,
    create_judge,
    create_planner,
)
from agentforge.agents.chain import PATIENCE, ChainCoder, ChainJudge, ChainPlanner
from agentforge.agents.llm import LLMPlanner
from agentforge.agents.playbook.coder import PlaybookCoder
from agentforge.agents.playbook.planner import PlaybookPlanner
from agentforge.config import LLMSettings, SearchSettings
from agentforge.llm import Ledger
from agentforge.schema import (
    Budget,
    BuildSpec,
    CannotCode,
    Critique,
    Evaluation,
    Plan,
    Solution,
    SourceFile,
    UsageError,
)
from agentforge.store import Store
from tests.loop.conftest import make_run

from .test_roles import evaluation, task


@dataclass
class Fake:
    """All three roles; keeps what it was asked."""

    name: str
    empty: bool = False
    asked: list[str] = field(default_factory=list)

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        self.asked.append("plan")
        return None if self.empty else Plan(strategy="s", author=self.name)

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        self.asked.append("code")
        if self.empty:
            raise CannotCode("no")
        source = SourceFile(path="model_new.py", content=f"# {self.name}")
        spec = BuildSpec(language="python")
        return Draft(Solution(name="n", definition="d", author=self.name, spec=spec, sources=(source,)))

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        return Critique(kind="accept", author=self.name)


def made(number: int, author: str, speed: float) -> Past:
    plan = Plan(strategy="s", author=author)
    return Past(f"run/{number:04d}", None, plan, None, evaluation(speed=speed), None)


def author(plan: Plan | None) -> str:
    assert plan is not None
    return plan.author


def test_the_cheaper_planner_has_its_turn_while_it_gains() -> None:
    cheap, dear = Fake("cheap"), Fake("dear")
    chain = ChainPlanner([cheap, dear])
    assert author(chain.plan(task(), None)) == "cheap"
    losing = [made(1, "cheap", 2.0), *(made(n, "cheap", 1.5) for n in range(2, 2 + PATIENCE))]
    assert author(chain.plan(task(*losing[:-1]), None)) == "cheap"
    assert author(chain.plan(task(*losing), None)) == "dear"
    assert author(chain.plan(task(*losing, made(7, "cheap", 3.0)), None)) == "cheap"
    cheap.empty = True
    assert author(chain.plan(task(), None)) == "dear"


def test_plans_are_carried_out_by_who_can_and_judged_by_their_own() -> None:
    cheap, dear = Fake("cheap"), Fake("dear")
    plan = Plan(strategy="s", author="dear")
    chain = ChainCoder([cheap, dear])
    assert chain.code(task(), plan, None).solution.author == "dear"
    dear.empty = True
    assert chain.code(task(), plan, None).solution.author == "cheap"
    cheap.empty = True
    with pytest.raises(CannotCode):
        chain.code(task(), plan, None)
    judge = ChainJudge([cheap, dear])
    solution = Fake("x").code(task(), plan, None).solution
    assert judge.judge(task(), plan, solution, evaluation()).author == "dear"
    assert judge.judge(task(), Plan(strategy="s", author="else"), solution, evaluation()).author == "dear"


def test_specifications(tmp_path: Path) -> None:
    spec = "openai:m@http://127.0.0.1:1/v1"
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        ledger = Ledger(store, "run")
        assert isinstance(create_planner("playbook", ledger), PlaybookPlanner)
        assert isinstance(create_coder("playbook"), PlaybookCoder)
        assert isinstance(create_planner(spec, ledger), LLMPlanner)
        assert create_judge(f"playbook, {spec}", ledger).name == f"playbook,{spec}"
        poor = Ledger(store, "run", Budget(dollars=1.0))
        with pytest.raises(UsageError, match="price"):
            create_planner(spec, poor)
    with pytest.raises(UsageError, match="ledger"):
        create_planner(spec)


@pytest.mark.parametrize("coder", ["openai:m@http://h/v1", "bandit(openai:m@http://h/v1)"])
def test_the_playbook_does_not_judge_what_models_plan_and_write(
    coder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")
    model = "openai:m@http://h/v1"
    with pytest.raises(UsageError, match=f"add --judge {model}"):
        check_agents(SearchSettings(planner=f"playbook,{model}", coder=coder), LLMSettings())
    check_agents(SearchSettings(planner=model, coder=coder, judge=f"playbook,{model}"), LLMSettings())
    check_agents(SearchSettings(coder=coder), LLMSettings())
    check_agents(SearchSettings(planner=model), LLMSettings())


@pytest.mark.parametrize("spec", ["nope", "playbook,", "playbook,nope", "nobody:m", "openai:"])
def test_bad_names_are_said_at_once(spec: str) -> None:
    with pytest.raises(UsageError):
        check_agents(SearchSettings(planner=spec), LLMSettings())

"""A run in a real store, and `search`: the loop over scripted agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentforge.agents import Coder, Hardware, ModelPlanner
from agentforge.agents.playbook.model_planner import PlaybookModelPlanner
from agentforge.config import SearchSettings
from agentforge.devices import DeviceSpec
from agentforge.loop import Agents, BudgetMeter, RunLog, SearchResult, Session, run_search
from agentforge.schema import Budget, Event, Profile, Run, RunStatus
from agentforge.search import BestFirst, TreePolicy
from agentforge.store import Store

from .scripted import (
    DEVICE,
    NullKnowledge,
    ScriptedCoder,
    ScriptedJudge,
    ScriptedPlanner,
    SimulatedReferee,
    context_for,
)

Script = Mapping[str, Sequence[dict[str, Any] | Exception]]


def make_run(identifier: str = "run", budget: Budget | None = None) -> Run:
    now = datetime.now(UTC)
    return Run(
        id=identifier,
        target="target",
        name="target",
        origin="target.py",
        device=DEVICE,
        status=RunStatus.SEARCHING,
        budget=budget or Budget(),
        created=now,
        updated=now,
    )


@dataclass
class Bench:
    """Everything of one run that a test looks at."""

    store: Store
    folder: Path
    referee: SimulatedReferee = field(default_factory=SimulatedReferee)
    knowledge: NullKnowledge = field(default_factory=NullKnowledge)
    events: list[Event] = field(default_factory=list)
    planner: ScriptedPlanner = field(default_factory=lambda: ScriptedPlanner({}))
    model_planner: ModelPlanner = field(default_factory=PlaybookModelPlanner)
    policy: TreePolicy = field(default_factory=BestFirst)
    coder: Coder = field(default_factory=ScriptedCoder)

    def search(
        self,
        profile: Profile,
        script: Script,
        *,
        clock: Any = None,
        name: str = "run",
        conditions: str = "",
        patient: bool = True,
        **settings: Any,
    ) -> SearchResult:
        run = self.store.get_run(name)
        run_log = RunLog(self.store, run, self.events.append, conditions)
        options = {"clock": clock} if clock else {}
        limit_s = settings.get("limit_s")
        meter = BudgetMeter(run.budget, seconds_used=run.seconds_used, limit_s=limit_s, **options)
        session = self.session(script, patient, **settings)
        return run_search(profile, run_log, meter, session, checkpoint=self.folder / "checkpoint.db")

    def session(self, script: Script, patient: bool = True, **settings: Any) -> Session:
        self.planner = ScriptedPlanner(script)
        return Session(
            agents=Agents(self.planner, self.coder, ScriptedJudge(), self.model_planner),
            evaluator=self.referee,
            knowledge=self.knowledge,
            context_for=context_for,
            policy=self.policy,
            settings=SearchSettings(**settings),
            device=DeviceSpec(kind="null", name=DEVICE, architecture="null"),
            hardware=Hardware(DEVICE, "null", 1, 1e9, 1e9),
            patient=patient,
        )

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event.model_dump() for event in self.events if event.kind == kind]


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    budget = getattr(request, "param", None)
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run(budget=budget))
        yield Bench(store, tmp_path)

"""A search in a real store and loop: by default the referee is simulated and nothing is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentforge.agents import create_coder, create_judge, create_planner
from agentforge.config import LLMSettings, SearchSettings
from agentforge.devices import DeviceSpec
from agentforge.llm import Ledger
from agentforge.loop import Agents, BudgetMeter, RunLog, SearchResult, Session, run_search
from agentforge.schema import Budget, Profile
from agentforge.search import TreePolicy
from agentforge.store import Store
from tests.loop.scripted import DEVICE, NullKnowledge, SimulatedReferee

from .scene import CONTEXT, HARDWARE, profile


def agents_of(spec: str, ledger: Ledger, settings: LLMSettings) -> Agents:
    """One model in all roles."""
    return Agents(
        create_planner(spec, ledger, settings),
        create_coder(spec, ledger, settings),
        create_judge(spec, ledger, settings),
    )


def search_with(
    agents: Agents,
    store: Store,
    folder: Path,
    *,
    budget: Budget,
    policy: TreePolicy,
    settings: SearchSettings,
    run: str = "run",
    region: Profile | None = None,
    **parts: Any,
) -> SearchResult:
    """Search until the budget is spent; `parts` are further ones of the session."""
    usual = {
        "evaluator": SimulatedReferee(),
        "knowledge": NullKnowledge(),
        "context_for": lambda _: CONTEXT,
        "device": DeviceSpec(kind="cpu", name=DEVICE, architecture="null"),
        "hardware": HARDWARE,
    }
    session = Session(agents=agents, policy=policy, settings=settings, **{**usual, **parts})
    run_log = RunLog(store, store.get_run(run))
    checkpoint = folder / f"{run}.db"
    return run_search(region or profile(), run_log, BudgetMeter(budget), session, checkpoint=checkpoint)

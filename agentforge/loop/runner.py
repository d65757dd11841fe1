"""Search all bottlenecks of a profile within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agentforge.agents import Hardware
from agentforge.config import SearchSettings
from agentforge.devices import DeviceSpec
from agentforge.knowledge import KnowledgeBase
from agentforge.referee import Evaluator
from agentforge.schema import (
    Bottleneck,
    Context,
    Priors,
    Profile,
    SearchDone,
    SearchStarted,
    SearchSummary,
)
from agentforge.search import Allocator, GainPerCost, TreePolicy

from ._base import Agents, SearchedBottleneck, SearchResult, Win
from .budget import BudgetMeter
from .lessons import teach
from .model_plan import plan_model, skipped
from .run_log import RunLog
from .steps import Steps, remeasure_all
from .supervisor import Supervisor

LEAST_PRIOR = 0.05
"""Probability of a gain where the knowledge base has no strategy: a planner may have one of its own, and
one that has none closes the bottleneck when it is asked."""


@dataclass(frozen=True)
class Session:
    """What a search runs with."""

    agents: Agents
    evaluator: Evaluator
    knowledge: KnowledgeBase
    context_for: Callable[[Bottleneck], Context]
    """The context under which the knowledge base keeps a bottleneck's results."""
    policy: TreePolicy
    settings: SearchSettings
    device: DeviceSpec
    hardware: Hardware
    allocator: Allocator = field(default_factory=GainPerCost)
    patient: bool = True
    """Attempts that a busy machine spoiled are measured again."""


def run_search(
    profile: Profile, run_log: RunLog, meter: BudgetMeter, session: Session, *, checkpoint: Path
) -> SearchResult:
    """Search until the budget is used up or nothing is worth another attempt.

    Called again after an interruption, even a kill, it continues and repeats no finished evaluation.

    Raises:
        HarnessError: the referee keeps failing.
        AgentForgeError: something of the infrastructure is missing; what was done is kept.
    """
    from .graph import run_graph  # LangGraph takes a second to import; those who hand in need none of it

    supervisor = make_supervisor(profile, run_log, meter, session)
    supervisor.rank()  # of a resumed run: its view begins with the profile
    steps = Steps(supervisor, session.policy, session.settings.width, session.allocator)
    try:
        final = run_graph(steps, checkpoint)
        remeasure_all(supervisor)
    finally:
        run_log.spend(meter.seconds)
        teach(run_log, supervisor.bottlenecks, session.knowledge)
    out_of_budget = supervisor.out_of_budget(new_attempts=0)
    reason = out_of_budget or final.get("reason", "")
    attempts = len(run_log.attempts())
    result = SearchResult(supervisor.profile, collect(supervisor), attempts, reason, bool(out_of_budget))
    summary = SearchSummary(
        reason=reason, attempts=result.attempts, wins=len(result.wins), nothing_left=not out_of_budget
    )
    run_log.keep(summary)
    run_log.event(SearchDone(reason=reason, attempts=result.attempts, wins=len(result.wins)))
    return result


def make_supervisor(profile: Profile, run_log: RunLog, meter: BudgetMeter, session: Session) -> Supervisor:
    """What works on the attempts of a run; plan and priors are those of the run's first session."""
    meter.profiled(profile.seconds)
    priors = _priors(profile, run_log, session)
    chances = priors.by_bottleneck
    plan, merged = plan_model(session.agents.model_planner, profile, session.hardware, chances, run_log)
    known = {b.definition.hash: b for b in merged.bottlenecks}
    return Supervisor(
        profile=merged,
        bottlenecks={
            region.bottleneck: SearchedBottleneck(
                known[region.bottleneck],
                session.context_for(known[region.bottleneck]),
                chances[region.bottleneck],
                strategies=tuple(priors.strategies.get(region.bottleneck, {}).items()),
                skip_reason="" if region.fuse else skipped(region.why),
            )
            for region in plan.regions
        },
        run_log=run_log,
        meter=meter,
        agents=session.agents,
        evaluator=session.evaluator,
        knowledge=session.knowledge,
        settings=session.settings,
        hardware=session.hardware,
        device=session.device.kind,
        patient=session.patient,
    )


def collect(supervisor: Supervisor) -> tuple[Win, ...]:
    """The incumbents of all bottlenecks, in the profile's order."""
    wins = []
    for bottleneck in supervisor.profile.bottlenecks:
        incumbent = supervisor.bottleneck_state(bottleneck.definition.hash).incumbent
        if incumbent is not None and incumbent[0].solution is not None:
            attempt, evaluation = incumbent
            wins.append(Win(bottleneck, attempt.id, supervisor.run_log.solution_of(attempt), evaluation))
    return tuple(wins)


def _priors(profile: Profile, run_log: RunLog, session: Session) -> Priors:
    """The run's priors; with them begins its search."""
    before = run_log.record(Priors)
    if before is not None:
        return before
    for bottleneck in (*profile.bottlenecks, *profile.merges):
        run_log.store.save_definition(bottleneck.definition)
    knowledge, languages, device = session.knowledge, (session.settings.language,), session.device.kind
    chances: dict[str, float] = {}
    expected: dict[str, dict[str, float]] = {}
    for bottleneck in (*profile.bottlenecks, *profile.merges):
        name, context = bottleneck.definition.hash, session.context_for(bottleneck)
        chances[name] = max(LEAST_PRIOR, knowledge.success_probability(context, languages, device))
        expected[name] = knowledge.expected_gains(context, languages, device)
    priors = Priors(by_bottleneck=chances, strategies=expected)
    run_log.keep(priors)
    run_log.event(SearchStarted(budget=run_log.run.budget))
    return priors

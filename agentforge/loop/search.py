"""Search all bottlenecks of a profile within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentforge.agents import Hardware
from agentforge.config import SearchSettings
from agentforge.devices import DeviceSpec
from agentforge.harness import Evaluator
from agentforge.schema import Bottleneck, Context, Event, Profile
from agentforge.search import SearchPolicy

from ._base import Agents, Knowledge, SearchResult, Win
from .journal import Journal
from .lessons import teach
from .meter import Meter
from .steps import Steps
from .supervisor import Problem, Supervisor
from .whole import left, plan_model

LEAST_PRIOR = 0.05
"""Probability of a gain where the knowledge base has no strategy: a planner may have one of its own, and
one that has none closes the bottleneck when it is asked."""


@dataclass(frozen=True)
class Session:
    """What a search runs with."""

    agents: Agents
    evaluator: Evaluator
    knowledge: Knowledge
    context_for: Callable[[Bottleneck], Context]
    """Where the knowledge base keeps a bottleneck's records."""
    policy: SearchPolicy
    settings: SearchSettings
    device: DeviceSpec
    hardware: Hardware


def run_search(
    profile: Profile, journal: Journal, meter: Meter, session: Session, *, checkpoint: Path
) -> SearchResult:
    """Search until the budget is used up or nothing is worth another attempt.

    Interrupted at any moment, even by a kill, and called again with the same run, it goes on where it
    was and repeats no finished evaluation.

    Args:
        profile: its bottlenecks are searched.
        journal: the run's book; the caller holds the run's lock.
        meter: the run's budget.
        session: agents, referee, knowledge base, policy and device.
        checkpoint: file of the graph's checkpoints.

    Raises:
        HarnessError: the referee keeps failing.
        AgentForgeError: something of the infrastructure is missing; what was done is kept.
    """
    from .graph import run_graph  # LangGraph takes a second to import; those who hand in need none of it

    supervisor = make_supervisor(profile, journal, meter, session)
    steps = Steps(supervisor, session.policy, session.settings.width)
    try:
        final = run_graph(steps, checkpoint)
    finally:
        journal.spend(meter.seconds)
        teach(journal, supervisor.problems, session.knowledge)
    out_of_budget = supervisor.out_of_budget(new_attempts=0)
    reason = out_of_budget or final.get("reason", "")
    result = SearchResult(collect(profile, supervisor), len(journal.attempts()), reason, bool(out_of_budget))
    journal.event("search.done", reason=reason, attempts=result.attempts, wins=len(result.wins))
    return result


def make_supervisor(profile: Profile, journal: Journal, meter: Meter, session: Session) -> Supervisor:
    """What works on the attempts of a run."""
    return Supervisor(
        problems=_problems(profile, journal, session),
        journal=journal,
        meter=meter,
        agents=session.agents,
        evaluator=session.evaluator,
        knowledge=session.knowledge,
        settings=session.settings,
        hardware=session.hardware,
        device=session.device.kind,
    )


def collect(profile: Profile, supervisor: Supervisor) -> tuple[Win, ...]:
    """The incumbents of all bottlenecks, in the profile's order."""
    wins = []
    for bottleneck in profile.bottlenecks:
        incumbent = supervisor.standing(bottleneck.definition.hash).incumbent
        if incumbent is not None and incumbent[0].solution is not None:
            attempt, evaluation = incumbent
            wins.append(
                Win(bottleneck, attempt.id, supervisor.journal.solution(incumbent[0].solution), evaluation)
            )
    return tuple(wins)


def _problems(profile: Profile, journal: Journal, session: Session) -> dict[str, Problem]:
    """The bottlenecks in the plan's order; plan and priors are those of the run's first session."""
    started = journal.first("search.started") or _start(profile, journal, session)
    priors = started.data["priors"]
    assert isinstance(priors, dict)
    plan = plan_model(session.agents.model_planner, profile, session.hardware, priors, journal)
    known = {b.definition.hash: b for b in profile.bottlenecks}
    return {
        region.bottleneck: Problem(
            known[region.bottleneck],
            session.context_for(known[region.bottleneck]),
            float(priors[region.bottleneck]),
            left="" if region.fuse else left(region.why),
        )
        for region in plan.regions
    }


def _start(profile: Profile, journal: Journal, session: Session) -> Event:
    for bottleneck in profile.bottlenecks:
        journal.store.save_definition(bottleneck.definition)
    languages = (session.settings.language,)
    known = {
        b.definition.hash: session.knowledge.success_probability(
            session.context_for(b), languages, session.device.kind
        )
        for b in profile.bottlenecks
    }
    priors = {name: max(probability, LEAST_PRIOR) for name, probability in known.items()}
    return journal.event("search.started", priors=priors, budget=journal.run.budget.model_dump())

"""The playbook's planner: the next strategy of the knowledge base, then its parameters."""

from __future__ import annotations

import math

from agentforge.agents._base import Past, Task
from agentforge.schema import Plan, Strategy

from .facts import (
    SEED,
    Parameters,
    best,
    changes,
    effective,
    key,
    measured,
    ordered_strategies,
    refused,
    start,
    tried,
)

_MOST_TUNING = 12
"""Tuning steps per bottleneck. Each costs one evaluation, and the parameters interact little."""


class PlaybookPlanner:
    """Plans in the knowledge base's order. Deterministic and stateless."""

    name = "playbook"

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        """See `Planner.plan`.

        With a parent: the critique's proposal, then one change of a parameter. Without: the first
        strategy that was not tried.
        """
        if parent is not None and parent.plan is not None:
            return self._from_critique(task, parent) or self._tune(task, parent)
        return self._untried(task) or self._tune(task, best(task))

    def _untried(self, task: Task) -> Plan | None:
        done = {p.plan.strategy for p in task.past if p.plan is not None}
        for strategy in ordered_strategies(task):
            if strategy.id in done or not _usable(task, strategy):
                continue
            first = start(strategy, task.context, bool(task.past))
            return _plan(task, strategy, first, f"{strategy.title} was not tried here yet")
        return None

    def _from_critique(self, task: Task, parent: Past) -> Plan | None:
        critique = parent.critique
        strategy = _strategy(task, parent)
        if critique is None or strategy is None or critique.kind not in ("repair", "optimize"):
            return None
        parameters = {**effective(parent), **critique.parameters}
        if not critique.parameters or key(strategy.id, parameters) in tried(task):
            return None
        why = f"the judge proposes: {critique.change or critique.cause}"
        base = task.best_baseline.speedup(parent.evaluation)
        return _plan(task, strategy, parameters, why, base=base)

    def _tune(self, task: Task, parent: Past | None) -> Plan | None:
        """Coordinate descent: set one parameter of a passed attempt to its next value."""
        base = task.best_baseline.speedup(parent.evaluation) if parent is not None else None
        if parent is None or parent.plan is None or base is None:
            return None
        strategy = _strategy(task, parent)
        if strategy is None or strategy.id == SEED:
            return None
        seen = tried(task)
        if sum(k[0] == strategy.id for k in seen) > _MOST_TUNING:
            return None
        current = effective(parent)
        for name, value in changes(strategy, current):
            changed = {**current, name: value}
            if key(strategy.id, changed) not in seen:
                why = f"one change from the best so far: {name} = {value}"
                return _plan(task, strategy, changed, why, base=base)
        return None


def _strategy(task: Task, past: Past) -> Strategy | None:
    wanted = past.plan.strategy if past.plan else ""
    return next((s for s in task.strategies if s.id == wanted), None)


def _usable(task: Task, strategy: Strategy) -> bool:
    """True if the playbook can instantiate a strategy here: its template exists and was not refused."""
    speaks = not strategy.languages or bool(set(strategy.languages) & set(task.languages))
    return speaks and bool(strategy.template) and not refused(task, strategy.template)


def _expected(task: Task, strategy: Strategy) -> float:
    """Expected speedup over the best baseline: prior and this context's record, weighted by their counts."""
    weight, total = strategy.prior_weight, strategy.prior_weight * strategy.prior_log_speedup
    for record in strategy.records:
        if record.context == task.context:
            weight += record.n
            total += record.n * record.mean_log_speedup
    return math.exp(total / weight) if weight > 0 else 1.0


def _plan(
    task: Task, strategy: Strategy, parameters: Parameters, why: str, base: float | None = None
) -> Plan:
    b = task.bottleneck
    language = next((x for x in task.languages if x in strategy.languages), task.languages[0])
    headroom = b.time_s / b.sol_s if b.sol_s > 0 else math.inf
    diagnosis = (
        f"{b.definition.op_type} takes {b.share:.1%} of the time and is {b.bound.adjective}: "
        f"{b.time_s * 1e3:.3g} ms against {b.sol_s * 1e3:.3g} ms at the speed of light; {why}"
    )
    return Plan(
        strategy=strategy.id,
        diagnosis=diagnosis,
        evidence=measured(task),
        steps=(strategy.summary, *(f"{k} = {v}" for k, v in sorted(parameters.items()))),
        language=language,
        template=strategy.template,
        parameters=dict(parameters),
        expected_speedup=min(max(base or _expected(task, strategy), 1e-3), max(headroom, 1.0)),
        risks=("the region may hold an operator that the generator does not know",) if not task.past else (),
    )

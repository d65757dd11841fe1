"""Facts of a task for the agents: measured values by name, and results of earlier attempts."""

from __future__ import annotations

from collections.abc import Mapping

from agentforge.agents._base import Past, Task, call_failed, honest
from agentforge.schema import Citation, Context, Evaluation, Plan, Strategy

Parameters = Mapping[str, int | float | str | bool]

SAME_CODE = "gives the same code as an earlier attempt"
"""The coder's message for a plan whose parameters make no difference here."""

SEED = "inductor-seed"
"""The strategy whose solution is the code that torch.compile generates."""


def measured(task: Task) -> tuple[Citation, ...]:
    """The profiler's measurements of the bottleneck, as citations."""
    b = task.bottleneck
    moved = sum(site.bytes for site in b.call_sites)
    cited = [
        Citation(metric="share", value=b.share),
        Citation(metric="time_s", value=b.time_s),
        Citation(metric="sol_s", value=b.sol_s),
    ]
    if b.time_s > 0 and moved > 0:
        cited.append(Citation(metric="achieved_bandwidth", value=moved / b.time_s))
    if task.hardware.bandwidth > 0:
        cited.append(Citation(metric="bandwidth", value=task.hardware.bandwidth))
    return tuple(cited)


def measured_metrics(evaluation: Evaluation) -> dict[str, float]:
    """Metrics of a solution by name; with several kernels, by `kernel/metric`."""
    kernels = {m.kernel for m in evaluation.metrics if m.kernel}
    return {
        f"{m.kernel}/{m.name}" if m.kernel and len(kernels) > 1 else m.name: m.value
        for m in evaluation.metrics
    }


def limits(evaluation: Evaluation) -> tuple[Citation, ...]:
    """The measured values that decided what limits a solution."""
    found = evaluation.classification
    return tuple(Citation(metric=r.metric, value=r.value) for r in found.reasons) if found else ()


def ordered_strategies(task: Task) -> tuple[Strategy, ...]:
    """The strategies in their order, with those for another class than the best attempt's at the end.

    Before any attempt, a region's class comes from its speed of light. After a measurement, it comes from
    the kernel.
    """
    leader = best(task)
    found = leader.evaluation.classification if leader is not None and leader.evaluation else None
    if found is None:
        return task.strategies
    return tuple(sorted(task.strategies, key=lambda s: bool(s.bounds) and found.bound not in s.bounds))


def best(task: Task) -> Past | None:
    """The fastest attempt that passed and builds on no cheat; the first of equal ones."""
    speedup = task.best_baseline.speedup
    passed = [p for p in honest(task.past) if p.plan is not None and speedup(p.evaluation) is not None]
    return max(passed, key=lambda p: speedup(p.evaluation) or 0.0, default=None)


def key(strategy: str, parameters: Parameters) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Identity of a try: a strategy with its parameters."""
    return strategy, tuple(sorted((k, repr(v)) for k, v in parameters.items()))


def tried(task: Task) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """All tries of this run, the tuner's points included."""
    return {
        key(p.plan.strategy, parameters)
        for p in task.past
        if p.plan is not None
        for parameters in (p.plan.parameters, *({**effective(p), **t.parameters} for t in p.trials))
    }


def effective(past: Past) -> dict[str, int | float | str | bool]:
    """Parameters of an attempt: its plan's, and those that a repair gave its solution."""
    parameters: dict[str, int | float | str | bool] = dict(past.plan.parameters if past.plan else {})
    if past.solution is not None:
        parameters.update(past.solution.parameters)
    return parameters


def start(strategy: Strategy, context: Context, informed: bool) -> dict[str, int | float | str | bool]:
    """Parameters of a strategy's first try in a context: those of the best values of this context, or of the
    same operators in another shape, that the card has; else the values that promise most, if `informed`, and
    the card's first ones otherwise.

    The first attempt at a region is not informed, because changes are measured against it.
    """
    parameters = {name: values[0] for name, values in strategy.parameters.items() if values}
    for name, gains in strategy.expected.items() if informed else ():
        parameters[name] = strategy.parameters[name][gains.index(max(gains))]
    for record in strategy.records:
        if record.best_parameters and record.context.same_operators(context):
            known = strategy.parameters
            parameters.update({k: v for k, v in record.best_parameters.items() if v in known.get(k, ())})
            break
    return parameters


def changes(strategy: Strategy, current: Parameters) -> tuple[tuple[str, int | float | str | bool], ...]:
    """All changes of one parameter, the best expected first; equal ones in the card's order."""
    found: list[tuple[float, str, int | float | str | bool]] = []
    for name, values in strategy.parameters.items():
        gains = dict(zip(values, strategy.expected.get(name, ()), strict=False))
        now = current.get(name, values[0]) if values else None
        before = gains.get(now, 0.0) if now is not None else 0.0
        found += [(gains.get(value, 0.0) - before, name, value) for value in values if value != now]
    return tuple((name, value) for _, name, value in sorted(found, key=lambda change: -change[0]))


def refusal(past: Past) -> str:
    """Why the coder could not carry out an attempt's plan; empty if it could, or if the coder failed."""
    return "" if past.plan is None or past.solution is not None or call_failed(past) else past.error


def refused(task: Task, template: str) -> str:
    """Why the coder could not carry out a plan with this template; empty if it could."""
    for past in task.past:
        why = refusal(past) if past.plan is not None and past.plan.template == template else ""
        if why and SAME_CODE not in why:
            return why
    return ""


def describe(plan: Plan) -> str:
    """A plan in a few words."""
    chosen = ", ".join(f"{k}={v}" for k, v in sorted(plan.parameters.items()))
    return f"{plan.strategy} ({chosen})" if chosen else plan.strategy

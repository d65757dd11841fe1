"""The playbook's judge: rules over an evaluation."""

from __future__ import annotations

from collections.abc import Callable

from agentforge.agents._base import Task
from agentforge.schema import Citation, Critique, Evaluation, EvaluationStatus, Plan, Solution

from .facts import SEED, Parameters, best, changes, effective, limits

ENOUGH_OF_SOL = 0.95
"""At this fraction of the speed of light, nothing is left to gain."""
MUCH_SLOWER = 0.6
"""A solution below this fraction of the best attempt's speed is not developed further."""

_Steps = tuple[tuple[dict[str, int | float | str | bool], str], ...]
_GENTLER: _Steps = (
    ({"math": "strict"}, "compile without reassociation and approximate reciprocals"),
    ({"math": "libm"}, "use the C library's elementary functions"),
    ({"accumulate": "double", "online": False}, "add partial sums in double, in two passes"),
)
"""Repairs of a numerical failure, the cheapest first."""
_SAFER: _Steps = (
    ({"nontemporal": "off"}, "write through the cache"),
    ({"stage": "off", "online": False}, "keep no row in scratch"),
    ({"inplace": False}, "give every result memory of its own"),
)
"""Repairs of a crash."""
_DETERMINISTIC: _Steps = (({"schedule": "static", "math": "strict"}, "fix the order of every sum"),)


class PlaybookJudge:
    """Judges by rules. Deterministic and stateless."""

    name = "playbook"

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        """See `Judge.judge`."""
        if evaluation.passed:
            return self._passed(task, plan, solution, evaluation)
        rule = _RULES.get(evaluation.status, _give_up)
        return rule(plan, solution, evaluation)

    def _passed(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        performance = evaluation.performance
        gain = task.best_baseline.speedup(evaluation)
        if performance is None or gain is None:
            return Critique(kind="accept", cause="it is right, and was not timed")
        cited = [
            Citation(metric="latency_s", value=performance.latency_s),
            Citation(
                metric=f"speedup.{performance.best_baseline}", value=performance.speedup_over_best.point
            ),
        ]
        if performance.sol_s is not None and performance.latency_s > 0:
            reached = performance.sol_s / performance.latency_s
            cited.append(Citation(metric="sol_s", value=performance.sol_s))
            if reached >= ENOUGH_OF_SOL:
                cause = f"{reached:.0%} of the speed of light is reached"
                return Critique(kind="accept", cause=cause, evidence=tuple(cited))
        cited.extend(limits(evaluation))
        leader = best(task)
        top = task.best_baseline.speedup(leader.evaluation) if leader is not None else None
        if top is not None and gain < MUCH_SLOWER * top:
            cited.append(Citation(metric="best_speedup", value=top))
            cause = f"{gain:.2f}x is far behind the {top:.2f}x that another attempt reached"
            return Critique(kind="abandon", error_class="slower", cause=cause, evidence=tuple(cited))
        change = _next_change(task, plan, solution)
        if change is None:
            cause = "every parameter of this strategy was tried"
            return Critique(kind="accept", cause=cause, evidence=tuple(cited))
        name, value = change
        return Critique(
            kind="optimize",
            cause=_limit(task, evaluation),
            change=f"set {name} to {value}",
            parameters={name: value},
            evidence=tuple(cited),
            expected_gain=0.05,
        )


def _limit(task: Task, evaluation: Evaluation) -> str:
    """What limits a passed solution: its class, or its latency if the class is unknown."""
    if evaluation.classification is not None:
        return str(evaluation.classification)
    performance = evaluation.performance
    b = task.bottleneck
    if performance is None or performance.sol_s is None or performance.latency_s <= 0:
        return f"{b.bound.adjective}, and no speed of light is known to compare with"
    reached = performance.sol_s / performance.latency_s
    return f"{b.bound.adjective} at {reached:.0%} of the speed of light"


def _next_change(task: Task, plan: Plan, solution: Solution) -> tuple[str, int | float | str | bool] | None:
    """The change of a parameter that promises most of those that no attempt of the strategy has tried with
    the others unchanged."""
    strategy = next((s for s in task.strategies if s.id == plan.strategy), None)
    if strategy is None or strategy.id == SEED:
        return None
    current: Parameters = {**plan.parameters, **solution.parameters}
    seen = [effective(p) for p in task.past if p.plan is not None and p.plan.strategy == plan.strategy]
    return next(((n, v) for n, v in changes(strategy, current) if {**current, n: v} not in seen), None)


def _escalate(
    steps: _Steps, error_class: str, cause: str, solution: Solution, evidence: tuple[Citation, ...] = ()
) -> Critique:
    """The next repair after those already tried; abandon if none is left."""
    own = solution.author == "playbook"
    done = [all(solution.parameters.get(k) == v for k, v in parameters.items()) for parameters, _ in steps]
    start = max((i + 1 for i, applied in enumerate(done) if applied), default=0)
    for parameters, change in steps[start:] if own else ():
        return Critique(
            kind="repair", error_class=error_class, cause=cause, change=change, parameters=parameters,
            evidence=evidence,
        )  # fmt: skip
    return Critique(kind="abandon", error_class=error_class, cause=cause, evidence=evidence)


def _reason(evaluation: Evaluation, default: str) -> str:
    return evaluation.reasons[0] if evaluation.reasons else default


def _compile_error(plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
    errors = [d for d in evaluation.diagnostics if d.severity == "error"]
    cause = _reason(evaluation, "it does not compile")
    if errors:
        where = f"{errors[0].file}:{errors[0].line}: " if errors[0].file else ""
        cause = f"{where}{errors[0].message}"
    steps: _Steps = (({"math": "libm", "nontemporal": "off"}, "leave out what needs the instruction set"),)
    return _escalate(steps, "compile", cause, solution)


def _numerical(plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
    found = evaluation.correctness
    cited: tuple[Citation, ...] = ()
    cause = _reason(evaluation, "it differs from the reference")
    if found is not None:
        cited = (
            Citation(metric="max_relative_error", value=found.max_relative_error),
            Citation(metric="tolerance", value=found.tolerance),
        )
        if found.tolerance > 0 and found.max_relative_error > 1e4 * found.tolerance:
            cause = f"{cause}; the error is no rounding: the program itself is wrong"
            return Critique(kind="abandon", error_class="numerical", cause=cause, evidence=cited)
    return _escalate(_GENTLER, "numerical", cause, solution, cited)


def _crash(plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
    return _escalate(_SAFER, "crash", _reason(evaluation, "it crashed"), solution)


def _nondeterministic(plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
    cause = _reason(evaluation, "the same input gave two results")
    return _escalate(_DETERMINISTIC, "nondeterministic", cause, solution)


def _out_of_memory(plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
    steps: _Steps = (({"stage": "off"}, "keep no row in scratch"),)
    return _escalate(steps, "out_of_memory", _reason(evaluation, "it ran out of memory"), solution)


def _give_up(plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
    classes = {
        EvaluationStatus.INCORRECT_SHAPE: "shape",
        EvaluationStatus.INCORRECT_DTYPE: "dtype",
        EvaluationStatus.TIMEOUT: "timeout",
    }
    cause = _reason(evaluation, f"the referee says {evaluation.status.value}")
    return Critique(kind="abandon", error_class=classes.get(evaluation.status, ""), cause=cause)


_RULES: dict[EvaluationStatus, Callable[[Plan, Solution, Evaluation], Critique]] = {
    EvaluationStatus.COMPILE_ERROR: _compile_error,
    EvaluationStatus.RUNTIME_ERROR: _crash,
    EvaluationStatus.CRASHED: _crash,
    EvaluationStatus.INCORRECT_NUMERICAL: _numerical,
    EvaluationStatus.NONDETERMINISTIC: _nondeterministic,
    EvaluationStatus.OUT_OF_MEMORY: _out_of_memory,
}

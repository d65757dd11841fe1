"""The LLM judge: a repair critique after a failure, an optimization critique after a success."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from agentforge.agents._base import Past, Task
from agentforge.agents.playbook.judge import ENOUGH_OF_SOL
from agentforge.llm import CallFailed, CannotAfford, Response, strict_schema
from agentforge.schema import CardKind, Citation, Critique, Evaluation, EvaluationStatus, Plan, Solution

from . import facts
from .history import best_lessons, best_verified, fingerprint, shown_files, told_findings
from .prompts import problem, render, with_advice
from .role import Objection, Role, parsed
from .schemas import Cited, OptimizeAnswer, RepairAnswer

_REPAIR, _OPTIMIZE = strict_schema(RepairAnswer), strict_schema(OptimizeAnswer)
_ADVICE = (CardKind.SYMPTOM,)
_MOST_FINDINGS = 16

_CLASSES = {
    EvaluationStatus.COMPILE_ERROR: "compile",
    EvaluationStatus.RUNTIME_ERROR: "crash",
    EvaluationStatus.CRASHED: "crash",
    EvaluationStatus.INCORRECT_SHAPE: "shape",
    EvaluationStatus.INCORRECT_DTYPE: "dtype",
    EvaluationStatus.INCORRECT_NUMERICAL: "numerical",
    EvaluationStatus.NONDETERMINISTIC: "nondeterministic",
    EvaluationStatus.TIMEOUT: "timeout",
    EvaluationStatus.OUT_OF_MEMORY: "out_of_memory",
}


class LLMJudge:
    """Asks a model what to do next, unless a rule decides."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        """See `Judge.judge`.

        If no usable answer comes, or the budget allows no call, the critique repeats the referee's
        verdict, so that no measured attempt is lost.
        """
        settled = _without_model(task, evaluation)
        if settled is not None:
            return settled
        try:
            if evaluation.passed:
                return self._optimize(task, plan, solution, evaluation)
            return self._repair(task, plan, solution, evaluation)
        except (CallFailed, CannotAfford) as error:
            return _by_rule(task, evaluation, str(error)).model_copy(update={"usage": error.usage})

    def _repair(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        values = facts.of_evaluation(evaluation)
        prompt = render(
            "judge/repair.md.j2",
            plan=plan,
            files=shown_files(solution),
            evaluation=evaluation,
            error_class=_CLASSES[evaluation.status],
            errors=(errors := facts.compile_errors(evaluation)),
            mismatch=facts.mismatch(evaluation),
            facts=facts.prompt_lines(values),
            log="" if errors else evaluation.log[-facts.MOST_LOG :],
        )
        said = " ".join((*evaluation.reasons, *(d.message for d in errors)))
        prompt = with_advice(prompt, task, _ADVICE, evaluation, said)

        def take(response: Response, again: bool) -> RepairAnswer:
            answer = parsed(RepairAnswer, response)
            _check_citations(answer.evidence, values, again)
            return answer

        system = (problem(task), render("judge/system.md.j2"))
        answer, usage = self._role.ask(system, prompt, take, attempt=task.attempt, schema=_REPAIR)
        return Critique(
            kind="abandon" if answer.hopeless else "repair",
            error_class=_CLASSES[evaluation.status],
            cause=answer.cause,
            change=answer.fix,
            evidence=facts.valid_citations(answer.evidence, values),
            author=self.name,
            usage=usage,
        )

    def _optimize(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        values = {**facts.of_task(task), **facts.of_evaluation(evaluation)}
        before = _parent_speedup(task)
        prompt = render(
            "judge/optimize.md.j2",
            plan=plan,
            files=shown_files(solution),
            evaluation=evaluation,
            findings=told_findings(evaluation)[:_MOST_FINDINGS],
            steady=facts.steady(evaluation),
            limit=facts.classification(evaluation),
            calls=len(task.bottleneck.call_sites),
            promoted=best_verified(task),
            interval=task.best_baseline.interval(evaluation),
            facts=facts.prompt_lines(values),
            before=before,
            speedup=task.best_baseline.speedup(evaluation),
            lessons=(lessons := best_lessons(task)),
        )
        said = " ".join(map(str, told_findings(evaluation)))
        prompt = with_advice(prompt, task, _ADVICE, evaluation, said)

        def take(response: Response, again: bool) -> OptimizeAnswer:
            answer = parsed(OptimizeAnswer, response)
            _check_citations(answer.evidence, values, again)
            return answer

        system = (problem(task), render("judge/system.md.j2"))
        answer, usage = self._role.ask(system, prompt, take, attempt=task.attempt, schema=_OPTIMIZE)
        return Critique(
            kind=answer.verdict,
            closes=answer.verdict == "accept",
            error_class=_slower(task, evaluation),
            cause=answer.bottleneck,
            change=answer.change,
            evidence=facts.valid_citations(answer.evidence, values),
            expected_gain=answer.expected_gain,
            lesson=" ".join(answer.lesson.split()),
            refutes=tuple(x.number for x in lessons if x.number in answer.refuted and not x.finding),
            author=self.name,
            usage=usage,
        )


def _check_citations(cited: list[Cited], values: facts.Facts, again: bool) -> None:
    """Send an answer without a single correct citation back once."""
    if not again and (problem_ := facts.objection_to(cited, values)):
        raise Objection(f"{problem_}: cite measured values exactly as they are listed")


def _without_model(task: Task, evaluation: Evaluation) -> Critique | None:
    """Cases that need no model: cheating, a repeated failure, the speed of light."""
    if evaluation.status is EvaluationStatus.CHEATING:
        cause = _reason(evaluation, "the referee rejected it as cheating")
        return Critique(kind="abandon", error_class="cheating", cause=cause, author="supervisor")
    if evaluation.passed:
        performance = evaluation.performance
        if evaluation.suspicious:
            return None  # it cannot be promoted as it is
        if performance is None:
            cause = "it is right, and cannot be timed here"
            return Critique(kind="accept", closes=True, cause=cause, author="supervisor")
        if performance.sol_s is not None and performance.sol_s >= ENOUGH_OF_SOL * performance.latency_s:
            return Critique(
                kind="accept",
                closes=True,
                cause="the speed of light is reached",
                evidence=_cited(evaluation, "latency_s", "sol_s"),
                author="supervisor",
            )
        return None
    mark = _own_fingerprint(task, evaluation)
    before = takewhile(lambda past: past.evaluation is None or not past.evaluation.passed, _ancestors(task))
    if any(fingerprint(past) == mark for past in before):
        cause = f"the same failure as before its repair: {_reason(evaluation, evaluation.status.value)}"
        return Critique(
            kind="abandon", error_class=_CLASSES.get(evaluation.status, ""), cause=cause, author="supervisor"
        )
    if evaluation.status not in _CLASSES:
        return Critique(
            kind="abandon", cause=_reason(evaluation, evaluation.status.value), author="supervisor"
        )
    return None


def _by_rule(task: Task, evaluation: Evaluation, why: str) -> Critique:
    """A critique without a model, from the referee's verdict."""
    if evaluation.passed:
        return Critique(
            kind="optimize",
            error_class=_slower(task, evaluation),
            cause=f"{_class(task, evaluation)} (the judge gave no answer: {why})",
            evidence=_cited(evaluation, "latency_s", "sol_s"),
            author="supervisor",
        )
    errors = [d for d in evaluation.diagnostics if d.severity == "error"]
    said = f"{errors[0].file}:{errors[0].line}: {errors[0].message}" if errors else _reason(evaluation, "")
    return Critique(
        kind="repair",
        error_class=_CLASSES[evaluation.status],
        cause=said or evaluation.status.value,
        change="fix what the referee reports",
        author="supervisor",
    )


def _class(task: Task, evaluation: Evaluation) -> str:
    """What limits a solution as measured, else what limits its region."""
    found = evaluation.classification
    return found.bound.adjective if found else task.bottleneck.bound.adjective


def _own_fingerprint(task: Task, evaluation: Evaluation) -> str:
    return fingerprint(Past(task.attempt, None, None, None, evaluation, None))


def _ancestors(task: Task) -> Iterator[Past]:
    by_id = {past.id: past for past in task.past}
    past = by_id.get(task.attempt)
    for _ in range(len(by_id)):
        past = by_id.get(past.parent or "") if past is not None else None
        if past is None:
            return
        yield past


def _parent_speedup(task: Task) -> float | None:
    return next((task.best_baseline.speedup(past.evaluation) for past in _ancestors(task)), None)


def _slower(task: Task, evaluation: Evaluation) -> str:
    before, now = _parent_speedup(task), task.best_baseline.speedup(evaluation)
    return "slower" if before is not None and now is not None and now < before else ""


def _cited(evaluation: Evaluation, *names: str) -> tuple[Citation, ...]:
    values = facts.of_evaluation(evaluation)
    return tuple(Citation(metric=name, value=values[name]) for name in names if name in values)


def _reason(evaluation: Evaluation, default: str) -> str:
    return evaluation.reasons[0] if evaluation.reasons else default

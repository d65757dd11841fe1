"""What the supervisor does with one attempt: plan, code, evaluate, judge, record.

Each action can be repeated after a kill: what is in the journal is not done again. Actions on different
attempts may run side by side, except `evaluate` and `record`, which the graph calls one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from agentforge.agents import CannotCode, Hardware, Past, Task
from agentforge.config import SearchSettings
from agentforge.harness import Builder, Evaluator
from agentforge.llm import CannotAfford
from agentforge.schema import (
    AgentForgeError,
    Attempt,
    AttemptStatus,
    Bottleneck,
    Context,
    Critique,
    Evaluation,
    EvaluationStatus,
    HarnessError,
    Level,
    Plan,
    Solution,
    TargetError,
    Usage,
)

from ._base import Agents, Knowledge
from ._describe import add_usage, numbers, sentence
from .journal import Journal
from .lessons import learned
from .meter import Meter
from .standing import Standing, gain_over_best

HARNESS_FAILURES = 3
"""Evaluations in a row in which the referee itself failed before the run stops."""

_PLAN_ONLY: Mapping[str, Any] = {"solution": None, "evaluation": None, "critique": None, "error": ""}
"""What attempts at the same time show of each other while they are written."""


class Child(TypedDict):
    """An attempt that is being made, as checkpoints hold it: identifiers only."""

    attempt: str
    bottleneck: str
    """Hash of the definition."""
    parent: str | None
    """Attempt that it builds on, as the policy chose it."""
    round: int
    """Number of the first attempt that is made at the same time."""


@dataclass(frozen=True)
class Problem:
    """A bottleneck with what does not change while it is searched."""

    bottleneck: Bottleneck
    context: Context
    prior: float
    """The knowledge base's probability, before the run, that an attempt gains."""
    left: str = ""
    """Why the plan for the whole model leaves it as it is; empty where it does not."""


@dataclass(frozen=True)
class Supervisor:
    """One attempt at a time, and everything that is decided about it."""

    problems: dict[str, Problem]
    """By hash of the definition, in the order of the plan for the whole model."""
    journal: Journal
    meter: Meter
    agents: Agents
    evaluator: Evaluator
    knowledge: Knowledge
    settings: SearchSettings
    hardware: Hardware
    device: str
    """Kind of device: `cpu`, `cuda`."""

    def plan(self, child: Child) -> bool:
        """Ask the planner; False where it has nothing left to propose for the bottleneck."""
        if self.journal.attempt(child["attempt"]) is not None:
            return True
        name, started = child["bottleneck"], time.monotonic()
        new = Attempt(
            id=child["attempt"],
            run=self.journal.run.id,
            bottleneck=name,
            parent=child["parent"],
            number=self.journal.number(child["attempt"]),
        )
        self._tell("attempt.planning", new)
        task = self._task(name, new.id)
        try:
            plan, parent = self._first_plan(task, child["parent"])
        except AgentForgeError:
            raise
        except CannotAfford as error:
            self.meter.stop(str(error))
            return True
        except Exception as error:
            self.fail(new, f"the planner failed: {sentence(error)}", started)
            return True
        if plan is None:
            kind = f"to propose in {self.settings.language} for a {self.device}"
            self._close(name, f"the planner has nothing {'left to propose' if task.past else kind}")
            return False
        usage = add_usage(Usage(), plan.usage, started=started)
        self.keep_plan(new.model_copy(update={"plan": plan, "parent": parent, "usage": usage}))
        return True

    def keep_plan(self, attempt: Attempt) -> None:
        """Begin an attempt with its plan."""
        plan = attempt.plan
        assert plan is not None
        self.journal.put(attempt)
        self._tell(
            "attempt.planned",
            attempt,
            parent=attempt.parent,
            strategy=plan.strategy,
            language=plan.language,
            expected_speedup=plan.expected_speedup,
            diagnosis=plan.diagnosis,
            author=plan.author,
        )

    def code(self, child: Child) -> None:
        """Ask the coder for the whole solution; that it cannot is a failed attempt, not an error."""
        attempt = self.journal.attempt(child["attempt"])
        if attempt is None or attempt.plan is None or attempt.status is not AttemptStatus.PLANNED:
            return
        started = time.monotonic()
        task = self._task(attempt.bottleneck, attempt.id, hide_solutions_from=child["round"])
        self._tell("attempt.coding", attempt)
        try:
            draft = self.agents.coder.code(task, attempt.plan, find(task.past, attempt.parent))
        except CannotCode as error:
            self.fail(attempt, sentence(error), started)
            return
        except CannotAfford as error:  # the attempt stays as it is, for a resume under a larger budget
            self.meter.stop(str(error))
            return
        except AgentForgeError:
            raise
        except Exception as error:
            self.fail(attempt, f"the coder failed: {sentence(error)}", started)
            return
        usage = add_usage(attempt.usage, draft.usage, started=started)
        self.keep_solution(attempt.model_copy(update={"usage": usage}), draft.solution)

    def keep_solution(self, attempt: Attempt, solution: Solution) -> None:
        """Store what was written for an attempt."""
        update = {"solution": self.journal.put_solution(solution), "status": AttemptStatus.CODED}
        self.journal.put(attempt.model_copy(update=update))
        self._tell(
            "attempt.coded",
            attempt,
            solution=solution.hash,
            author=solution.author,
            language=solution.spec.language,
            parameters=solution.parameters,
        )

    def build(self, child: Child) -> None:
        """Compile ahead of the evaluation, while other attempts are still being written."""
        attempt = self.journal.attempt(child["attempt"])
        ready = attempt is not None and attempt.status is AttemptStatus.CODED and attempt.solution
        if attempt is not None and ready and isinstance(self.evaluator, Builder):
            self._tell("attempt.building", attempt)
            self.evaluator.build(self.journal.solution(attempt.solution or ""))

    def evaluate(self, child: Child) -> bool:
        """Judge at `quick`; what looks faster than what holds now is judged again at `full`.

        False where nothing of this bottleneck can be judged.
        """
        attempt = self.journal.attempt(child["attempt"])
        if attempt is None or attempt.status is not AttemptStatus.CODED:
            return True
        started = time.monotonic()
        try:
            identifier, evaluation = self._evaluate(attempt, Level.QUICK)
            if self.standing(attempt.bottleneck).promising(evaluation):
                identifier, evaluation = self._evaluate(attempt, Level.FULL)
        except TargetError as error:  # of this bottleneck's reference: the others can still be searched
            self.fail(attempt, f"the region cannot be judged: {error}", started)
            return False
        usage = add_usage(attempt.usage, started=started)
        update = {"evaluation": identifier, "status": AttemptStatus.EVALUATED, "usage": usage}
        self.journal.put(attempt.model_copy(update=update))
        return True

    def judge(self, child: Child) -> None:
        """Ask the judge what to do next with the solution."""
        attempt = self.journal.attempt(child["attempt"])
        if attempt is None or attempt.status is not AttemptStatus.EVALUATED or attempt.critique is not None:
            return
        started = time.monotonic()
        self._tell("attempt.judging", attempt)
        try:
            critique = self._critique(attempt, child["round"])
        except AgentForgeError:
            raise
        except Exception as error:
            critique = Critique(
                kind="abandon", cause=f"the judge failed: {sentence(error)}", author="supervisor"
            )
        usage = add_usage(attempt.usage, critique.usage, started=started)
        self.journal.put(attempt.model_copy(update={"critique": critique, "usage": usage}))
        self._tell(
            "attempt.judged",
            attempt,
            verdict=critique.kind,
            error_class=critique.error_class,
            cause=critique.cause,
            change=critique.change,
        )

    def record(self, child: Child) -> None:
        """Tell the knowledge base, promote what is verified and faster, and finish the attempt."""
        attempt = self.journal.attempt(child["attempt"])
        if attempt is None or attempt.plan is None or attempt.status is not AttemptStatus.EVALUATED:
            return
        plan, (evaluation, solution) = attempt.plan, self.measured(attempt)
        if evaluation.status is not EvaluationStatus.HARNESS_ERROR:
            self.knowledge.record(
                plan.strategy,
                self.problems[attempt.bottleneck].context,
                solution,
                evaluation,
                {**plan.parameters, **solution.parameters},
                attempt.run,
            )
        self._promote(attempt, evaluation)
        self._tell(
            "attempt.reflected",
            attempt,
            strategy=plan.strategy,
            expected_speedup=plan.expected_speedup,
            measured_speedup=gain_over_best(evaluation),
            verified=evaluation.verified,
        )
        self.journal.put(attempt.model_copy(update={"status": AttemptStatus.DONE}))
        self.journal.spend(self.meter.seconds)
        self.journal.event("budget", left=self.budget_left())
        if reason := self.standing(attempt.bottleneck).closed(self.settings):
            self._close(attempt.bottleneck, reason)

    # ------------------------------------------------------- what they share

    def out_of_budget(self, *, new_attempts: int | None = None) -> str:
        """Why no further step may be taken; empty while there is budget left.

        Args:
            new_attempts: that were chosen beside those in the journal; None where the next step belongs to
                an attempt that counts already.
        """
        attempts = None if new_attempts is None else len(self.journal.attempts()) + new_attempts
        return self.meter.exhausted(dollars=self.journal.dollars(), attempts=attempts)

    def budget_left(self) -> dict[str, float | None]:
        """What is left, by limit."""
        return self.meter.left(dollars=self.journal.dollars(), attempts=len(self.journal.attempts()))

    def standing(self, bottleneck: str) -> Standing:
        """Where the search of a bottleneck stands now."""
        return Standing(
            self.problems[bottleneck].bottleneck,
            self.journal.attempts(bottleneck),
            self.journal.evaluations(bottleneck),
        )

    def measured(self, attempt: Attempt) -> tuple[Evaluation, Solution]:
        """The evaluation and the solution of an attempt that was evaluated."""
        evaluation = self.journal.evaluation(attempt)
        if evaluation is None or attempt.solution is None:
            raise KeyError(f"attempt {attempt.id} was not evaluated")
        return evaluation, self.journal.solution(attempt.solution)

    def fail(self, attempt: Attempt, error: str, started: float) -> None:
        """End an attempt that has no solution, or none that can be judged."""
        usage = add_usage(attempt.usage, started=started)
        update = {"status": AttemptStatus.FAILED, "error": error, "usage": usage}
        self.journal.put(attempt.model_copy(update=update))
        self._tell("attempt.failed", attempt, error=error)
        if reason := self.standing(attempt.bottleneck).closed(self.settings):
            self._close(attempt.bottleneck, reason)

    def _tell(self, kind: str, attempt: Attempt, **data: object) -> None:
        who = {"attempt": attempt.id, "number": attempt.number, "bottleneck": attempt.bottleneck}
        self.journal.event(kind, **who, **data)

    def _task(
        self,
        bottleneck: str,
        attempt: str,
        *,
        hide_solutions_from: int | None = None,
        hide_critiques_from: int | None = None,
    ) -> Task:
        """What the agents are shown.

        Of attempts that are made at the same time, what may or may not be there yet is hidden, so that
        the same is asked again after a kill.
        """
        problem, language = self.problems[bottleneck], self.settings.language
        past = self.journal.past(bottleneck)
        if hide_solutions_from is not None:
            past = self._hidden(past, attempt, hide_solutions_from, _PLAN_ONLY)
        if hide_critiques_from is not None:
            past = self._hidden(past, attempt, hide_critiques_from, {"critique": None})
        return Task(
            bottleneck=problem.bottleneck,
            hardware=self.hardware,
            context=problem.context,
            strategies=self.knowledge.retrieve(problem.context, (language,), self.device),
            languages=(language,),
            past=past,
            attempt=attempt,
            lessons=learned(self.journal, self.problems),
        )

    def _hidden(
        self, past: tuple[Past, ...], own: str, first: int, changes: Mapping[str, Any]
    ) -> tuple[Past, ...]:
        together = {p.id for p in past if p.id != own and self.journal.number(p.id) >= first}
        return tuple(replace(p, **changes) if p.id in together else p for p in past)

    def _first_plan(self, task: Task, parent: str | None) -> tuple[Plan | None, str | None]:
        """A plan on the chosen parent; where there is none, from the definition, then on the fastest."""
        fastest = max(
            (p for p in task.past if gain_over_best(p.evaluation) is not None),
            key=lambda p: gain_over_best(p.evaluation) or 0.0,
            default=None,
        )
        for candidate in dict.fromkeys((parent, None, fastest.id if fastest else None)):
            plan = self.agents.planner.plan(task, find(task.past, candidate))
            if plan is not None:
                return plan, candidate
        return None, parent

    def _close(self, bottleneck: str, reason: str) -> None:
        self.journal.event("bottleneck.closed", bottleneck=bottleneck, reason=reason)

    def _evaluate(self, attempt: Attempt, level: Level) -> tuple[str, Evaluation]:
        problem = self.problems[attempt.bottleneck].bottleneck
        solution = self.journal.solution(attempt.solution or "")
        found = self.journal.finished_evaluation(problem.definition, problem.workloads, solution, level)
        reused = found is not None
        if found is None:
            self._tell("attempt.evaluating", attempt, level=level)
            evaluation = self.evaluator.evaluate(
                problem.definition,
                problem.workloads,
                solution,
                level=level,
                sol_s=problem.sol_s / sum(w.weight for w in problem.workloads),
            )
            found = self.journal.put_evaluation(evaluation), evaluation
        self._tell("attempt.evaluated", attempt, **numbers(found[1]), reused=reused)
        return found

    def _critique(self, attempt: Attempt, first: int) -> Critique:
        evaluation, solution = self.measured(attempt)
        if evaluation.status is not EvaluationStatus.HARNESS_ERROR:
            task = self._task(attempt.bottleneck, attempt.id, hide_critiques_from=first)
            assert attempt.plan is not None
            return self.agents.judge.judge(task, attempt.plan, solution, evaluation)
        judged = [e for e in map(self.journal.evaluation, self.journal.attempts()) if e is not None]
        last = judged[-HARNESS_FAILURES:]
        if len(last) == HARNESS_FAILURES and all(e.status is EvaluationStatus.HARNESS_ERROR for e in last):
            raise HarnessError(
                f"the referee failed {HARNESS_FAILURES} times in a row ({'; '.join(evaluation.reasons)}): "
                "run `agentforge doctor`, then resume the run"
            )
        return Critique(kind="abandon", cause="the referee failed; nothing is said", author="supervisor")

    def _promote(self, attempt: Attempt, evaluation: Evaluation) -> None:
        standing = self.standing(attempt.bottleneck)
        if standing.incumbent is None or standing.incumbent[0].id != attempt.id:
            return
        self.journal.promote(attempt)
        self._tell(
            "promotion",
            attempt,
            **numbers(evaluation),
            solution=attempt.solution,
            time_s=standing.time_s,
            time_before_s=standing.bottleneck.time_s,
        )


def find(past: Sequence[Past], identifier: str | None) -> Past | None:
    """The attempt of this identifier."""
    return next((p for p in past if p.id == identifier), None)

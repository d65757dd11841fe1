"""The six steps of the loop. Each can be repeated after a kill: what is in the journal is not done again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from agentforge.agents import CannotCode, Hardware, Past, Task
from agentforge.config import SearchSettings
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
from agentforge.search import Choice, SearchPolicy, Tree

from ._base import Agents, Evaluator, Knowledge
from ._describe import add_usage, numbers, sentence
from .journal import Journal
from .meter import Meter
from .standing import FINISHED, FIRST_COST_S, Standing, gain_over_best

HARNESS_FAILURES = 3
"""Evaluations in a row in which the referee itself failed before the run stops."""


class State(TypedDict, total=False):
    """What the graph's checkpoints hold: identifiers only."""

    bottleneck: str
    """Hash of the definition being worked on."""
    parent: str | None
    """Attempt that the current one builds on."""
    attempt: str
    """Identifier of the current attempt; empty where there is none."""
    planless: list[str]
    """Bottlenecks for which the planner has nothing left to propose."""
    reason: str
    """Why the search is over; empty while it goes on."""


@dataclass(frozen=True)
class Problem:
    """A bottleneck with what does not change while it is searched."""

    bottleneck: Bottleneck
    context: Context
    prior: float
    """The knowledge base's probability, before the run, that an attempt gains."""


@dataclass(frozen=True)
class Steps:
    """The supervisor: the steps, and everything that they decide with."""

    problems: dict[str, Problem]
    """By hash of the definition, in the profile's order."""
    journal: Journal
    meter: Meter
    agents: Agents
    evaluator: Evaluator
    knowledge: Knowledge
    policy: SearchPolicy
    settings: SearchSettings
    hardware: Hardware
    device: str
    """Kind of device: `cpu`, `cuda`."""

    def select(self, state: State) -> State:
        """Go on with an unfinished attempt, or choose a bottleneck and a parent for a new one."""
        attempts = self.journal.attempts()
        unfinished = next((a for a in attempts if a.status not in FINISHED), None)
        if unfinished is not None:
            return self._begin(Choice(unfinished.bottleneck, unfinished.parent), unfinished.id)
        if reason := self.out_of_budget(new_attempt=True):
            return {"attempt": "", "reason": reason}
        choice = self.policy.select(self.trees(state.get("planless", [])))
        if choice is None:
            return {"attempt": "", "reason": "nothing left is worth another attempt"}
        return self._begin(choice, self.journal.attempt_id(len(attempts) + 1))

    def plan(self, state: State) -> State:
        """Ask the planner; a planner that has nothing left closes the bottleneck."""
        if self.journal.attempt(state["attempt"]) is not None:
            return {}
        name, started = state["bottleneck"], time.monotonic()
        task = self._task(name, state["attempt"])
        new = Attempt(
            id=state["attempt"],
            run=self.journal.run.id,
            bottleneck=name,
            parent=state["parent"],
            number=len(self.journal.attempts()) + 1,
        )
        try:
            plan, parent = self._first_plan(task, state["parent"])
        except AgentForgeError:
            raise
        except CannotAfford as error:
            self.meter.stop(str(error))
            return {"attempt": ""}
        except Exception as error:
            self._fail(new, f"the planner failed: {sentence(error)}", started)
            return {}
        if plan is None:
            self._close(name, "the planner has nothing left to propose")
            return {"planless": [*state.get("planless", []), name], "attempt": ""}
        usage = add_usage(Usage(), plan.usage, started=started)
        self.journal.put(new.model_copy(update={"plan": plan, "parent": parent, "usage": usage}))
        self.journal.event(
            "attempt.planned",
            **self._who(new),
            parent=parent,
            strategy=plan.strategy,
            language=plan.language,
            expected_speedup=plan.expected_speedup,
            diagnosis=plan.diagnosis,
        )
        return {"parent": parent}

    def code(self, state: State) -> State:
        """Ask the coder for the whole solution; that it cannot is a failed attempt, not an error."""
        attempt, plan = self._current(state)
        if attempt.status is not AttemptStatus.PLANNED:
            return {}
        started, task = time.monotonic(), self._task(attempt.bottleneck, attempt.id)
        try:
            draft = self.agents.coder.code(task, plan, _find(task.past, attempt.parent))
        except CannotCode as error:
            self._fail(attempt, sentence(error), started)
            return {}
        except CannotAfford as error:  # the attempt stays as it is, for a resume under a larger budget
            self.meter.stop(str(error))
            return {}
        except AgentForgeError:
            raise
        except Exception as error:
            self._fail(attempt, f"the coder failed: {sentence(error)}", started)
            return {}
        usage = add_usage(attempt.usage, draft.usage, started=started)
        update = {"solution": self.journal.put_solution(draft.solution), "status": AttemptStatus.CODED}
        self.journal.put(attempt.model_copy(update={**update, "usage": usage}))
        self.journal.event(
            "attempt.coded",
            **self._who(attempt),
            solution=draft.solution.hash,
            author=draft.solution.author,
            language=draft.solution.spec.language,
            parameters=draft.solution.parameters,
        )
        return {}

    def evaluate(self, state: State) -> State:
        """Judge at `quick`; what looks faster than what holds now is judged again at `full`."""
        attempt, _ = self._current(state)
        if attempt.status is not AttemptStatus.CODED:
            return {}
        started = time.monotonic()
        try:
            identifier, evaluation = self._evaluate(attempt, Level.QUICK)
            if self.standing(attempt.bottleneck).promising(evaluation):
                identifier, evaluation = self._evaluate(attempt, Level.FULL)
        except TargetError as error:  # of this bottleneck's reference: the others can still be searched
            self._fail(attempt, f"the region cannot be judged: {error}", started)
            return {"planless": [*state.get("planless", []), attempt.bottleneck]}
        usage = add_usage(attempt.usage, started=started)
        update = {"evaluation": identifier, "status": AttemptStatus.EVALUATED, "usage": usage}
        self.journal.put(attempt.model_copy(update=update))
        return {}

    def judge(self, state: State) -> State:
        """Ask the judge what to do next with the solution."""
        attempt, plan = self._current(state)
        if attempt.status is not AttemptStatus.EVALUATED or attempt.critique is not None:
            return {}
        started = time.monotonic()
        evaluation, solution = self._measured(attempt)
        try:
            critique = self._critique(attempt, plan, solution, evaluation)
        except AgentForgeError:
            raise
        except Exception as error:
            critique = Critique(
                kind="abandon", cause=f"the judge failed: {sentence(error)}", author="supervisor"
            )
        usage = add_usage(attempt.usage, critique.usage, started=started)
        self.journal.put(attempt.model_copy(update={"critique": critique, "usage": usage}))
        self.journal.event(
            "attempt.judged",
            **self._who(attempt),
            verdict=critique.kind,
            error_class=critique.error_class,
            cause=critique.cause,
            change=critique.change,
        )
        return {}

    def record(self, state: State) -> State:
        """Tell the knowledge base, promote what is verified and faster, and finish the attempt."""
        attempt, plan = self._current(state)
        if attempt.status is not AttemptStatus.EVALUATED:
            return {}
        evaluation, solution = self._measured(attempt)
        context = self.problems[attempt.bottleneck].context
        if evaluation.status is not EvaluationStatus.HARNESS_ERROR:
            self.knowledge.record(
                plan.strategy,
                context,
                solution,
                evaluation,
                {**plan.parameters, **solution.parameters},
                attempt.run,
            )
        self._promote(attempt, evaluation)
        self.journal.put(attempt.model_copy(update={"status": AttemptStatus.DONE}))
        self.journal.spend(self.meter.seconds)
        self.journal.event("budget", left=self.budget_left())
        if reason := self.standing(attempt.bottleneck).closed(self.settings):
            self._close(attempt.bottleneck, reason)
        return {}

    # ------------------------------------------------------- what they share

    def out_of_budget(self, *, new_attempt: bool) -> str:
        """Why no further step may be taken; empty while there is budget left."""
        attempts = len(self.journal.attempts()) if new_attempt else None
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

    def trees(self, planless: Sequence[str]) -> list[Tree]:
        """What the search policy sees of all bottlenecks."""
        attempts = self.journal.attempts()
        costs = [a.usage.seconds for a in attempts if a.usage.seconds > 0]
        cost_s = sum(costs) / len(costs) if costs else FIRST_COST_S
        last = attempts[-1].bottleneck if attempts else None
        return [
            self.standing(name).tree(
                self.settings,
                prior=problem.prior,
                cost_s=cost_s,
                planless=name in planless,
                warm=name == last,
            )
            for name, problem in self.problems.items()
        ]

    @staticmethod
    def _begin(choice: Choice, attempt: str) -> State:
        return {"bottleneck": choice.bottleneck, "parent": choice.parent, "attempt": attempt, "reason": ""}

    def _current(self, state: State) -> tuple[Attempt, Plan]:
        attempt = self.journal.attempt(state["attempt"])
        if attempt is None or attempt.plan is None:
            raise KeyError(f"attempt {state['attempt']} has no plan")
        return attempt, attempt.plan

    def _measured(self, attempt: Attempt) -> tuple[Evaluation, Solution]:
        evaluation = self.journal.evaluation(attempt)
        if evaluation is None or attempt.solution is None:
            raise KeyError(f"attempt {attempt.id} was not evaluated")
        return evaluation, self.journal.solution(attempt.solution)

    def _who(self, attempt: Attempt) -> dict[str, object]:
        return {"attempt": attempt.id, "number": attempt.number, "bottleneck": attempt.bottleneck}

    def _task(self, bottleneck: str, attempt: str) -> Task:
        problem, language = self.problems[bottleneck], self.settings.language
        strategies = self.knowledge.retrieve(problem.context, (language,), self.device)
        return Task(
            bottleneck=problem.bottleneck,
            hardware=self.hardware,
            context=problem.context,
            strategies=strategies,
            languages=(language,),
            past=self.journal.past(bottleneck),
            attempt=attempt,
        )

    def _first_plan(self, task: Task, parent: str | None) -> tuple[Plan | None, str | None]:
        """A plan on the chosen parent; where there is none, from the definition, then on the fastest."""
        fastest = max(
            (p for p in task.past if gain_over_best(p.evaluation) is not None),
            key=lambda p: gain_over_best(p.evaluation) or 0.0,
            default=None,
        )
        for candidate in dict.fromkeys((parent, None, fastest.id if fastest else None)):
            plan = self.agents.planner.plan(task, _find(task.past, candidate))
            if plan is not None:
                return plan, candidate
        return None, parent

    def _fail(self, attempt: Attempt, error: str, started: float) -> None:
        usage = add_usage(attempt.usage, started=started)
        update = {"status": AttemptStatus.FAILED, "error": error, "usage": usage}
        self.journal.put(attempt.model_copy(update=update))
        self.journal.event("attempt.failed", **self._who(attempt), error=error)
        if reason := self.standing(attempt.bottleneck).closed(self.settings):
            self._close(attempt.bottleneck, reason)

    def _close(self, bottleneck: str, reason: str) -> None:
        self.journal.event("bottleneck.closed", bottleneck=bottleneck, reason=reason)

    def _evaluate(self, attempt: Attempt, level: Level) -> tuple[str, Evaluation]:
        problem = self.problems[attempt.bottleneck].bottleneck
        solution = self.journal.solution(attempt.solution or "")
        found = self.journal.finished_evaluation(problem.definition, problem.workloads, solution, level)
        reused = found is not None
        if found is None:
            self.journal.event("attempt.evaluating", **self._who(attempt), level=level)
            evaluation = self.evaluator.evaluate(
                problem.definition,
                problem.workloads,
                solution,
                level=level,
                sol_s=problem.sol_s / sum(w.weight for w in problem.workloads),
            )
            found = self.journal.put_evaluation(evaluation), evaluation
        self.journal.event("attempt.evaluated", **self._who(attempt), **numbers(found[1]), reused=reused)
        return found

    def _critique(self, attempt: Attempt, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        if evaluation.status is not EvaluationStatus.HARNESS_ERROR:
            return self.agents.judge.judge(
                self._task(attempt.bottleneck, attempt.id), plan, solution, evaluation
            )
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
        self.journal.event(
            "promotion",
            **self._who(attempt),
            **numbers(evaluation),
            solution=attempt.solution,
            time_s=standing.time_s,
            time_before_s=standing.bottleneck.time_s,
        )


def _find(past: Sequence[Past], identifier: str | None) -> Past | None:
    return next((p for p in past if p.id == identifier), None)

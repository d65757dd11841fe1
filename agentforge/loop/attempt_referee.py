"""Evaluations of a run's attempts: each is asked for once, and a referee that keeps failing ends the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentforge.agents import Task
from agentforge.referee import Disassembler, EvaluationRequest, Evaluator
from agentforge.schema import (
    Attempt,
    AttemptEvaluated,
    AttemptEvaluating,
    AttemptStatus,
    Evaluation,
    EvaluationStatus,
    HarnessError,
    Level,
    Progress,
    Solution,
    Trial,
)
from agentforge.tuning import Tuner, variants_of

from ._base import SearchedBottleneck
from ._describe import numbers, tuning_said, which
from .bottleneck_state import twin_of
from .run_log import RunLog

HARNESS_FAILURES = 3
"""Evaluations in a row in which the referee itself failed before the run stops."""


@dataclass(frozen=True)
class AttemptReferee:
    """The referee, as the supervisor asks it."""

    bottlenecks: Mapping[str, SearchedBottleneck]
    """By hash of the definition."""
    run_log: RunLog
    evaluator: Evaluator

    def evaluate(
        self,
        attempt: Attempt,
        level: Level,
        *,
        again: bool = False,
        quiet: bool = False,
        deadline: float | None = None,
    ) -> tuple[str, Evaluation]:
        """Identifier and evaluation of an attempt's solution; one in which the referee failed is repeated.

        Args:
            again: measure it again; otherwise one that this run, or another one, finished is reused.
            quiet: tell no view.
            deadline: see `EvaluationRequest`.

        Raises:
            TimeEnded: the deadline came first.
        """
        bottleneck = self.bottlenecks[attempt.bottleneck].bottleneck
        solution = self.run_log.solution_of(attempt)
        key = bottleneck.definition, bottleneck.workloads, solution, level
        found = None if again else self.run_log.finished_evaluation(*key, attempt.machine_code)
        reused = found is not None
        if found is None:
            if not quiet:
                longest_s = None if deadline is None else deadline - time.monotonic()
                self.run_log.event(AttemptEvaluating(**which(attempt), level=level, longest_s=longest_s))
            request = EvaluationRequest(
                bottleneck.definition,
                bottleneck.workloads,
                solution,
                level=level,
                deadline=deadline,
                sol_s=bottleneck.sol_per_call_s,
            )
            evaluation = self.evaluator.evaluate(request)
            if evaluation.status is EvaluationStatus.HARNESS_ERROR:  # one hitch must not lose a candidate
                evaluation = self.evaluator.evaluate(request)
            found = self.run_log.put_evaluation(evaluation, self.run_log.conditions(*key[:2])), evaluation
        if not quiet:
            self.run_log.event(AttemptEvaluated(**which(attempt), **numbers(found[1]), reused=reused))
        return found

    def compiled(self, attempt: Attempt) -> Attempt:
        """The attempt with the hash of its machine code, if the evaluator can tell."""
        if not isinstance(self.evaluator, Disassembler):
            return attempt
        solution = self.run_log.solution_of(attempt)
        return attempt.model_copy(update={"machine_code": self.evaluator.machine_code_hash(solution)})

    def twin(self, attempt: Attempt) -> str:
        """Why a compiled attempt need not be measured: an earlier one runs the same machine code."""
        made, found = self.run_log.attempts(attempt.bottleneck), self.run_log.evaluations(attempt.bottleneck)
        other = twin_of(attempt, made, found)
        return f"its machine code is that of attempt {other.number}" if other is not None else ""

    def tuned(
        self,
        attempt: Attempt,
        quick: Evaluation,
        task: Task,
        most: int,
        stop: Callable[[], str],
        deadline: float | None,
    ) -> Attempt:
        """The attempt with the fastest values of its parameters, and with the trials that found them.

        Args:
            quick: its evaluation as it was written.
            most: trials.
            stop: why no further trial may be made; empty while one may.
            deadline: see `EvaluationRequest`.

        Raises:
            TimeEnded: the deadline came first; finished trials are kept.
        """
        solution, plan = self.run_log.solution_of(attempt), attempt.plan
        assert plan is not None

        def evaluate(tried: Solution, again: bool) -> Evaluation | None:
            if stop():
                return None
            other = self.run_log.with_solution(attempt, tried).model_copy(update={"machine_code": ""})
            return self.evaluate(other, Level.QUICK, again=again, quiet=True, deadline=deadline)[1]

        def keep(trials: Sequence[Trial]) -> None:
            now = self.run_log.attempt(attempt.id) or attempt
            self.run_log.put(now.model_copy(update={"trials": tuple(trials)}))

        tuner = Tuner(variants_of(task, plan, solution), most, attempt.id, evaluate, keep)
        best = tuner.run(solution, quick, attempt.trials)
        now = self.run_log.attempt(attempt.id) or attempt
        if now.trials:
            self.run_log.event(Progress(text=tuning_said(now)))
        code = now.machine_code if best.hash == attempt.solution else ""
        return self.run_log.with_solution(now, best).model_copy(update={"machine_code": code})

    def time_ended(self, attempt: Attempt) -> None:
        """Say that the run's time ended in the middle of an attempt's evaluation."""
        said = "the run's time ended, and its evaluation with it; a resume measures it"
        self.run_log.event(Progress(text=f"attempt {attempt.number}: {said}"))

    def check_health(self, attempt: Attempt, failed: Evaluation) -> None:
        """Stop the run if the referee itself failed several times in a row, `failed` being the last one.

        The attempt is put back first, so that a resume has it evaluated again.

        Raises:
            HarnessError: it did.
        """
        judged = [e for e in map(self.run_log.evaluation, self.run_log.attempts()) if e is not None]
        last = judged[-HARNESS_FAILURES:]
        if len(last) == HARNESS_FAILURES and all(e.status is EvaluationStatus.HARNESS_ERROR for e in last):
            self.run_log.put(attempt.model_copy(update={"status": AttemptStatus.CODED, "evaluation": None}))
            raise HarnessError(
                f"the referee failed {HARNESS_FAILURES} times in a row ({'; '.join(failed.reasons)}): "
                "run `agentforge doctor`, then resume the run"
            )

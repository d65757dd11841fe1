"""The run's reads and writes of the store. Each write is idempotent."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from agentforge.agents import Past
from agentforge.llm import coder_dollars
from agentforge.schema import (
    Attempt,
    Definition,
    Evaluation,
    Event,
    Level,
    Run,
    RunRecord,
    RunStatus,
    Solution,
    Target,
    Workload,
)
from agentforge.store import Record, Store

from ._base import OnEvent


class RunLog:
    """One run in the store. The process with the run's lock is its only writer, so reads are cached.

    Thread-safe as long as each attempt is written by one thread at a time.
    """

    def __init__(self, store: Store, run: Run, on_event: OnEvent | None = None) -> None:
        self.store = store
        self.run = run
        self._on_event = on_event
        self._telling = threading.RLock()
        self._attempts = {attempt.id: attempt for attempt in store.attempts(run.id)}
        self._evaluations: dict[str, Evaluation] = {}
        self._solutions: dict[str, Solution] = {}

    # -------------------------------------------------------------- attempts

    def attempt_id(self, number: int) -> str:
        """Identifier of the run's attempt `number`: the same after a resume."""
        return f"{self.run.id}/{number:04d}"

    @staticmethod
    def number(attempt: str) -> int:
        """Number of an attempt, by its identifier."""
        return int(attempt.rpartition("/")[2])

    def attempts(self, bottleneck: str | None = None) -> tuple[Attempt, ...]:
        """Attempts in the order of their numbers, of all bottlenecks or of one."""
        found = (a for a in list(self._attempts.values()) if bottleneck in (None, a.bottleneck))
        return tuple(sorted(found, key=lambda a: a.number))

    def attempt(self, identifier: str) -> Attempt | None:
        """An attempt; None before it was begun."""
        return self._attempts.get(identifier)

    def put(self, attempt: Attempt) -> Attempt:
        """Store an attempt in place of its earlier state."""
        self.store.save_attempt(attempt)
        self._attempts[attempt.id] = attempt
        return attempt

    def past(self, bottleneck: str) -> tuple[Past, ...]:
        """The bottleneck's attempts as the agents see them, oldest first."""
        return tuple(
            Past(
                id=attempt.id,
                parent=attempt.parent,
                plan=attempt.plan,
                solution=self.solution(attempt.solution) if attempt.solution else None,
                evaluation=self.evaluation(attempt),
                critique=attempt.critique,
                error=attempt.error,
                trials=attempt.trials,
            )
            for attempt in self.attempts(bottleneck)
        )

    def dollars(self) -> float:
        """Spent by the proposers so far; calls of unknown price count nothing."""
        return sum(a.usage.dollars or 0.0 for a in list(self._attempts.values()))

    def coder_dollars(self) -> dict[str, float | None]:
        """What the coder's calls cost, by attempt; None if a price is unknown.

        Calls that a kill cut off do not count, so that a resumed run decides alike.
        """
        return coder_dollars(self.store.calls(self.run.id, role="coder"))

    # ------------------------------------------- solutions and evaluations

    def solution(self, solution_hash: str) -> Solution:
        """A stored solution."""
        if solution_hash not in self._solutions:
            self._solutions[solution_hash] = self.store.get_solution(solution_hash)
        return self._solutions[solution_hash]

    def put_solution(self, solution: Solution) -> str:
        """Store a solution; returns its hash."""
        self._solutions[solution.hash] = solution
        return self.store.save_solution(solution)

    def evaluation(self, attempt: Attempt) -> Evaluation | None:
        """The evaluation that an attempt points to."""
        if attempt.evaluation is None:
            return None
        if attempt.evaluation not in self._evaluations:
            self._evaluations[attempt.evaluation] = self.store.get_evaluation(attempt.evaluation)
        return self._evaluations[attempt.evaluation]

    def built_on(self, attempt: Attempt) -> tuple[str, Evaluation] | None:
        """Strategy and evaluation of an attempt's parent; None without a parent that was evaluated."""
        parent = self.attempt(attempt.parent) if attempt.parent else None
        evaluation = self.evaluation(parent) if parent is not None else None
        if parent is None or parent.plan is None or evaluation is None:
            return None
        return parent.plan.strategy, evaluation

    def evaluations(self, bottleneck: str) -> Mapping[str, Evaluation]:
        """Evaluations by attempt."""
        pairs = ((a.id, self.evaluation(a)) for a in self.attempts(bottleneck))
        return {identifier: evaluation for identifier, evaluation in pairs if evaluation is not None}

    def finished_evaluation(
        self, definition: Definition, workloads: tuple[Workload, ...], solution: Solution, level: Level
    ) -> tuple[str, Evaluation] | None:
        """An evaluation of just this that this run finished already.

        One of an earlier run is not taken: its baselines were measured at another time.
        """
        found = self.store.find_evaluation(
            definition.hash, solution.hash, [w.hash for w in workloads], level, self.run.device
        )
        return found if found is not None and found[1].timestamp >= self.run.created else None

    def put_evaluation(self, evaluation: Evaluation) -> str:
        """Store an evaluation; returns its identifier."""
        identifier = self.store.save_evaluation(evaluation, self.run.id)
        self._evaluations[identifier] = evaluation
        return identifier

    def promote(self, attempt: Attempt) -> None:
        """Choose an evaluated attempt's solution for its bottleneck."""
        if attempt.solution is None or attempt.evaluation is None:
            raise ValueError(f"attempt {attempt.id} was not evaluated")
        self.store.save_promotion(attempt.run, attempt.bottleneck, attempt.solution, attempt.evaluation)

    # ------------------------------------------------------ events, the run

    def event(self, event: Event) -> Event:
        """Append to the run's stream and call `on_event`; returns the event as it was stored."""
        with self._telling:  # attempts are made side by side, and a view sees one stream
            stored = self.store.append_event(self.run.id, event)
            if self._on_event is not None:
                self._on_event(stored)
        return stored

    def keep(self, record: RunRecord) -> None:
        """Store a record of the run in the place of an earlier one of its class."""
        self.store.save_record(self.run.id, record)

    def record(self, kind: type[Record]) -> Record | None:
        """The run's record of a class; None before there is one."""
        return self.store.get_record(self.run.id, kind)

    def set_status(self, status: RunStatus, **changes: Any) -> None:
        """Store how far the run has come."""
        self.run = self.store.update_run(self.run.id, status=status, **changes)

    def set_target(self, target: Target) -> None:
        """Store the target in the place of the run's own."""
        self.run = self.store.update_run(self.run.id, target=self.store.save_target(target))

    def spend(self, seconds: float) -> None:
        """Write down the wall time that the run has used up over all its sessions."""
        self.run = self.store.update_run(self.run.id, seconds_used=seconds)

"""The run's reads and writes of the store. Each write is idempotent."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from agentforge.agents import Past
from agentforge.llm import coder_dollars
from agentforge.schema import (
    COPY_OF,
    REUSED,
    Attempt,
    Definition,
    Evaluation,
    Event,
    Level,
    LLMCall,
    Progress,
    Run,
    RunRecord,
    RunStatus,
    Solution,
    Target,
    Workload,
    content_hash,
)
from agentforge.store import Record, Store

from ._base import OnEvent
from .bottleneck_state import BUSY_MACHINE


class RunLog:
    """One run in the store. The process with the run's lock is its only writer, so reads are cached.

    Thread-safe as long as each attempt is written by one thread at a time.

    Args:
        conditions: hash of what verdicts depend on beside task and solution; verdicts of other runs with the
            same one are taken. Empty: this run shares none.
    """

    def __init__(self, store: Store, run: Run, on_event: OnEvent | None = None, conditions: str = "") -> None:
        self.store = store
        self.run = run
        self._conditions = conditions
        self._on_event = on_event
        self._telling = threading.RLock()
        self._attempts = {attempt.id: attempt for attempt in store.attempts(run.id)}
        self._paid = {call.key: call.dollars or 0.0 for call in store.calls(run.id)}
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

    @property
    def unjudged(self) -> bool:
        """Whether no attempt of the run has a verdict."""
        return not any(attempt.evaluation for attempt in self.attempts())

    def attempt(self, identifier: str) -> Attempt | None:
        """An attempt; None before it was begun."""
        return self._attempts.get(identifier)

    def put(self, attempt: Attempt) -> Attempt:
        """Store an attempt in place of its earlier state."""
        self.store.save_attempt(attempt)
        self._attempts[attempt.id] = attempt
        return attempt

    def give_up(self, identifier: str | None) -> None:
        """Turn what an attempt's judge asks for, a repair or a change, into `abandon`: no planner takes it
        up, and without a further child the attempt would be chosen again in each round."""
        attempt = self.attempt(identifier or "")
        if attempt is not None and attempt.critique is not None and attempt.critique.kind != "accept":
            critique = attempt.critique.model_copy(update={"kind": "abandon"})
            self.put(attempt.model_copy(update={"critique": critique}))

    def past(self, bottleneck: str) -> tuple[Past, ...]:
        """The bottleneck's attempts as the agents see them, oldest first."""
        return tuple(
            Past(
                id=attempt.id,
                parent=attempt.parent,
                plan=attempt.plan,
                solution=self.solution_of(attempt) if attempt.solution else None,
                evaluation=self.evaluation(attempt),
                critique=attempt.critique,
                error=attempt.error,
                trials=attempt.trials,
            )
            for attempt in self.attempts(bottleneck)
        )

    def pay(self, call: LLMCall) -> None:
        """Count a call that ended in this session."""
        self._paid[call.key] = call.dollars or 0.0

    def dollars(self) -> float:
        """Spent on the run so far, for attempts or not; calls of unknown price count nothing.

        Calls that a kill cut off count with their highest cost, and those under way not yet.
        """
        attempts = sum(a.usage.dollars or 0.0 for a in list(self._attempts.values()))
        return max(sum(list(self._paid.values())), attempts)  # some agents call models without the ledger

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

    def solution_of(self, attempt: Attempt) -> Solution:
        """An attempt's solution, with the author and the parameters that it had there."""
        found = self.solution(attempt.solution or "")
        if not attempt.author:
            return found
        return found.model_copy(update={"author": attempt.author, "parameters": attempt.parameters})

    def put_solution(self, solution: Solution) -> str:
        """Store a solution; returns its hash. It is read back, because another one with its code may be there
        already, and a resumed run reads that."""
        return self.store.save_solution(solution)

    def with_solution(self, attempt: Attempt, solution: Solution) -> Attempt:
        """The attempt with this solution, which is stored; the attempt is not yet."""
        own = {"author": solution.author, "parameters": solution.parameters}
        return attempt.model_copy(update={"solution": self.put_solution(solution), **own})

    def evaluation(self, attempt: Attempt) -> Evaluation | None:
        """The evaluation that an attempt points to."""
        if attempt.evaluation is None:
            return None
        if attempt.evaluation not in self._evaluations:
            self._evaluations[attempt.evaluation] = self.store.get_evaluation(attempt.evaluation)
        return self._evaluations[attempt.evaluation]

    def built_on(self, attempt: Attempt) -> tuple[str, Evaluation] | None:
        """Strategy and evaluation of what an attempt's strategy was applied to; None for a first attempt.

        That is the nearest attempt above it that passed with another strategy. So repairs and tuning of a
        follow-up are not paid for what came before it. Without one, it is the nearest that was evaluated.
        """
        own, above, nearest = attempt.plan.strategy if attempt.plan else "", attempt.parent, None
        while above is not None and (node := self.attempt(above)) is not None:
            evaluation, above = self.evaluation(node), node.parent
            if node.plan is not None and evaluation is not None:
                found = node.plan.strategy, evaluation
                if evaluation.passed and node.plan.strategy != own:
                    return found
                nearest = nearest or found
        return nearest

    def evaluations(self, bottleneck: str) -> Mapping[str, Evaluation]:
        """Evaluations by attempt."""
        pairs = ((a.id, self.evaluation(a)) for a in self.attempts(bottleneck))
        return {identifier: evaluation for identifier, evaluation in pairs if evaluation is not None}

    def finished_evaluation(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        level: Level,
        machine_code: str = "",
    ) -> tuple[str, Evaluation] | None:
        """An evaluation of just this that this run has; else a copy of one that another run made alike.

        Args:
            machine_code: of the solution, if it is known: another solution with the same one is as good.
        """
        hashes = [w.hash for w in workloads]
        own = self.store.find_evaluation(
            definition.hash, solution.hash, hashes, level, self.run.device, run_id=self.run.id
        )
        conditions = self.conditions(definition, workloads)
        if own is not None or not conditions:
            return own
        twins = self.store.twins(definition.hash, machine_code) if machine_code else ()
        for program in (solution.hash, *twins):
            found = self.store.find_evaluation(
                definition.hash, program, hashes, level, self.run.device, conditions=conditions
            )
            if found is not None and settled(found[1]):
                return self._copied(*found, solution.hash)
        return None

    def conditions(self, definition: Definition, workloads: Sequence[Workload]) -> str:
        """Under which a verdict counts for other runs too; empty if it does not.

        Files that a reference imports are no part of its definition, so such verdicts are not shared.
        """
        if not self._conditions or definition.import_root is not None:
            return ""
        weights = sorted((w.hash, w.weight) for w in workloads) if len(workloads) > 1 else []
        return content_hash([self._conditions, weights])

    def _copied(self, identifier: str, found: Evaluation, solution: str) -> tuple[str, Evaluation]:
        """Another run's evaluation as one of this run, which took no time and says where it is from."""
        run = self.store.evaluation_run(identifier)
        same, copy_of = ("source", identifier) if found.solution == solution else ("machine code", "")
        origin = f"evaluation {identifier}{f' of run {run}' if run else ''} (the same {same})"
        # An evaluation is kept once, so each run's copy names its run.
        notes = {**found.environment.notes, REUSED: origin, COPY_OF: copy_of, "reused_by": self.run.id}
        copy = found.model_copy(
            update={
                "solution": solution,
                "seconds": 0.0,
                "stages": tuple(stage.model_copy(update={"seconds": 0.0}) for stage in found.stages),
                "environment": found.environment.model_copy(update={"notes": notes}),
            }
        )
        self.event(Progress(text=f"not measured again: {origin} says {found.status.value}"))
        return self.put_evaluation(copy), copy

    def put_evaluation(self, evaluation: Evaluation, conditions: str = "") -> str:
        """Store an evaluation; returns its identifier.

        Args:
            conditions: see `conditions`; empty if the referee did not judge just now.
        """
        identifier = self.store.save_evaluation(evaluation, self.run.id, conditions)
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


def spoiled(evaluation: Evaluation) -> bool:
    """Whether a busy machine disturbed the measurement, so that a second one may say something else."""
    return not BUSY_MACHINE.isdisjoint(evaluation.codes)


def settled(evaluation: Evaluation) -> bool:
    """Whether judging again would hardly say anything else: it failed or was not timed, it is verified, or
    its interval against eager leaves no doubt which one is faster; and no busy machine spoiled it."""
    if spoiled(evaluation):
        return False
    if evaluation.performance is None or evaluation.verified:
        return True
    eager = evaluation.performance.speedup.get("eager")
    return eager is not None and not eager.low <= 1.0 <= eager.high

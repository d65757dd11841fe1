"""Evaluations, attempts and promotions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from sqlalchemy import or_, select

from agentforge.schema import JUDGED, Attempt, Evaluation, EvaluationStatus, Level, UsageError, content_hash

from ._engine import Database, add_once
from .knowledge.summary import parts
from .tables import AttemptRow, EvaluationRow, PromotionRow

_NO_FINITE_NUMBER = re.compile(r'(?<=[:\[,])"(-?Infinity|NaN)"(?=[,\]}])')
"""A value as nouns write it into their text."""


@dataclass(frozen=True)
class Promotion:
    """A solution chosen for a bottleneck of a run."""

    bottleneck: str
    """Hash of the bottleneck's definition."""
    solution: str
    """Hash."""
    evaluation: str
    """Identifier of the evaluation that it rests on."""
    time: datetime


def evaluation_id(evaluation: Evaluation) -> str:
    """Identifier of an evaluation: the hash of all of it, so that keeping it twice keeps it once."""
    return content_hash(evaluation.model_dump(mode="json"), length=24)


def _workloads_key(hashes: Sequence[str]) -> str:
    return content_hash(sorted(hashes))


class Evaluations:
    """Evaluations, attempts and promotions."""

    _db: Database

    def save_evaluation(self, evaluation: Evaluation, run_id: str | None = None, conditions: str = "") -> str:
        """Keep an evaluation; returns its identifier. Idempotent.

        Args:
            conditions: hash of what it depends on beside task and solution; empty if it was not judged here.
                A verdict on a kernel inside its model depends on the model too, so it is kept without them.
        """
        identifier = evaluation_id(evaluation)
        with self._db.write() as session:
            add_once(
                session,
                EvaluationRow(
                    id=identifier,
                    run=run_id,
                    definition=evaluation.definition,
                    solution=evaluation.solution,
                    workloads=_workloads_key(evaluation.workloads),
                    level=evaluation.level.value,
                    device=evaluation.environment.device[:255],
                    status=evaluation.status.value,
                    evidence=evaluation.evidence.value,
                    time=evaluation.timestamp.astimezone(UTC),
                    conditions="" if JUDGED in evaluation.environment.notes else conditions,
                    seconds=evaluation.seconds,
                    body=evaluation.model_dump_json(),
                ),
            )
        return identifier

    def get_evaluation(self, identifier: str) -> Evaluation:
        """The evaluation of this identifier.

        Raises:
            UsageError: no such evaluation.
        """
        with self._db.read() as session:
            row = session.get(EvaluationRow, identifier)
            if row is None:
                raise UsageError(f"the database has no evaluation {identifier}: check AGENTFORGE_HOME")
            return Evaluation.model_validate_json(row.body)

    def edited_evaluation(self, identifier: str) -> bool:
        """Whether an evaluation is not what was kept under its identifier.

        A later version may add fields to `Evaluation`, so what counts first is the text as it was kept, with
        its infinities and NaN as numbers.

        Raises:
            UsageError: no such evaluation.
        """
        evaluation = self.get_evaluation(identifier)
        with self._db.read() as session:
            body = session.scalar(select(EvaluationRow.body).where(EvaluationRow.id == identifier))
        kept = json.loads(_NO_FINITE_NUMBER.sub(r"\1", body or "null"))
        return identifier not in (content_hash(kept, length=24), evaluation_id(evaluation))

    def run_evaluations(self, run_id: str, definition_hash: str) -> tuple[Evaluation, ...]:
        """What the run measured of one definition, oldest first."""
        query = (
            select(EvaluationRow.body)
            .where(EvaluationRow.run == run_id, EvaluationRow.definition == definition_hash)
            .order_by(EvaluationRow.time, EvaluationRow.id)
        )
        with self._db.read() as session:
            return tuple(Evaluation.model_validate_json(body) for body in session.scalars(query))

    def find_evaluation(
        self,
        definition_hash: str,
        solution_hash: str,
        workload_hashes: Sequence[str],
        level: Level,
        device: str,
        *,
        run_id: str | None = None,
        conditions: str | None = None,
    ) -> tuple[str, Evaluation] | None:
        """The newest evaluation of just this; None if there is none.

        An evaluation in which the harness itself failed says nothing and is not found.

        Args:
            level: `quick` and `full` are kept apart.
            run_id: that asked for it; None for any.
            conditions: that it was saved with; None for any.
        """
        query = (
            select(EvaluationRow)
            .where(
                EvaluationRow.definition == definition_hash,
                EvaluationRow.solution == solution_hash,
                EvaluationRow.workloads == _workloads_key(workload_hashes),
                EvaluationRow.level == level.value,
                EvaluationRow.device == device[:255],
                EvaluationRow.status != EvaluationStatus.HARNESS_ERROR.value,
            )
            .order_by(EvaluationRow.time.desc())
            .limit(1)
        )
        if run_id is not None:
            query = query.where(EvaluationRow.run == run_id)
        if conditions is not None:
            query = query.where(EvaluationRow.conditions == conditions)
        with self._db.read() as session:
            row = session.scalar(query)
            return None if row is None else (row.id, Evaluation.model_validate_json(row.body))

    def verdict_seconds(self, run_id: str, definition_hash: str, device: str) -> dict[Level, float]:
        """Median seconds of the verdicts on a definition, by level; else of all that the run made.

        Verdicts that were taken from other runs took none and do not count.
        """
        query = select(EvaluationRow.level, EvaluationRow.definition, EvaluationRow.seconds).where(
            or_(EvaluationRow.run == run_id, EvaluationRow.definition == definition_hash),
            EvaluationRow.device == device[:255],
            EvaluationRow.seconds > 0,
        )
        own, others = dict[Level, list[float]](), dict[Level, list[float]]()
        with self._db.read() as session:
            for level, definition, seconds in session.execute(query):
                found = own if definition == definition_hash else others
                found.setdefault(Level(level), []).append(seconds)
        return {level: median(found) for level, found in (others | own).items()}

    def evaluation_run(self, identifier: str) -> str | None:
        """The run that asked for an evaluation; None if none did."""
        with self._db.read() as session:
            return session.scalar(select(EvaluationRow.run).where(EvaluationRow.id == identifier))

    def judged_solutions(self, among: Iterable[str]) -> frozenset[tuple[str, str]]:
        """Which of these solutions were evaluated here at level full, by hash, each with the architecture."""
        chosen = select(EvaluationRow.solution, EvaluationRow.body).where(
            EvaluationRow.level == Level.FULL.value,
            EvaluationRow.status != EvaluationStatus.HARNESS_ERROR.value,
        )
        found: set[tuple[str, str]] = set()
        with self._db.read() as session:
            for part in parts(sorted(set(among))):
                for solution, body in session.execute(chosen.where(EvaluationRow.solution.in_(part))):
                    found.add((solution, json.loads(body)["environment"]["architecture"]))
        return frozenset(found)

    def save_attempt(self, attempt: Attempt) -> None:
        """Keep an attempt in the place of its earlier state."""
        with self._db.write() as session:
            session.merge(
                AttemptRow(
                    id=attempt.id,
                    run=attempt.run,
                    bottleneck=attempt.bottleneck,
                    number=attempt.number,
                    status=attempt.status.value,
                    body=attempt.model_dump_json(),
                )
            )

    def get_attempt(self, identifier: str) -> Attempt:
        """The attempt of this identifier.

        Raises:
            UsageError: no such attempt.
        """
        with self._db.read() as session:
            row = session.get(AttemptRow, identifier)
            if row is None:
                raise UsageError(f"the database has no attempt {identifier}: check AGENTFORGE_HOME")
            return Attempt.model_validate_json(row.body)

    def attempts(self, run_id: str) -> tuple[Attempt, ...]:
        """The run's attempts in the order of their numbers."""
        query = select(AttemptRow.body).where(AttemptRow.run == run_id).order_by(AttemptRow.number)
        with self._db.read() as session:
            return tuple(Attempt.model_validate_json(body) for body in session.scalars(query))

    def twins(self, bottleneck: str, machine_code: str) -> tuple[str, ...]:
        """Hashes of the solutions that attempts of all runs wrote for a bottleneck with this machine code."""
        query = select(AttemptRow.body).where(
            AttemptRow.bottleneck == bottleneck,
            AttemptRow.body.contains(f'"machine_code":"{machine_code}"'),
        )
        with self._db.read() as session:
            found = [Attempt.model_validate_json(body) for body in session.scalars(query)]
        return tuple(sorted({a.solution for a in found if a.solution and a.machine_code == machine_code}))

    def attempts_with_cards(self) -> tuple[Attempt, ...]:
        """Attempts of all runs whose agents were shown cards of the knowledge base."""
        query = select(AttemptRow.body).where(AttemptRow.body.contains('"served":["')).order_by(AttemptRow.id)
        with self._db.read() as session:
            return tuple(Attempt.model_validate_json(body) for body in session.scalars(query))

    def save_promotion(self, run_id: str, bottleneck: str, solution: str, evaluation: str) -> None:
        """Choose a solution for a bottleneck. Idempotent: choosing the chosen one again adds nothing."""
        newest = (
            select(PromotionRow)
            .where(PromotionRow.run == run_id, PromotionRow.bottleneck == bottleneck)
            .order_by(PromotionRow.id.desc())
            .limit(1)
        )
        with self._db.write() as session:
            last = session.scalar(newest)
            if last is not None and (last.solution, last.evaluation) == (solution, evaluation):
                return
            session.add(
                PromotionRow(
                    run=run_id,
                    bottleneck=bottleneck,
                    solution=solution,
                    evaluation=evaluation,
                    time=datetime.now(UTC),
                )
            )

    def promotions(self, run_id: str) -> tuple[Promotion, ...]:
        """The latest promotion of each bottleneck of the run, in the order in which they were made."""
        query = select(PromotionRow).where(PromotionRow.run == run_id).order_by(PromotionRow.id)
        latest: dict[str, Promotion] = {}
        with self._db.read() as session:
            for row in session.scalars(query):
                latest.pop(row.bottleneck, None)
                time = row.time if row.time.tzinfo else row.time.replace(tzinfo=UTC)
                latest[row.bottleneck] = Promotion(row.bottleneck, row.solution, row.evaluation, time)
        return tuple(latest.values())

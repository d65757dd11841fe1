"""Lessons: what verified evaluations taught, in words; and entries of other databases."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from agentforge.schema import Lesson, Outcome, Strategy

from .._engine import Database, add_once
from ..tables import LessonRow
from .outcomes import add_outcomes, add_strategy
from .scope import Scope


class Lessons:
    """Lessons by strategy."""

    _db: Database
    _scope: Scope | None = None
    """As that of `Outcomes`."""

    def save_lesson(self, lesson: Lesson) -> None:
        """Keep a lesson. Idempotent by its identifier."""
        with self._db.write() as session:
            _add_lesson(session, lesson)

    def add_knowledge(
        self, strategies: Iterable[Strategy], lessons: Iterable[Lesson], outcomes: Iterable[Outcome]
    ) -> tuple[int, int, int]:
        """Keep entries of another database in one transaction; returns how many of each were new."""
        with self._db.write() as session:
            return (
                sum(add_strategy(session, strategy) for strategy in strategies),
                sum(_add_lesson(session, lesson) for lesson in lessons),
                add_outcomes(session, outcomes),
            )

    def remove_lessons(self, identifiers: Iterable[str]) -> None:
        """Forget lessons by `Lesson.id`."""
        with self._db.write() as session:
            for identifier in identifiers:
                session.execute(delete(LessonRow).where(LessonRow.id == identifier))

    def lessons(self, op_type: str | None = None, *, claims: bool = True) -> dict[str, tuple[Lesson, ...]]:
        """Lessons by strategy, newest first; only those of an operator class if one is named.

        Args:
            claims: also those of other databases, of which a file can bring any number.
        """
        query = select(LessonRow.body).order_by(LessonRow.time.desc(), LessonRow.id)
        if op_type is not None:
            query = query.where(LessonRow.op_type == op_type)
        if not claims:
            query = query.where(~LessonRow.body.contains('"claimed":true'))
        found: dict[str, list[Lesson]] = {}
        with self._db.read() as session:
            known = [Lesson.model_validate_json(body) for body in session.scalars(query)]
            if (scope := self._scope) is not None:
                runs, all_runs = (frozenset(session.scalars(q)) for q in (scope.runs, scope.all_runs))
                known = [lesson for lesson in known if scope.has(lesson, runs, all_runs)]
        for lesson in known:
            found.setdefault(lesson.strategy, []).append(lesson)
        return {strategy: tuple(lessons) for strategy, lessons in found.items()}


def _add_lesson(session: Session, lesson: Lesson) -> bool:
    if session.get(LessonRow, lesson.id) is not None:
        return False
    row = LessonRow(
        id=lesson.id,
        strategy=lesson.strategy,
        op_type=lesson.context.op_type,
        time=lesson.time.astimezone(UTC),
        body=lesson.model_dump_json(),
    )
    add_once(session, row)
    return True

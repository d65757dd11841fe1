"""Runs and their event streams."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from agentforge.schema import (
    AnyEvent,
    Event,
    Run,
    RunRecord,
    UnknownEvent,
    UsageError,
    event_from_json,
    event_to_json,
)

from ._engine import Database
from .tables import EventRow, RunRecordRow, RunRow


def _row(run: Run) -> RunRow:
    return RunRow(
        id=run.id,
        target=run.target,
        status=run.status.value,
        created=run.created.astimezone(UTC),
        body=run.model_dump_json(),
    )


def locked_run(session: Session, run_id: str) -> RunRow:
    """The run's row, held until the transaction ends, so that writers of one run take turns.

    Raises:
        UsageError: no such run.
    """
    row = session.scalar(select(RunRow).where(RunRow.id == run_id).with_for_update())
    if row is None:
        raise UsageError(f"there is no run {run_id!r}: `agentforge runs list` shows them all")
    return row


class Runs:
    """Runs and events."""

    _db: Database

    def create_run(self, run: Run, records: Sequence[RunRecord] = ()) -> None:
        """Keep a new run with the records that it begins with.

        Raises:
            StoreError: its identifier is taken.
        """
        with self._db.write() as session:
            session.add(_row(run))
            session.flush()
            session.add_all(RunRecordRow.of(run.id, record) for record in records)

    def update_run(self, run_id: str, **changes: Any) -> Run:
        """Change fields of a run, `updated` among them; returns the run as it is now.

        Raises:
            UsageError: no such run.
        """
        with self._db.write() as session:
            row = locked_run(session, run_id)
            run = Run.model_validate_json(row.body)
            fields = {**dict(run), "updated": datetime.now(UTC), **changes}
            run = Run.model_validate(fields)
            session.merge(_row(run))
            return run

    def get_run(self, id_or_prefix: str) -> Run:
        """The run of this identifier or unique prefix.

        Raises:
            UsageError: none, or several, begin so.
        """
        begins = (
            select(RunRow)
            .where(RunRow.id.startswith(id_or_prefix, autoescape=True))
            .order_by(RunRow.id)
            .limit(4)
        )
        with self._db.read() as session:
            row = session.get(RunRow, id_or_prefix)
            found = [row] if row else list(session.scalars(begins)) if id_or_prefix else []
            if not found:
                raise UsageError(f"there is no run {id_or_prefix!r}: `agentforge runs list` shows them all")
            if len(found) > 1:
                some = ", ".join(run.id for run in found[:3])
                raise UsageError(f"several runs begin with {id_or_prefix!r} ({some}, ...): type more of it")
            return Run.model_validate_json(found[0].body)

    def list_runs(self, *, limit: int | None = None) -> tuple[Run, ...]:
        """Runs, the newest first, optionally at most `limit`."""
        query = select(RunRow.body).order_by(RunRow.created.desc(), RunRow.id.desc()).limit(limit)
        with self._db.read() as session:
            return tuple(Run.model_validate_json(body) for body in session.scalars(query))

    def append_event(self, run_id: str, event: Event) -> Event:
        """Add to the run's stream; sequence numbers count 1, 2, 3, ... without a gap.

        Args:
            event: its `seq` and `run` are set here.

        Returns:
            The event as it was stored.

        Raises:
            UsageError: no such run.
        """
        with self._db.write() as session:
            locked_run(session, run_id)
            last = session.scalar(select(func.max(EventRow.seq)).where(EventRow.run == run_id)) or 0
            stored = event.model_copy(update={"seq": last + 1, "run": run_id})
            session.add(
                EventRow(
                    run=run_id,
                    seq=stored.seq,
                    kind=stored.kind,
                    time=stored.time.astimezone(UTC),
                    body=event_to_json(stored),
                )
            )
            return stored

    def events(self, run_id: str, kinds: Collection[str] = ()) -> tuple[AnyEvent | UnknownEvent, ...]:
        """The run's events in order, optionally only those of some kinds."""
        query = select(EventRow.body).where(EventRow.run == run_id).order_by(EventRow.seq)
        if kinds:
            query = query.where(EventRow.kind.in_(kinds))
        with self._db.read() as session:
            return tuple(event_from_json(body) for body in session.scalars(query))

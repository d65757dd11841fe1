"""Records of runs: settings, inputs, priors, the plan, how the search ended, what was stitched."""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy import select

from agentforge.schema import RunRecord

from ._engine import Database
from ._runs import locked_run
from .tables import RunRecordRow

Record = TypeVar("Record", bound=RunRecord)
RECORDS = {kind.record_name: kind for kind in RunRecord.__subclasses__()}
"""Each class of record by its name."""


class Records:
    """At most one record of each class per run."""

    _db: Database

    def save_record(self, run_id: str, record: RunRecord) -> None:
        """Keep a run's record in the place of an earlier one of its class.

        Raises:
            UsageError: no such run.
        """
        with self._db.write() as session:
            locked_run(session, run_id)
            session.merge(RunRecordRow.of(run_id, record))

    def records(self, run_id: str) -> dict[str, RunRecord]:
        """All records of the run, by name."""
        with self._db.read() as session:
            # A name that is not known is of a newer version.
            known = RunRecordRow.run == run_id, RunRecordRow.name.in_(RECORDS)
            rows = session.scalars(select(RunRecordRow).where(*known))
            return {row.name: RECORDS[row.name].model_validate_json(row.body) for row in rows}

    def get_record(self, run_id: str, kind: type[Record]) -> Record | None:
        """The run's record of a class; None before there is one."""
        with self._db.read() as session:
            row = session.get(RunRecordRow, (run_id, kind.record_name))
            return None if row is None else kind.model_validate_json(row.body)

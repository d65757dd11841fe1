"""Records of runs: settings, inputs, priors, the plan, how the search ended, what was stitched."""

from __future__ import annotations

from typing import Any, TypeVar

from sqlalchemy import select

from agentforge.schema import (
    ArtifactReport,
    Directives,
    GivenKernels,
    Intent,
    JudgingCode,
    ModelPlan,
    NativeVerdict,
    OriginalMetric,
    Priors,
    RunRecord,
    RunSettings,
    SearchSummary,
    StitchResult,
)

from ._engine import Database
from ._runs import locked_run
from .tables import RECORD_NAMES, RunRecordRow

Record = TypeVar(
    "Record",
    RunSettings,
    OriginalMetric,
    GivenKernels,
    Intent,
    Priors,
    ModelPlan,
    Directives,
    SearchSummary,
    StitchResult,
    ArtifactReport,
    NativeVerdict,
    JudgingCode,
)


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
        kinds: dict[str, type[Any]] = {name: kind for kind, name in RECORD_NAMES.items()}
        with self._db.read() as session:
            known = RunRecordRow.run == run_id, RunRecordRow.name.in_(kinds)  # others are of a newer version
            rows = session.scalars(select(RunRecordRow).where(*known))
            return {row.name: kinds[row.name].model_validate_json(row.body) for row in rows}

    def get_record(self, run_id: str, kind: type[Record]) -> Record | None:
        """The run's record of a class; None before there is one."""
        with self._db.read() as session:
            row = session.get(RunRecordRow, (run_id, RECORD_NAMES[kind]))
            return None if row is None else kind.model_validate_json(row.body)

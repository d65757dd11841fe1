"""Names of the records of a run, and their rows."""

from __future__ import annotations

from agentforge.schema import (
    GivenKernels,
    Intent,
    ModelPlan,
    Priors,
    RunRecord,
    RunSettings,
    SearchSummary,
    StitchResult,
)

from .tables import RunRecordRow

NAMES: dict[type[RunRecord], str] = {
    RunSettings: "settings",
    GivenKernels: "kernels",
    Intent: "intent",
    Priors: "priors",
    ModelPlan: "plan",
    SearchSummary: "search",
    StitchResult: "stitch",
}
"""Class of record to its name in the table. Stored: a name never changes."""


def record_row(run_id: str, record: RunRecord) -> RunRecordRow:
    """The row of a run's record."""
    return RunRecordRow(run=run_id, name=NAMES[type(record)], body=record.model_dump_json())

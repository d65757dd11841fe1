"""Metrics of evaluations as rows: what a notebook compares over solutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sqlalchemy import select

from agentforge.schema import Metric

from ._engine import Database
from .tables import MetricRow

_NAME = 255


def metric_rows(evaluation: str, metrics: Sequence[Metric]) -> Iterator[MetricRow]:
    """Rows of an evaluation's metrics. One without a number is none; names are cut to what a column takes."""
    for position, metric in enumerate(metrics):
        if math.isfinite(metric.value):
            yield MetricRow(
                evaluation=evaluation,
                position=position,
                name=metric.name.replace("\0", "")[:_NAME],
                kernel=metric.kernel.replace("\0", ""),
                value=metric.value,
                unit=metric.unit[:_NAME],
                source=metric.source[:_NAME],
            )


class Metrics:
    """Metrics by evaluation."""

    _db: Database

    def metrics(self, evaluation: str) -> tuple[Metric, ...]:
        """What was measured in the evaluation of this identifier."""
        query = select(MetricRow).where(MetricRow.evaluation == evaluation).order_by(MetricRow.position)
        with self._db.read() as session:
            return tuple(map(_metric, session.scalars(query)))


def _metric(row: MetricRow) -> Metric:
    return Metric(name=row.name, value=row.value, unit=row.unit, source=row.source, kernel=row.kernel)

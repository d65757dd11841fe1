"""Metrics as rows, also those of evaluations that are there already."""

import json
import math

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and fill it."""
    table = op.create_table(
        "metrics",
        sa.Column("evaluation", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("unit", sa.String(length=255), nullable=False),
        sa.Column("source", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(["evaluation"], ["evaluations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation", "position"),
    )
    op.create_index(op.f("ix_metrics_name"), "metrics", ["name"], unique=False)
    connection = op.get_bind()
    known = sa.table("evaluations", sa.column("id"), sa.column("body"))
    for identifier, body in connection.execute(sa.select(known.c.id, known.c.body)).fetchall():
        rows = _rows(identifier, json.loads(body).get("metrics") or [])
        if rows:
            connection.execute(sa.insert(table), rows)


def downgrade() -> None:
    """Drop it; the evaluations have the metrics too."""
    op.drop_table("metrics")


def _rows(identifier: str, metrics: list[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {
            "evaluation": identifier,
            "position": position,
            "name": str(metric["name"])[:255],
            "kernel": "",
            "value": float(str(metric["value"])),
            "unit": str(metric.get("unit", ""))[:255],
            "source": str(metric.get("source", ""))[:255],
        }
        for position, metric in enumerate(metrics)
        if math.isfinite(float(str(metric["value"])))
    ]

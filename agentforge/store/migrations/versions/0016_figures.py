"""Seconds of evaluations, tokens and dollars of calls, beside their bodies; two more indexes."""

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_PART = 1000


def upgrade() -> None:
    """Add the columns, and fill them from the bodies here: a server may refuse U+0000 in JSON."""
    seconds = sa.Column("seconds", sa.Float(precision=53), nullable=False, server_default="0")
    tokens = sa.Column("tokens", sa.Integer(), nullable=False, server_default="0")
    dollars = sa.Column("dollars", sa.Float(precision=53), nullable=True)
    op.add_column("evaluations", seconds)
    op.add_column("llm_calls", tokens)
    op.add_column("llm_calls", dollars)
    _fill("evaluations", "id", _of_evaluation)
    _fill("llm_calls", "key", _of_call)
    op.create_index("ix_attempts_bottleneck", "attempts", ["bottleneck"])
    op.create_index("ix_campaign_problems_id", "campaign_problems", ["campaign", "id"])


def _of_evaluation(body: dict[str, Any]) -> dict[str, Any]:
    return {"seconds": body.get("seconds", 0.0)}


def _of_call(body: dict[str, Any]) -> dict[str, Any]:
    if body["status"] == "begun":
        return {"tokens": 0, "dollars": None}
    tokens = body.get("tokens_in", 0) + body.get("tokens_out", 0)
    return {"tokens": tokens, "dollars": body.get("dollars")}


def _fill(name: str, key: str, figures: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    table = sa.table(name, *map(sa.column, (key, "body", "seconds", "tokens", "dollars")))
    connection, last = op.get_bind(), ""
    part = sa.select(table.c[key], table.c.body).order_by(table.c[key]).limit(_PART)
    change = sa.update(table).where(table.c[key] == sa.bindparam("row"))
    while rows := connection.execute(part.where(table.c[key] > last)).all():
        connection.execute(change, [{"row": row[0], **figures(json.loads(row.body))} for row in rows])
        last = rows[-1][0]

"""The parameters of an outcome, so that experience is kept apart by them."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_PART = 1000


def upgrade() -> None:
    """Add the column, and fill it from the outcomes' bodies."""
    op.add_column("outcomes", sa.Column("parameters", sa.Text(), nullable=True))
    table = sa.table(
        "outcomes", sa.column("id", sa.String), sa.column("body", sa.Text), sa.column("parameters", sa.Text)
    )
    connection, last = op.get_bind(), ""
    part = sa.select(table.c.id, table.c.body).order_by(table.c.id).limit(_PART)
    while rows := connection.execute(part.where(table.c.id > last)).all():
        values = [
            {"key": row.id, "value": json.dumps(json.loads(row.body).get("parameters", {}), sort_keys=True)}
            for row in rows
        ]
        change = sa.update(table).where(table.c.id == sa.bindparam("key"))
        connection.execute(change.values(parameters=sa.bindparam("value")), values)
        last = rows[-1].id

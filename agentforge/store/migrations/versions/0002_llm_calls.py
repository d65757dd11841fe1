"""The ledger of language-model calls."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BODY = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "llm_calls",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("run", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=64), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index(op.f("ix_llm_calls_run"), "llm_calls", ["run"], unique=False)


def downgrade() -> None:
    """Drop it."""
    op.drop_table("llm_calls")

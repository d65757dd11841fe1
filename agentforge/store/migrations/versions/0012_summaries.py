"""Contexts of outcomes, and statistics by strategy and context. The store fills them after an upgrade."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

BODY = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "contexts",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("tried", sa.Boolean(), nullable=False),
        sa.Column("claimed", sa.Boolean(), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    counts = ("n", "failures", "unproven", "discouraging", "measured", "claims")
    numbers = ("mean", "squares", "mean_measured", "mean_claimed")
    op.create_table(
        "outcome_summaries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("strategy", sa.String(length=255), nullable=False),
        sa.Column("context", sa.String(length=64), nullable=False),
        sa.Column("apart", sa.Boolean(), nullable=False),
        sa.Column("after", sa.String(length=255), nullable=True),
        sa.Column("generator", sa.String(length=64), nullable=True),
        sa.Column("parameters", sa.Text(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in counts),
        *(sa.Column(name, sa.Float(precision=53), nullable=False) for name in numbers),
        sa.Column("newest", sa.DateTime(timezone=True), nullable=True),
        sa.Column("best_solution", sa.String(length=64), nullable=True),
        sa.Column("best_log_speedup", sa.Float(precision=53), nullable=True),
        sa.Column("best_parameters", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["context"], ["contexts.hash"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_outcome_summaries_place", "outcome_summaries", ["context", "apart", "strategy"])

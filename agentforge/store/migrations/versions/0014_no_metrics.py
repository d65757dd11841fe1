"""Metrics are in the bodies of their evaluations, and only there."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the table, which repeated them."""
    op.drop_table("metrics")

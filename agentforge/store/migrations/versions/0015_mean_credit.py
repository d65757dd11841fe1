"""The mean credit of a strategy in a context. The store fills it after the upgrade."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("outcome_summaries", sa.Column("mean_credit", sa.Float(precision=53), nullable=True))

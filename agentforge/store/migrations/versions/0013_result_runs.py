"""The run that has an item's result, beside the run in progress, and the run that each try began."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; an item that was visited again has the result of its run."""
    op.add_column("campaign_items", sa.Column("result_run", sa.String(length=255), nullable=True))
    op.add_column("campaign_tries", sa.Column("run", sa.String(length=255), nullable=True))
    op.execute("UPDATE campaign_items SET result_run = run WHERE state = 'done' OR visits > 1")

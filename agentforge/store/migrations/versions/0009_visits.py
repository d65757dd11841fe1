"""How often an item's run may spend the campaign's budget, and its place in the queue."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; items that are there already have one visit and stay in their order."""
    op.add_column("campaign_items", sa.Column("visits", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("campaign_items", sa.Column("position", sa.Integer(), nullable=False, server_default="0"))
    op.execute("UPDATE campaign_items SET position = id")
    op.drop_index("ix_campaign_items_queue", "campaign_items")
    op.create_index("ix_campaign_items_place", "campaign_items", ["campaign", "state", "position"])

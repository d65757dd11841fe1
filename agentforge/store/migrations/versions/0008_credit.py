"""What a strategy itself gained, what it was built on, and which generator wrote it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; outcomes that are there already are first attempts."""
    op.add_column("outcomes", sa.Column("credit", sa.Float(precision=53), nullable=True))
    op.add_column("outcomes", sa.Column("after", sa.String(length=255), nullable=False, server_default=""))
    op.add_column("outcomes", sa.Column("generator", sa.String(length=64), nullable=False, server_default=""))
    op.execute("UPDATE outcomes SET credit = log_speedup")

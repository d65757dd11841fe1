"""Under which conditions an evaluation was made, so that a later run can take its verdict."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; evaluations that are there already are not taken."""
    op.add_column(
        "evaluations", sa.Column("conditions", sa.String(length=64), nullable=False, server_default="")
    )

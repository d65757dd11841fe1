"""What verified evaluations taught, in words."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BODY = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "lessons",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("strategy", sa.String(length=255), nullable=False),
        sa.Column("op_type", sa.String(length=255), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_lessons_strategy"), "lessons", ["strategy"], unique=False)
    op.create_index(op.f("ix_lessons_op_type"), "lessons", ["op_type"], unique=False)


def downgrade() -> None:
    """Drop it."""
    op.drop_table("lessons")

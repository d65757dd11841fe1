"""The tables of AgentForge 0.1.0."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0007"
down_revision = None
branch_labels = None
depends_on = None

BODY = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Create them all."""
    op.create_table(
        "definitions",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("op_type", sa.String(length=255), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_index(op.f("ix_definitions_op_type"), "definitions", ["op_type"], unique=False)
    op.create_table(
        "outcomes",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("strategy", sa.String(length=255), nullable=False),
        sa.Column("context", sa.String(length=64), nullable=False),
        sa.Column("op_type", sa.String(length=255), nullable=False),
        sa.Column("solution", sa.String(length=64), nullable=False),
        sa.Column("run", sa.String(length=255), nullable=True),
        sa.Column("status", sa.String(length=64), nullable=False),
        sa.Column("evidence", sa.String(length=64), nullable=False),
        sa.Column("log_speedup", sa.Float(precision=53), nullable=True),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_outcomes_op_type"), "outcomes", ["op_type"], unique=False)
    op.create_index(op.f("ix_outcomes_solution"), "outcomes", ["solution"], unique=False)
    op.create_index("ix_outcomes_strategy_context", "outcomes", ["strategy", "context"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_runs_created"), "runs", ["created"], unique=False)
    op.create_index(op.f("ix_runs_status"), "runs", ["status"], unique=False)
    op.create_index(op.f("ix_runs_target"), "runs", ["target"], unique=False)
    op.create_table(
        "solutions",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("definition", sa.String(length=64), nullable=False),
        sa.Column("author", sa.String(length=255), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_index(op.f("ix_solutions_definition"), "solutions", ["definition"], unique=False)
    op.create_table(
        "strategies",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "targets",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("run", sa.String(length=255), nullable=False),
        sa.Column("bottleneck", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=64), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("run", "number", name="uq_attempts_run_number"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("run", sa.String(length=255), nullable=True),
        sa.Column("definition", sa.String(length=64), nullable=False),
        sa.Column("solution", sa.String(length=64), nullable=False),
        sa.Column("workloads", sa.String(length=64), nullable=False),
        sa.Column("level", sa.String(length=64), nullable=False),
        sa.Column("device", sa.String(length=255), nullable=False),
        sa.Column("status", sa.String(length=64), nullable=False),
        sa.Column("evidence", sa.String(length=64), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_evaluations_key", "evaluations", ["definition", "solution", "level"], unique=False)
    op.create_index(op.f("ix_evaluations_run"), "evaluations", ["run"], unique=False)
    op.create_table(
        "events",
        sa.Column("run", sa.String(length=255), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=255), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "seq"),
    )
    op.create_table(
        "profiles",
        sa.Column("run", sa.String(length=255), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run"),
    )
    op.create_table(
        "promotions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.String(length=255), nullable=False),
        sa.Column("bottleneck", sa.String(length=64), nullable=False),
        sa.Column("solution", sa.String(length=64), nullable=False),
        sa.Column("evaluation", sa.String(length=64), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_promotions_run"), "promotions", ["run"], unique=False)
    op.create_table(
        "run_locks",
        sa.Column("run", sa.String(length=255), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("boot", sa.String(length=64), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started", sa.String(length=64), nullable=False),
        sa.Column("taken", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run"),
    )
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
    op.create_table(
        "metrics",
        sa.Column("evaluation", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("unit", sa.String(length=255), nullable=False),
        sa.Column("source", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(["evaluation"], ["evaluations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation", "position"),
    )
    op.create_index(op.f("ix_metrics_name"), "metrics", ["name"], unique=False)
    op.create_table(
        "run_records",
        sa.Column("run", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "name"),
    )
    op.create_table(
        "campaigns",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "campaign_problems",
        sa.Column("campaign", sa.String(length=255), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("campaign", "position"),
    )
    op.create_table(
        "campaign_items",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign", sa.String(length=255), nullable=False),
        sa.Column("problem", sa.String(length=255), nullable=False),
        sa.Column("arm", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=64), nullable=False),
        sa.Column("worker", sa.String(length=255), nullable=False),
        sa.Column("lease_until", sa.Float(precision=53), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("run", sa.String(length=255), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("campaign", "problem", "arm", name="uq_campaign_items"),
    )
    op.create_index("ix_campaign_items_queue", "campaign_items", ["campaign", "state", "id"], unique=False)
    op.create_table(
        "campaign_tries",
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("worker", sa.String(length=255), nullable=False),
        sa.Column("begun", sa.Float(precision=53), nullable=False),
        sa.Column("beat", sa.Float(precision=53), nullable=False),
        sa.Column("ended", sa.Float(precision=53), nullable=True),
        sa.Column("outcome", sa.String(length=64), nullable=True),
        sa.Column("words", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["item"], ["campaign_items.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("item", "number"),
    )

"""The tables. Each keeps a noun as JSON in `body`, beside the columns that are queried.

`body` is text and not the server's JSON type: PostgreSQL's jsonb refuses the character U+0000, which a
hostile candidate can print, and a noun is only ever read back whole.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    Boolean,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from agentforge.schema import RunRecord

Body = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
Key = String(64)
Name = String(255)
Time = DateTime(timezone=True)


class Table(DeclarativeBase):
    """Base of all tables."""


class RunRow(Table):
    """A `Run`."""

    __tablename__ = "runs"
    id: Mapped[str] = mapped_column(Name, primary_key=True)
    target: Mapped[str] = mapped_column(Key, index=True)
    status: Mapped[str] = mapped_column(Key, index=True)
    created: Mapped[datetime] = mapped_column(Time, index=True)
    body: Mapped[str] = mapped_column(Body)


class LockRow(Table):
    """The process that works on a run."""

    __tablename__ = "run_locks"
    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    host: Mapped[str] = mapped_column(Name)
    boot: Mapped[str] = mapped_column(Key)
    pid: Mapped[int] = mapped_column(Integer)
    started: Mapped[str] = mapped_column(Key)
    """Start of the process in clock ticks after boot: a recycled pid has another."""
    taken: Mapped[datetime] = mapped_column(Time)


class TargetRow(Table):
    """A `Target`, by the hash of its definition, or by its own if another one of that definition is there."""

    __tablename__ = "targets"
    hash: Mapped[str] = mapped_column(Key, primary_key=True)
    name: Mapped[str] = mapped_column(Name)
    body: Mapped[str] = mapped_column(Body)


class ProfileRow(Table):
    """The `Profile` of a run."""

    __tablename__ = "profiles"
    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    body: Mapped[str] = mapped_column(Body)


class DefinitionRow(Table):
    """A `Definition`."""

    __tablename__ = "definitions"
    hash: Mapped[str] = mapped_column(Key, primary_key=True)
    op_type: Mapped[str] = mapped_column(Name, index=True)
    body: Mapped[str] = mapped_column(Body)


class SolutionRow(Table):
    """A `Solution`."""

    __tablename__ = "solutions"
    hash: Mapped[str] = mapped_column(Key, primary_key=True)
    definition: Mapped[str] = mapped_column(Key, index=True)
    author: Mapped[str] = mapped_column(Name)
    body: Mapped[str] = mapped_column(Body)


class EvaluationRow(Table):
    """An `Evaluation`."""

    __tablename__ = "evaluations"
    __table_args__ = (Index("ix_evaluations_key", "definition", "solution", "level"),)
    id: Mapped[str] = mapped_column(Key, primary_key=True)
    run: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"), index=True)
    definition: Mapped[str] = mapped_column(Key)
    solution: Mapped[str] = mapped_column(Key)
    workloads: Mapped[str] = mapped_column(Key)
    """Hash of the sorted hashes of the workloads."""
    level: Mapped[str] = mapped_column(Key)
    device: Mapped[str] = mapped_column(Name)
    status: Mapped[str] = mapped_column(Key)
    evidence: Mapped[str] = mapped_column(Key)
    time: Mapped[datetime] = mapped_column(Time)
    conditions: Mapped[str] = mapped_column(Key, server_default="")
    """Hash of what it depends on beside its task and solution; empty if it was not judged here."""
    seconds: Mapped[float] = mapped_column(Float(53), server_default="0")
    """Wall time."""
    body: Mapped[str] = mapped_column(Body)


class RunRecordRow(Table):
    """A `RunRecord`."""

    __tablename__ = "run_records"
    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(Key, primary_key=True)
    """`RunRecord.record_name`."""
    body: Mapped[str] = mapped_column(Body)

    @classmethod
    def of(cls, run_id: str, record: RunRecord) -> RunRecordRow:
        """The row of a run's record."""
        return cls(run=run_id, name=record.record_name, body=record.model_dump_json())


class AttemptRow(Table):
    """An `Attempt`."""

    __tablename__ = "attempts"
    __table_args__ = (UniqueConstraint("run", "number", name="uq_attempts_run_number"),)
    id: Mapped[str] = mapped_column(Name, primary_key=True)
    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    bottleneck: Mapped[str] = mapped_column(Key, index=True)
    number: Mapped[int] = mapped_column(Integer)
    status: Mapped[str] = mapped_column(Key)
    body: Mapped[str] = mapped_column(Body)


class EventRow(Table):
    """An `Event`."""

    __tablename__ = "events"
    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(Name)
    time: Mapped[datetime] = mapped_column(Time)
    body: Mapped[str] = mapped_column(Body)


class PromotionRow(Table):
    """A solution chosen for a bottleneck of a run; the latest one counts."""

    __tablename__ = "promotions"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    bottleneck: Mapped[str] = mapped_column(Key)
    solution: Mapped[str] = mapped_column(Key)
    evaluation: Mapped[str] = mapped_column(Key)
    time: Mapped[datetime] = mapped_column(Time)


class StrategyRow(Table):
    """A `Strategy` that no card describes: proposed by an agent, or imported."""

    __tablename__ = "strategies"
    id: Mapped[str] = mapped_column(Name, primary_key=True)
    body: Mapped[str] = mapped_column(Body)


class OutcomeRow(Table):
    """An `Outcome`; no foreign keys, because it may come from another machine."""

    __tablename__ = "outcomes"
    __table_args__ = (Index("ix_outcomes_strategy_context", "strategy", "context"),)
    id: Mapped[str] = mapped_column(Key, primary_key=True)
    strategy: Mapped[str] = mapped_column(Name)
    context: Mapped[str] = mapped_column(Key)
    """Hash of the context."""
    op_type: Mapped[str] = mapped_column(Name, index=True)
    solution: Mapped[str] = mapped_column(Key, index=True)
    run: Mapped[str | None] = mapped_column(Name)
    status: Mapped[str] = mapped_column(Key)
    evidence: Mapped[str] = mapped_column(Key)
    log_speedup: Mapped[float | None] = mapped_column(Float(53))
    credit: Mapped[float | None] = mapped_column(Float(53))
    """What the strategy itself gained."""
    after: Mapped[str] = mapped_column(Name, default="", server_default="")
    """Strategy that it was built on."""
    generator: Mapped[str] = mapped_column(Key, default="", server_default="")
    parameters: Mapped[str | None] = mapped_column(Text)
    """As JSON with sorted names."""
    time: Mapped[datetime] = mapped_column(Time)
    body: Mapped[str] = mapped_column(Body)


class ContextRow(Table):
    """A `Context` of outcomes. Writers of outcomes lock it."""

    __tablename__ = "contexts"
    hash: Mapped[str] = mapped_column(Key, primary_key=True)
    tried: Mapped[bool] = mapped_column(Boolean)
    """Whether an outcome of this database is in it."""
    claimed: Mapped[bool] = mapped_column(Boolean)
    """Whether a claim is that counts."""
    body: Mapped[str] = mapped_column(Body)


class SummaryRow(Table):
    """A `StrategyRecord`: statistics of outcomes, which are in the table for look-ups only."""

    __tablename__ = "outcome_summaries"
    __table_args__ = (Index("ix_outcome_summaries_place", "context", "apart", "strategy"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    strategy: Mapped[str] = mapped_column(Name)
    context: Mapped[str] = mapped_column(ForeignKey("contexts.hash", ondelete="CASCADE"))
    apart: Mapped[bool] = mapped_column(Boolean)
    """Whether `after`, `generator` and `parameters` keep the rows of a strategy in a context apart."""
    after: Mapped[str | None] = mapped_column(Name)
    generator: Mapped[str | None] = mapped_column(Key)
    parameters: Mapped[str | None] = mapped_column(Text)
    n: Mapped[int] = mapped_column(Integer)
    mean: Mapped[float] = mapped_column(Float(53))
    squares: Mapped[float] = mapped_column(Float(53))
    """Sum of the squares of the verified results."""
    failures: Mapped[int] = mapped_column(Integer)
    unproven: Mapped[int] = mapped_column(Integer)
    discouraging: Mapped[int] = mapped_column(Integer)
    measured: Mapped[int] = mapped_column(Integer)
    mean_measured: Mapped[float] = mapped_column(Float(53))
    claims: Mapped[int] = mapped_column(Integer)
    mean_claimed: Mapped[float] = mapped_column(Float(53))
    newest: Mapped[datetime | None] = mapped_column(Time)
    best_solution: Mapped[str | None] = mapped_column(Key)
    best_log_speedup: Mapped[float | None] = mapped_column(Float(53))
    best_parameters: Mapped[str | None] = mapped_column(Text)
    mean_credit: Mapped[float | None] = mapped_column(Float(53))
    """None if `apart`, whose `mean` is that of the credit."""


class CallRow(Table):
    """An `LLMCall`."""

    __tablename__ = "llm_calls"
    key: Mapped[str] = mapped_column(Key, primary_key=True)
    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    role: Mapped[str] = mapped_column(Key)
    status: Mapped[str] = mapped_column(Key)
    time: Mapped[datetime] = mapped_column(Time)
    tokens: Mapped[int] = mapped_column(Integer, server_default="0")
    """In and out, once it has ended."""
    dollars: Mapped[float | None] = mapped_column(Float(53))
    """None while it is under way, or if its cost is not known."""
    body: Mapped[str] = mapped_column(Body)


class LessonRow(Table):
    """A `Lesson`; no foreign keys, because it may come from another machine."""

    __tablename__ = "lessons"
    id: Mapped[str] = mapped_column(Key, primary_key=True)
    strategy: Mapped[str] = mapped_column(Name, index=True)
    op_type: Mapped[str] = mapped_column(Name, index=True)
    time: Mapped[datetime] = mapped_column(Time)
    body: Mapped[str] = mapped_column(Body)


class CampaignRow(Table):
    """A `Campaign`."""

    __tablename__ = "campaigns"
    name: Mapped[str] = mapped_column(Name, primary_key=True)
    state: Mapped[str] = mapped_column(Key)
    """The body's state is that of its creation."""
    created: Mapped[datetime] = mapped_column(Time)
    body: Mapped[str] = mapped_column(Body)


class ProblemRow(Table):
    """A `SuiteProblem` of a campaign."""

    __tablename__ = "campaign_problems"
    __table_args__ = (Index("ix_campaign_problems_id", "campaign", "id"),)
    campaign: Mapped[str] = mapped_column(ForeignKey("campaigns.name", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    id: Mapped[str] = mapped_column(Name)
    body: Mapped[str] = mapped_column(Body)


class ItemRow(Table):
    """A `CampaignItem`; workers take the lowest position first."""

    __tablename__ = "campaign_items"
    __table_args__ = (
        UniqueConstraint("campaign", "problem", "arm", name="uq_campaign_items"),
        Index("ix_campaign_items_place", "campaign", "state", "position"),
    )
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    campaign: Mapped[str] = mapped_column(ForeignKey("campaigns.name", ondelete="CASCADE"))
    problem: Mapped[str] = mapped_column(Name)
    arm: Mapped[str] = mapped_column(Name)
    state: Mapped[str] = mapped_column(Key)
    worker: Mapped[str] = mapped_column(Name)
    lease_until: Mapped[float] = mapped_column(Float(53))
    """Seconds since 1970 by the database server's clock; the worker is taken for dead after that."""
    tries: Mapped[int] = mapped_column(Integer)
    visits: Mapped[int] = mapped_column(Integer, server_default="1")
    position: Mapped[int] = mapped_column(Integer, server_default="0")
    """Not the identifier: a server would then search the primary key, past all items that are over."""
    lost: Mapped[int] = mapped_column(Integer)
    run: Mapped[str | None] = mapped_column(Name)
    result_run: Mapped[str | None] = mapped_column(Name)
    reason: Mapped[str] = mapped_column(Text)
    seconds: Mapped[float] = mapped_column(Float(53))


class TryRow(Table):
    """One worker's try of an item."""

    __tablename__ = "campaign_tries"
    item: Mapped[int] = mapped_column(ForeignKey("campaign_items.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    worker: Mapped[str] = mapped_column(Name)
    begun: Mapped[float] = mapped_column(Float(53))
    """Seconds since 1970, as the next two; 0 if it was in another database, so `ended` is its seconds."""
    beat: Mapped[float] = mapped_column(Float(53))
    """Of the last heartbeat."""
    ended: Mapped[float | None] = mapped_column(Float(53))
    outcome: Mapped[str | None] = mapped_column(Key)
    words: Mapped[str] = mapped_column(Text)
    """What the worker said last."""
    run: Mapped[str | None] = mapped_column(Name)
    """The run that it began."""

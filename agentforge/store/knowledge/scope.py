"""Which knowledge an arm of a campaign may use, so that its arms can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    and_,
    bindparam,
    null,
    or_,
    select,
    union,
)

from agentforge.schema import Lesson

from ..tables import ContextRow, ItemRow, OutcomeRow, StrategyRow, SummaryRow, TryRow
from .summary import CLAIMED, statistics


def item_runs(campaign: str, arm: str | None = None) -> CompoundSelect[Any]:
    """Pairs of an item, of one arm or of any, and one of its runs, also of those that were given up."""
    mine = [ItemRow.campaign == campaign, *([ItemRow.arm == arm] if arm else [])]
    return union(
        *(
            select(ItemRow.id, column.label("run"))
            .join(TryRow, TryRow.item == ItemRow.id, isouter=True)
            .where(*mine, column.is_not(None))
            for column in (ItemRow.run, ItemRow.result_run, TryRow.run)
        )
    )


@dataclass(frozen=True)
class Scope:
    """What was measured here before the campaign, and what the arm's own runs found since.

    Claims are left out: their time is that of another database, so it does not say when they came.

    The table of statistics counts all outcomes, so those of a scope are summed up at each look-up.
    """

    campaign: str
    arm: str
    before: datetime
    """When the campaign was created."""

    @property
    def runs(self) -> Select[str | None]:
        """Runs of the arm's items."""
        return select(item_runs(self.campaign, self.arm).subquery().c.run)

    @property
    def all_runs(self) -> Select[str | None]:
        """Runs of all arms' items."""
        return select(item_runs(self.campaign).subquery().c.run)

    @property
    def outcomes(self) -> ColumnElement[bool]:
        """Condition that an outcome is in the scope."""
        return self.has_outcome(OutcomeRow)

    def has_outcome(self, row: type[OutcomeRow]) -> ColumnElement[bool]:
        """The same for an alias of the table."""
        # A machine whose clock is behind writes times before the campaign, so its runs are named too.
        of_others = or_(row.run.is_(None), row.run.not_in(self.all_runs))
        early = and_(row.time < self.before.astimezone(UTC), of_others)
        return and_(row.evidence != CLAIMED, or_(early, row.run.in_(self.runs)))

    @property
    def contexts(self) -> ColumnElement[bool]:
        """Condition that a context has an outcome in the scope."""
        return ContextRow.hash.in_(select(OutcomeRow.context).where(self.outcomes))

    @property
    def strategies(self) -> ColumnElement[bool]:
        """Condition that a strategy without a card has an outcome in the scope."""
        return StrategyRow.id.in_(select(OutcomeRow.strategy).where(self.outcomes))

    def summaries(self, names: Iterable[str], *, apart: bool) -> Select[Any]:
        """Rows as in `SummaryRow`, without `id` and `apart`.

        Args:
            names: `contexts` and `strategies`, if they are parameters of the statement.
        """
        chosen = [self.outcomes]
        chosen += [OutcomeRow.context.in_(_many("contexts"))] if "contexts" in names else []
        chosen += [OutcomeRow.strategy.in_(_many("strategies"))] if "strategies" in names else []
        found = statistics(chosen, apart=apart).subquery().c
        wanted = [c.name for c in SummaryRow.__table__.c if c.name not in ("id", "apart")]
        query = select(*(found[name] if name in found else null().label(name) for name in wanted))
        order = ("strategy", "context", "after", "generator", "parameters")
        return query.order_by(*(found[name] for name in order if name in found))

    def has(self, lesson: Lesson, runs: frozenset[str | None], all_runs: frozenset[str | None]) -> bool:
        """Whether a lesson is in the scope, whose `runs` and `all_runs` are these."""
        return lesson.run in runs or (lesson.time < self.before and lesson.run not in all_runs)


def _many(name: str) -> BindParameter[Any]:
    return bindparam(name, expanding=True)

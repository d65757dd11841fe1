"""Campaigns with their problems and items, as they are read and created."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import product

from sqlalchemy import JSON, cast, func, select, type_coerce, update
from sqlalchemy.orm import Session

from agentforge.schema import (
    BusyError,
    Campaign,
    CampaignItem,
    CampaignState,
    ItemState,
    SuiteProblem,
    TryOutcome,
    UsageError,
)

from .._engine import Database
from ..knowledge.scope import Scope, item_runs
from ..tables import CallRow, CampaignRow, EvaluationRow, ItemRow, ProblemRow, TryRow
from .statements import clock_of


@dataclass(frozen=True)
class Progress:
    """How far a campaign is."""

    states: dict[ItemState, int]
    seconds: float
    """Mean wall time of an item that is done or failed; 0 if there is none."""

    @property
    def items(self) -> int:
        """All of them."""
        return sum(self.states.values())

    @property
    def over(self) -> int:
        """Items that no worker takes."""
        return sum(count for state, count in self.states.items() if state.over)

    @property
    def finished(self) -> bool:
        """Whether no item is left."""
        return self.over == self.items


@dataclass(frozen=True)
class Try:
    """One worker's try of an item."""

    item: int
    number: int
    worker: str
    outcome: TryOutcome | None
    """None while it goes on."""
    words: str
    ended: float | None
    """Seconds since 1970."""

    @property
    def host(self) -> str:
        """The worker's machine."""
        return self.worker.rpartition(":")[0]


class CampaignRecords:
    """Campaigns by name."""

    _db: Database

    def create_campaign(self, campaign: Campaign, problems: Sequence[SuiteProblem]) -> bool:
        """Keep a new campaign with an item for each problem and arm, in this order.

        Returns:
            False if the very same campaign is there already: then nothing changes.

        Raises:
            UsageError: its name belongs to a campaign with other settings.
        """
        with self._db.write() as session:
            row = session.get(CampaignRow, campaign.name)
            if row is not None:
                self._refuse_another(campaign, _campaign(row))
                return False
            session.add(
                CampaignRow(
                    name=campaign.name,
                    state=campaign.state.value,
                    created=campaign.created.astimezone(UTC),
                    body=campaign.model_dump_json(),
                )
            )
            session.flush()
            for position, problem in enumerate(problems):
                body = problem.model_dump_json()
                session.add(ProblemRow(campaign=campaign.name, position=position, id=problem.id, body=body))
            session.add_all(
                ItemRow(
                    campaign=campaign.name,
                    problem=problem.id,
                    arm=arm.name,
                    state=(ItemState.UNSUPPORTED if problem.unsupported else ItemState.WAITING).value,
                    worker="",
                    lease_until=0.0,
                    tries=0,
                    visits=1,
                    position=position,
                    lost=0,
                    reason=problem.unsupported,
                    seconds=0.0,
                )
                for position, (problem, arm) in enumerate(product(problems, campaign.arms))
            )
            return True

    def restore_problems(self, campaign: Campaign, problems: Sequence[SuiteProblem]) -> None:
        """Give a campaign that is here other texts of some of its problems, and the place of its suite.

        Raises:
            UsageError: there is no such campaign, or it has other settings.
        """
        with self._db.write() as session:
            row = session.get(CampaignRow, campaign.name)
            if row is None:
                raise self._unknown(campaign.name)
            there = _campaign(row).model_copy(update={"suite": campaign.suite})
            self._refuse_another(campaign, there)
            row.body = there.model_dump_json()
            for problem in problems:
                place = (ProblemRow.campaign == campaign.name, ProblemRow.id == problem.id)
                session.execute(update(ProblemRow).where(*place).values(body=problem.model_dump_json()))

    @staticmethod
    def _refuse_another(campaign: Campaign, there: Campaign) -> None:
        for name in Campaign.model_fields:
            if name not in ("state", "created", "code") and getattr(campaign, name) != getattr(there, name):
                what = "problems" if name == "problems_hash" else name
                raise UsageError(
                    f"campaign {campaign.name!r} exists with other {what}: choose another --name, or "
                    f"continue it with `agentforge campaign resume {campaign.name}`"
                )

    @staticmethod
    def _unknown(name: str) -> UsageError:
        return UsageError(f"there is no campaign {name!r}: `agentforge campaign list` shows them all")

    def get_campaign(self, name: str) -> Campaign:
        """The campaign of this name.

        Raises:
            UsageError: there is none.
        """
        with self._db.read() as session:
            row = session.get(CampaignRow, name)
            if row is None:
                raise self._unknown(name)
            return _campaign(row)

    def list_campaigns(self) -> tuple[Campaign, ...]:
        """All campaigns, the newest first."""
        with self._db.read() as session:
            rows = session.scalars(select(CampaignRow).order_by(CampaignRow.created.desc(), CampaignRow.name))
            return tuple(map(_campaign, rows))

    def delete_campaign(self, name: str) -> None:
        """Forget a campaign with its items; its runs stay.

        Raises:
            UsageError: there is none.
            BusyError: a worker has one of its items.
        """
        with self._db.write() as session:
            session.delete(self._idle(session, name))

    def check_idle(self, name: str) -> None:
        """Raise what `delete_campaign` would raise."""
        with self._db.read() as session:
            self._idle(session, name)

    def _idle(self, session: Session, name: str) -> CampaignRow:
        row = session.get(CampaignRow, name)
        if row is None:
            raise self._unknown(name)
        running = (ItemRow.campaign == name, ItemRow.state == ItemState.RUNNING.value)
        worker = session.scalar(select(ItemRow.worker).where(*running).limit(1))
        if worker is not None:
            raise BusyError(f"worker {worker} has an item of campaign {name}: end the worker first")
        return row

    def set_campaign_state(self, name: str, state: CampaignState) -> None:
        """Let workers take items, or not."""
        with self._db.write() as session:
            session.execute(update(CampaignRow).where(CampaignRow.name == name).values(state=state.value))

    def campaign_problems(self, name: str) -> tuple[SuiteProblem, ...]:
        """The campaign's problems in their order."""
        query = select(ProblemRow.body).where(ProblemRow.campaign == name).order_by(ProblemRow.position)
        with self._db.read() as session:
            return tuple(SuiteProblem.model_validate_json(body) for body in session.scalars(query))

    def campaign_problem(self, name: str, problem: str) -> SuiteProblem:
        """One of its problems."""
        query = select(ProblemRow.body).where(ProblemRow.campaign == name, ProblemRow.id == problem)
        with self._db.read() as session:
            return SuiteProblem.model_validate_json(session.scalars(query).one())

    def campaign_items(self, name: str) -> tuple[CampaignItem, ...]:
        """Its items in the order of problems and arms."""
        query = select(ItemRow).where(ItemRow.campaign == name).order_by(ItemRow.id)
        with self._db.read() as session:
            return tuple(map(item_of, session.scalars(query)))

    def scope_of(self, run: str) -> Scope | None:
        """What a run may know: None for all, unless it is an item's of a campaign with several arms."""
        with self._db.read() as session:
            found = select(ItemRow.campaign, ItemRow.arm).where(ItemRow.run == run).limit(1)
            item = session.execute(found).first()
            row = session.get(CampaignRow, item.campaign) if item else None
            if item is None or row is None or len((campaign := _campaign(row)).arms) < 2:
                return None
            return Scope(item.campaign, item.arm, campaign.created)

    def campaign_progress(self, name: str) -> Progress:
        """Its items by state."""
        query = (
            select(ItemRow.state, func.count(), func.sum(ItemRow.seconds))
            .where(ItemRow.campaign == name)
            .group_by(ItemRow.state)
        )
        with self._db.read() as session:
            found = {ItemState(state): (count, spent) for state, count, spent in session.execute(query)}
        ended = [found[s] for s in (ItemState.DONE, ItemState.FAILED) if s in found]
        count = sum(number for number, _ in ended)
        return Progress(
            {state: found.get(state, (0, 0.0))[0] for state in ItemState},
            sum(spent for _, spent in ended) / count if count else 0.0,
        )

    def campaign_runs(self, name: str) -> dict[int, list[str]]:
        """All runs of its items, by item: those that have results, and those that were given up."""
        found = defaultdict[int, list[str]](list)
        with self._db.read() as session:
            for row in session.execute(item_runs(name)):
                found[row.id].append(row.run)
        return found

    def campaign_device_seconds(self, name: str) -> dict[int, float]:
        """Wall seconds of all verdicts of its items' runs, by item: builds, checks and timing."""
        with self._db.read() as session:
            on_server = session.get_bind().dialect.name == "postgresql"
            body = (cast if on_server else type_coerce)(EvaluationRow.body, JSON)
            runs = item_runs(name).subquery()
            query = (
                select(runs.c.id, func.sum(body["seconds"].as_float()))
                .join(EvaluationRow, runs.c.run == EvaluationRow.run)
                .group_by(runs.c.id)
            )
            return {item: float(seconds or 0.0) for item, seconds in session.execute(query)}

    def campaign_spending(self, name: str) -> tuple[int, float]:
        """Tokens, and dollars as far as they are known, of all calls of its items' runs."""
        with self._db.read() as session:
            on_server = session.get_bind().dialect.name == "postgresql"
            body = (cast if on_server else type_coerce)(CallRow.body, JSON)
            runs = select(item_runs(name).subquery().c.run)
            query = select(
                func.sum(body["tokens_in"].as_integer() + body["tokens_out"].as_integer()),
                func.sum(body["dollars"].as_float()),
            ).where(CallRow.run.in_(runs))
            tokens, dollars = session.execute(query).one()
            return int(tokens or 0), float(dollars or 0.0)

    def campaign_words(self, name: str) -> dict[int, tuple[str, float]]:
        """What the worker of each running item said last, and seconds since its last heartbeat, by item."""
        with self._db.read() as session:
            silent_s = clock_of(session.get_bind().dialect.name) - TryRow.beat
            query = (
                select(ItemRow.id, TryRow.words, silent_s)
                .join(TryRow, (TryRow.item == ItemRow.id) & (TryRow.number == ItemRow.tries))
                .where(ItemRow.campaign == name, ItemRow.state == ItemState.RUNNING.value)
            )
            return {item: (words, float(silent)) for item, words, silent in session.execute(query)}

    def campaign_tries(self, name: str) -> tuple[Try, ...]:
        """All tries of its items, by item and number."""
        query = (
            select(TryRow)
            .join(ItemRow, ItemRow.id == TryRow.item)
            .where(ItemRow.campaign == name)
            .order_by(TryRow.item, TryRow.number)
        )
        with self._db.read() as session:
            return tuple(
                Try(
                    item=r.item,
                    number=r.number,
                    worker=r.worker,
                    outcome=TryOutcome(r.outcome) if r.outcome else None,
                    words=r.words,
                    ended=r.ended,
                )
                for r in session.scalars(query)
            )


def _campaign(row: CampaignRow) -> Campaign:
    return Campaign.model_validate_json(row.body).model_copy(update={"state": CampaignState(row.state)})


def item_of(row: ItemRow) -> CampaignItem:
    """The noun of a row."""
    fields = {name: getattr(row, name) for name in CampaignItem.model_fields}
    return CampaignItem.model_validate(fields)

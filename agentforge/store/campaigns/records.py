"""Campaigns with their problems and items, as they are read and created."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import product

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from agentforge.schema import (
    Arm,
    BusyError,
    Campaign,
    CampaignItem,
    CampaignState,
    ItemState,
    SuiteProblem,
    TryOutcome,
    UsageError,
    content_hash,
)

from .._engine import Database, add_once
from ..knowledge.scope import Scope, item_runs
from ..tables import CampaignRow, EvaluationRow, ItemRow, ProblemRow, TryRow
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
    begun: float
    """Seconds since 1970; 0 if it was in another database."""
    ended: float | None
    """Seconds since 1970; None while it goes on, or if it was in another database."""
    seconds: float
    """Wall time; 0 while it goes on."""

    @property
    def host(self) -> str:
        """The worker's machine."""
        return self.worker.rpartition(":")[0]

    @property
    def key(self) -> str:
        """The same in each database that knows the try, once it has ended."""
        if self.number < 0:
            return self.worker.rpartition(":")[2]
        return content_hash([self.item, self.number, self.worker, self.begun], length=16)


ELSEWHERE = "elsewhere"
"""Machine of a worker that another database knows."""


class CampaignRecords:
    """Campaigns by name."""

    _db: Database
    options = ""
    """What a command that a message names needs after it to find this database."""

    def create_campaign(self, campaign: Campaign, problems: Sequence[SuiteProblem]) -> bool:
        """Keep a new campaign with an item for each problem and arm, in this order.

        Returns:
            False if the very same campaign is there already: then nothing changes, except that a kind of
            device takes the place of `auto`.

        Raises:
            UsageError: its name belongs to a campaign with other settings. `auto` fits each kind of device.
        """
        with self._db.write() as session:
            made = CampaignRow(
                name=campaign.name,
                state=campaign.state.value,
                created=campaign.created.astimezone(UTC),
                body=campaign.model_dump_json(),
            )
            add_once(session, made)  # several machines may begin it at once
            row = session.get(CampaignRow, campaign.name)
            if row is not None and row is not made:
                there = _campaign(row)
                self._refuse_another(campaign, there)
                if there.device == "auto" and campaign.device != "auto":
                    row.body = there.model_copy(update={"device": campaign.device}).model_dump_json()
                return False
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

    def _refuse_another(self, campaign: Campaign, there: Campaign) -> None:
        for name in Campaign.model_fields:
            own, other = getattr(campaign, name), getattr(there, name)
            if name == "device" and "auto" in (own, other):
                continue
            if name not in ("state", "created", "code") and own != other:
                what = name
                if name == "problems_hash":
                    what = "problems, or was made by an older version of AgentForge"
                raise UsageError(
                    f"campaign {campaign.name!r} exists with other {what}: choose another --name, or "
                    f"continue it with `agentforge campaign resume {campaign.name}{self.options}`"
                )

    def _unknown(self, name: str) -> UsageError:
        command = f"agentforge campaign list{self.options}"
        return UsageError(f"there is no campaign {name!r}: `{command}` shows them all")

    def find_campaign(self, name: str) -> Campaign | None:
        """The campaign of this name; None if there is none."""
        with self._db.read() as session:
            row = session.get(CampaignRow, name)
            return None if row is None else _campaign(row)

    def get_campaign(self, name: str) -> Campaign:
        """The campaign of this name.

        Raises:
            UsageError: there is none.
        """
        if (found := self.find_campaign(name)) is None:
            raise self._unknown(name)
        return found

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

    def fix_device(self, name: str, kind: str) -> Campaign:
        """The campaign, on this kind of device if none was fixed before."""
        return self._with_changes(name, lambda there: {"device": kind} if there.device == "auto" else {})

    def set_campaign_limit(self, name: str, seconds: float) -> Campaign:
        """The campaign with another limit of an item's wall time."""
        return self._with_changes(name, lambda _: {"limit_s": seconds})

    def set_campaign_arms(self, name: str, arms: Sequence[Arm]) -> Campaign:
        """The campaign with arms of the same names."""
        return self._with_changes(name, lambda _: {"arms": tuple(arms)})

    def _with_changes(self, name: str, change: Callable[[Campaign], Mapping[str, object]]) -> Campaign:
        """The campaign with other values of its fields."""
        with self._db.write() as session:
            row = session.get(CampaignRow, name, with_for_update=True)
            if row is None:
                raise self._unknown(name)
            found = _campaign(row).model_copy(update=dict(change(_campaign(row))))
            row.body = found.model_dump_json()
            return found

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
            runs = item_runs(name).subquery()
            query = (
                select(runs.c.id, func.sum(EvaluationRow.seconds))
                .join(EvaluationRow, runs.c.run == EvaluationRow.run)
                .group_by(runs.c.id)
            )
            return {item: float(seconds or 0.0) for item, seconds in session.execute(query)}

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
            return tuple(map(try_of, session.scalars(query)))


def _campaign(row: CampaignRow) -> Campaign:
    return Campaign.model_validate_json(row.body).model_copy(update={"state": CampaignState(row.state)})


def try_of(row: TryRow) -> Try:
    """The noun of a row."""
    return Try(
        item=row.item,
        number=row.number,
        worker=row.worker,
        outcome=TryOutcome(row.outcome) if row.outcome else None,
        words=row.words,
        begun=row.begun,
        ended=row.ended if row.number > 0 else None,
        seconds=max(0.0, row.ended - row.begun) if row.ended is not None else 0.0,
    )


def item_of(row: ItemRow) -> CampaignItem:
    """The noun of a row."""
    fields = {name: getattr(row, name) for name in CampaignItem.model_fields}
    return CampaignItem.model_validate(fields)

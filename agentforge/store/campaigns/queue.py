"""The queue: a worker takes an item under a lease, renews the lease, and ends its try.

An item, its worker and the number of the try are a fencing token: a worker without the lease changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from socket import gethostname
from typing import Any, cast

from sqlalchemy import Connection, CursorResult, Table, Update, case, null, select, update
from sqlalchemy.orm import Session

from agentforge.schema import CampaignItem, ItemState, TryOutcome

from .._engine import Database
from .._locks import process_start
from ..tables import ItemRow, TryRow
from .records import ELSEWHERE, item_of, try_of
from .statements import (
    Done,
    at_once,
    behind_the_others,
    clock_of,
    done_try,
    ended_try,
    held,
    item_of_try,
    new_try,
    of_try,
    taken_items,
)

_ITEMS, _TRIES = cast("Table", ItemRow.__table__), cast("Table", TryRow.__table__)

MOST_WORDS = 2000
"""Most characters of last words."""


class CampaignQueue:
    """What workers do with items. Each call is one transaction."""

    _db: Database

    def take_item(self, campaign: str, worker: str, lease_s: float) -> CampaignItem | None:
        """The next waiting item, now leased to `worker`; None if none waits or the campaign is paused.

        Concurrent workers get different items: PostgreSQL skips rows that another transaction has locked,
        and SQLite has one writer at a time.
        """
        return next(iter(self.exchange_items((), campaign, worker, lease_s)[1]), None)

    def exchange_items(
        self, done: Sequence[Done], campaign: str, worker: str, lease_s: float, most: int = 1
    ) -> tuple[frozenset[int], tuple[CampaignItem, ...]]:
        """End the tries of items that are done, and take others, which costs a server one commit.

        Args:
            most: items to take. It gets fewer if few wait, and only one at a time that a worker died at.

        Returns:
            Identifiers of the items whose end was accepted, and the worker's new items in their order.
        """
        host = f"{worker.rpartition(':')[0]}:"
        taking = {"b_campaign": campaign, "b_worker": worker, "b_lease": lease_s, "b_most": most}
        taking |= {"b_host": host, "b_width": len(host)}
        with self._db.statements() as connection:
            if connection.dialect.name == "postgresql":
                accepted, rows = _exchange_at_once(connection, done, taking)
            else:
                accepted, rows = _exchange(connection, done, taking)
        if not rows and most > 1:
            more = self.exchange_items((), campaign, worker, lease_s)[1]
            return accepted, more
        return accepted, tuple(
            CampaignItem.model_validate(dict(zip(CampaignItem.model_fields, row, strict=False)))
            for row in rows
        )

    def beat_item(self, item: CampaignItem, lease_s: float, words: str) -> bool:
        """Renew the lease and keep the worker's words; False if the item belongs to another try now."""
        with self._db.write() as session:
            now = clock_of(session.get_bind().dialect.name)
            if not self._change(session, item, lease_until=now + lease_s):
                return False
            change = update(_TRIES).where(*of_try()).values(beat=now, words=_kept(words))
            session.execute(change, item_of_try(item))
            return True

    def attach_run(self, item: CampaignItem, run: str) -> bool:
        """Say which run the try works on; False if the item belongs to another try now."""
        with self._db.write() as session:
            if not self._change(session, item, run=run):
                return False
            session.execute(update(_TRIES).where(*of_try()).values(run=run), item_of_try(item))
            return True

    def detach_run(self, item: CampaignItem) -> bool:
        """Let the item's next try begin anew; the cost of its run still counts. False as for `attach_run`."""
        with self._db.write() as session:
            return self._change(session, item, run=None)

    def attach_result(self, item: CampaignItem, run: str) -> bool:
        """Let a run have the item's result in the place of an earlier one; False as for `attach_run`."""
        with self._db.write() as session:
            return self._change(session, item, result_run=run)

    def end_item(self, item: CampaignItem, outcome: TryOutcome, words: str = "") -> bool:
        """End the try; False, and no change, if the item belongs to another try now.

        Args:
            words: why it failed, or how its process died.
        """
        with self._db.write() as session:
            said = {"b_words": _kept(words)} if words else {}
            return _both(session.connection(), outcome, item_of_try(item) | said)

    def reap_items(self, campaign: str, worker: str = "") -> int:
        """Take items from workers whose lease has run out; returns how many.

        Other workers of this machine whose processes have not ended keep theirs: they were stopped, or the
        database was away.

        Args:
            worker: the caller, if it is one.
        """
        with self._db.write() as session:
            connection = session.connection()
            query = (
                select(ItemRow)
                .where(
                    ItemRow.campaign == campaign,
                    ItemRow.state == ItemState.RUNNING.value,
                    ItemRow.lease_until < clock_of(connection.dialect.name),
                )
                .with_for_update(skip_locked=True)
            )
            reaped = 0
            for row in session.scalars(query).all():
                item = item_of_try(item_of(row))
                last = session.scalars(select(TryRow).where(*of_try()), item).one()
                if row.worker != worker and _lives_here(row.worker):
                    continue
                reaped += 1
                words = f"worker {row.worker} died; it said last: {last.words or 'nothing'}"
                _both(connection, TryOutcome.LOST, item | {"b_words": words, "b_beat": last.beat})
            return reaped

    def retry_items(self, campaign: str, states: tuple[ItemState, ...]) -> int:
        """Let workers take failed or quarantined items again; returns how many.

        They begin anew, except that an item which was out of time continues its run. The result of an
        earlier visit stays: see `attach_result`.
        """
        last = (TryRow.item == ItemRow.id, TryRow.number == ItemRow.tries)
        out_of_time = select(TryRow.item).where(*last, TryRow.outcome == TryOutcome.OUT_OF_TIME.value)
        run = case((out_of_time.exists(), ItemRow.run), else_=null())
        change = (
            update(ItemRow)
            .where(ItemRow.campaign == campaign, ItemRow.state.in_([state.value for state in states]))
            .values(state=ItemState.WAITING.value, lost=0, run=run, reason="")
        )
        with self._db.write() as session:
            return _changed(session, change)

    def put_back_items(self, items: Sequence[CampaignItem]) -> int:
        """Let workers take items again whose failure may be the machine's fault; returns how many.

        They go behind the others, keep their runs and count as never lost.

        Args:
            items: as the worker had them in the tries that failed.
        """
        over = ItemRow.state.in_([ItemState.FAILED.value, ItemState.QUARANTINED.value])
        again = {"state": ItemState.WAITING.value, "lost": 0, "position": behind_the_others()}
        doubted = {"outcome": TryOutcome.DOUBTED.value}
        count = 0
        with self._db.write() as session:
            for item in items:
                same = (ItemRow.id == item.id, ItemRow.tries == item.tries, over)
                if _changed(session, update(_ITEMS).where(*same).values(again)):
                    session.execute(update(_TRIES).where(*of_try()).values(doubted), item_of_try(item))
                    count += 1
        return count

    def extend_items(self, campaign: str, visits: Mapping[int, int]) -> int:
        """Let workers spend the campaign's budget again on items that are done; returns on how many.

        Args:
            visits: how many more, by item.
        """
        with self._db.write() as session:
            return sum(
                _changed(
                    session,
                    update(ItemRow)
                    .where(
                        ItemRow.campaign == campaign,
                        ItemRow.id == item,
                        ItemRow.state == ItemState.DONE.value,
                    )
                    .values(state=ItemState.WAITING.value, visits=ItemRow.visits + more, lost=0),
                )
                for item, more in visits.items()
            )

    def restore_item(self, item: CampaignItem, known: CampaignItem) -> bool:
        """Give an item the state and result of the same item elsewhere, not its seconds: see `count_seconds`.

        Args:
            item: as it was read; no worker has it.

        Returns:
            False, and no change, if it has another state now.
        """
        taken = known.model_dump(
            mode="json", include={"state", "worker", "visits", "run", "result_run", "reason"}
        )
        same = (ItemRow.id == item.id, ItemRow.state == item.state.value)
        with self._db.write() as session:
            return _changed(session, update(ItemRow).where(*same).values(**taken)) == 1

    def count_run(self, item: int, run: str) -> None:
        """Let a run that worked on the item in another database count among its runs. Idempotent."""
        with self._db.write() as session:
            tries = session.execute(select(TryRow.number, TryRow.run).where(TryRow.item == item)).all()
            if run not in {known for _, known in tries}:
                numbers = [number for number, _ in tries]
                session.add(_elsewhere(item, numbers, "0", run=run))

    def count_seconds(self, item: int, spent: Mapping[str, float]) -> None:
        """Let the wall time of tries in another database count among its seconds. Idempotent.

        Args:
            spent: seconds by `Try.key`; those that are known here already change nothing.
        """
        with self._db.write() as session:
            rows = session.scalars(select(TryRow).where(TryRow.item == item)).all()
            known, numbers = {try_of(row).key for row in rows}, [row.number for row in rows]
            new = {key: seconds for key, seconds in spent.items() if key not in known}
            for key, seconds in new.items():
                session.add(_elsewhere(item, numbers, key, ended=seconds))
            if new:
                more = ItemRow.seconds + sum(new.values())
                session.execute(update(ItemRow).where(ItemRow.id == item).values(seconds=more))

    @staticmethod
    def _change(session: Session, item: CampaignItem, **values: object) -> bool:
        change = update(_ITEMS).where(*held()).values(**values)
        return _changed(session, change, item_of_try(item)) == 1


def _elsewhere(item: int, numbers: list[int], key: str, **fields: object) -> TryRow:
    """A try in another database, whose clock is not known here; `numbers` are those of the item's tries."""
    numbers.append(min([0, *numbers]) - 1)  # its own tries count from 1
    return TryRow(
        item=item,
        number=numbers[-1],
        worker=f"{ELSEWHERE}:{key}",
        begun=0.0,
        beat=0.0,
        outcome=TryOutcome.RELEASED.value,
        words="",
        **fields,
    )


def _exchange_at_once(
    connection: Connection, done: Sequence[Done], taking: dict[str, Any]
) -> tuple[frozenset[int], list[Sequence[Any]]]:
    """See `CampaignQueue.exchange_items`, in one statement."""
    ends = {
        "b_item": [end.item.id for end in done],
        "b_number": [end.item.tries for end in done],
        "b_begun_s": [end.begun_s for end in done],
        "b_ended_s": [end.ended_s for end in done],
    }
    found = connection.execute(at_once(several=taking["b_most"] > 1), taking | ends).all()
    return frozenset(found[0][0] or ()), [row[1:] for row in found if row[1] is not None]


def _exchange(
    connection: Connection, done: Sequence[Done], taking: dict[str, Any]
) -> tuple[frozenset[int], list[Sequence[Any]]]:
    """See `CampaignQueue.exchange_items`."""
    dialect, accepted, (item, own) = connection.dialect.name, set[int](), done_try()
    query = taken_items(dialect, several=taking["b_most"] > 1)
    rows = sorted(connection.execute(query, taking), key=lambda row: int(row[-1]))
    for row in rows:
        connection.execute(new_try(dialect), {"b_taken": row[0]})
    for end in done:
        values = item_of_try(end.item) | {"b_begun_s": end.begun_s, "b_ended_s": end.ended_s}
        if connection.execute(item, values).first() is not None:
            connection.execute(own, values)
            accepted.add(end.item.id)
    return frozenset(accepted), list(rows)


def _both(connection: Connection, outcome: TryOutcome, values: dict[str, Any]) -> bool:
    """End a try by two statements; whether the item was still its own."""
    dialect, words, died = connection.dialect.name, "b_words" in values, "b_beat" in values
    ended = ended_try(dialect, outcome, words=words, died=died)
    if connection.execute(ended.item, values).first() is None:
        return False
    connection.execute(ended.own, values)
    return True


def worker_name(pid: int) -> str:
    """The name of a worker that is a process of this machine: `host:pid.start`, the start in ticks."""
    return f"{gethostname()[:200]}:{pid}.{process_start(pid)}"


def _lives_here(worker: str) -> bool:
    """Whether it is a process of this machine that has not ended. A later one with its number is another.

    An earlier version gives no start: then any process with the number counts.
    """
    pid, _, start = worker.rpartition(":")[2].partition(".")
    if not pid.isdecimal() or process_start(int(pid)) is None:
        return False
    name = worker_name(int(pid))
    return worker == (name if start else name.rpartition(".")[0])


def _kept(words: str) -> str:
    """What a text column takes: no lone surrogates, and PostgreSQL refuses the character U+0000."""
    return words.encode(errors="backslashreplace").decode().replace("\0", "")[:MOST_WORDS]


def _changed(session: Session, change: Update, values: dict[str, Any] | None = None) -> int:
    """Rows that a statement changed."""
    return cast("CursorResult[object]", session.execute(change, values)).rowcount

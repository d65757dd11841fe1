"""The queue: a worker takes an item under a lease, renews the lease, and ends its try.

An item, its worker and the number of the try are a fencing token: a worker without the lease changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import Connection, CursorResult, Table, Update, select, update
from sqlalchemy.orm import Session

from agentforge.schema import CampaignItem, ItemState, TryOutcome

from .._engine import Database
from ..tables import ItemRow, TryRow
from .records import item_of
from .statements import at_once, clock_of, ended_try, held, item_of_try, new_try, of_try, taken_item

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
        return self._exchange(None, campaign, worker, lease_s)[1]

    def exchange_item(
        self, item: CampaignItem, outcome: TryOutcome, words: str, lease_s: float
    ) -> tuple[bool, CampaignItem | None]:
        """`end_item` and `take_item` at once, which costs a server one commit.

        Returns:
            Whether the try's end was accepted, and the next item for the same worker.
        """
        return self._exchange((item, outcome, _kept(words)), item.campaign, item.worker, lease_s)

    def _exchange(
        self, end: tuple[CampaignItem, TryOutcome, str] | None, campaign: str, worker: str, lease_s: float
    ) -> tuple[bool, CampaignItem | None]:
        host = f"{worker.rpartition(':')[0]}:"
        taking = {"b_campaign": campaign, "b_worker": worker, "b_lease": lease_s}
        taking |= {"b_host": host, "b_width": len(host)}
        outcome, words, ending = None, "", dict[str, Any]()
        if end:
            item, outcome, words = end
            ending = item_of_try(item) | ({"b_words": words} if words else {})
        with self._db.statements() as connection:
            dialect = connection.dialect.name
            if dialect == "postgresql":
                query = at_once(dialect, outcome, words=bool(words))
                accepted, *found = connection.execute(query, taking | ending).one()
            else:  # the next item is another one than that which ends, as on a server
                found = list(connection.execute(taken_item(dialect), taking).first() or [None])
                accepted = outcome and _both(connection, outcome, ending)
                if found[0] is not None:
                    connection.execute(new_try(dialect), {"b_taken": found[0]})
        fields = dict(zip(CampaignItem.model_fields, found, strict=False))
        return bool(accepted), CampaignItem.model_validate(fields) if found[0] is not None else None

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
            return self._change(session, item, run=run)

    def end_item(self, item: CampaignItem, outcome: TryOutcome, words: str = "") -> bool:
        """End the try; False, and no change, if the item belongs to another try now.

        Args:
            words: why it failed, or how its process died.
        """
        with self._db.write() as session:
            said = {"b_words": _kept(words)} if words else {}
            return _both(session.connection(), outcome, item_of_try(item) | said)

    def reap_items(self, campaign: str) -> int:
        """Take items from workers whose lease has run out; returns how many."""
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
            rows = session.scalars(query).all()
            for row in rows:
                item = item_of_try(item_of(row))
                last = session.scalars(select(TryRow).where(*of_try()), item).one()
                words = f"worker {row.worker} died; it said last: {last.words or 'nothing'}"
                _both(connection, TryOutcome.LOST, item | {"b_words": words, "b_beat": last.beat})
            return len(rows)

    def retry_items(self, campaign: str, states: tuple[ItemState, ...]) -> int:
        """Let workers take failed or quarantined items again, from the beginning; returns how many."""
        change = (
            update(ItemRow)
            .where(ItemRow.campaign == campaign, ItemRow.state.in_([state.value for state in states]))
            .values(state=ItemState.WAITING.value, lost=0, run=None, reason="", seconds=0.0)
        )
        with self._db.write() as session:
            return _changed(session, change)

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

    def restore_item(self, item: int, known: CampaignItem) -> bool:
        """Give a waiting item the state and result of the same item elsewhere; False if it does not wait."""
        taken = known.model_dump(
            mode="json", include={"state", "worker", "visits", "run", "reason", "seconds"}
        )
        waits = ItemRow.state == ItemState.WAITING.value
        with self._db.write() as session:
            return _changed(session, update(ItemRow).where(ItemRow.id == item, waits).values(**taken)) == 1

    @staticmethod
    def _change(session: Session, item: CampaignItem, **values: object) -> bool:
        change = update(_ITEMS).where(*held()).values(**values)
        return _changed(session, change, item_of_try(item)) == 1


def _both(connection: Connection, outcome: TryOutcome, values: dict[str, Any]) -> bool:
    """End a try by two statements; whether the item was still its own."""
    dialect, words, died = connection.dialect.name, "b_words" in values, "b_beat" in values
    ended = ended_try(dialect, outcome, words=words, died=died)
    if connection.execute(ended.item, values).first() is None:
        return False
    connection.execute(ended.own, values)
    return True


def _kept(words: str) -> str:
    """What a text column takes: PostgreSQL refuses the character U+0000."""
    return words.replace("\0", "")[:MOST_WORDS]


def _changed(session: Session, change: Update, values: dict[str, Any] | None = None) -> int:
    """Rows that a statement changed."""
    return cast("CursorResult[object]", session.execute(change, values)).rowcount

"""The statements of the queue. PostgreSQL carries out an exchange of items as one, with one commit.

They are built once: to build one takes longer than to carry it out. Their parameters begin with `b_`.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Float,
    FromClause,
    Insert,
    Integer,
    Select,
    String,
    Table,
    Update,
    bindparam,
    case,
    exists,
    false,
    func,
    insert,
    literal,
    null,
    select,
    true,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from agentforge.schema import CampaignItem, CampaignState, ItemState, TryOutcome

from ..tables import CampaignRow, ItemRow, TryRow

Seconds = ColumnElement[float]

_ITEMS, _TRIES = cast("Table", ItemRow.__table__), cast("Table", TryRow.__table__)

LOST_TRIES = 3
"""Tries whose worker died before an item is quarantined."""

_AFTER = {
    TryOutcome.DONE: ItemState.DONE,
    TryOutcome.FAILED: ItemState.FAILED,
    TryOutcome.UNSUPPORTED: ItemState.UNSUPPORTED,
    TryOutcome.LOST: ItemState.WAITING,
    TryOutcome.RELEASED: ItemState.WAITING,
}


class Ended(NamedTuple):
    """What ends a try."""

    item: ReturningUpdate[tuple[int]]
    """Returns the item's identifier if the try had it; else nothing is to be changed."""
    own: Update
    """The try's row."""


def clock_of(dialect: str) -> Seconds:
    """Seconds since 1970 by one clock for all workers: the server's, if there is a server."""
    if dialect == "postgresql":
        return func.extract("epoch", func.clock_timestamp()).cast(Float(53))
    return bindparam(None, callable_=time.time, type_=Float(53), unique=True)


def item_of_try(item: CampaignItem) -> dict[str, Any]:
    """Parameters of `held` and `of_try`."""
    return {"b_item": item.id, "b_worker": item.worker, "b_tries": item.tries}


def held() -> tuple[ColumnElement[bool], ...]:
    """The item, if this very try still has it."""
    return (
        ItemRow.id == bindparam("b_item", type_=Integer),
        ItemRow.state == ItemState.RUNNING.value,
        ItemRow.worker == bindparam("b_worker", type_=String),
        ItemRow.tries == bindparam("b_tries", type_=Integer),
    )


def of_try() -> tuple[ColumnElement[bool], ...]:
    """The row of a try."""
    return (
        TryRow.item == bindparam("b_item", type_=Integer),
        TryRow.number == bindparam("b_tries", type_=Integer),
    )


@lru_cache(maxsize=64)
def ended_try(dialect: str, outcome: TryOutcome, *, words: bool, died: bool = False) -> Ended:
    """The end of a try.

    Parameters: those of `item_of_try`, `b_words` if there are words, `b_beat` for the end of one that died.
    """
    ended = bindparam("b_beat", type_=Float(53)) if died else clock_of(dialect)
    begun = select(TryRow.begun).where(*of_try()).scalar_subquery()
    said = bindparam("b_words", type_=String)
    change: dict[str, Any] = {"seconds": ItemRow.seconds + (ended - begun), "state": _AFTER[outcome].value}
    if outcome is TryOutcome.LOST:
        last = ItemRow.lost + 1 >= LOST_TRIES
        change["lost"] = ItemRow.lost + 1
        change["state"] = case((last, ItemState.QUARANTINED.value), else_=change["state"])
    if words or outcome is TryOutcome.DONE:
        change["reason"] = said if words else ""
    more = {"words": said} if words else {}
    return Ended(
        update(_ITEMS).where(*held()).values(change).returning(ItemRow.id),
        update(_TRIES).where(*of_try()).values(ended=ended, outcome=outcome.value, **more),
    )


@lru_cache
def taken_item(dialect: str) -> ReturningUpdate[Any]:
    """The next item of an open campaign for a worker; it returns the fields of `CampaignItem`.

    Parameters: `b_campaign`, `b_worker`, `b_lease` in seconds, and `b_host` with its length `b_width`: how
    the names of all workers of this machine begin.
    """
    campaign = bindparam("b_campaign", type_=String)
    is_open = select(CampaignRow.name).where(
        CampaignRow.name == campaign, CampaignRow.state == CampaignState.OPEN.value
    )
    waiting = (
        select(ItemRow.id)
        .where(ItemRow.campaign == campaign, ItemRow.state == ItemState.WAITING.value, is_open.exists())
        .order_by(ItemRow.position)
        .limit(1)
        .with_for_update(skip_locked=True, of=ItemRow)
    )
    # A run's lock and its checkpoints are on the machine where it began.
    host = func.substr(ItemRow.worker, 1, bindparam("b_width", type_=Integer))
    here = host == bindparam("b_host", type_=String)
    return (
        update(_ITEMS)
        .where(ItemRow.id == waiting.scalar_subquery())
        .values(
            state=ItemState.RUNNING.value,
            worker=bindparam("b_worker", type_=String),
            tries=ItemRow.tries + 1,
            lease_until=clock_of(dialect) + bindparam("b_lease", type_=Float(53)),
            run=case((here, ItemRow.run), else_=null()),
        )
        .returning(*(getattr(ItemRow, name) for name in CampaignItem.model_fields))
    )


def _new_try(item: FromClause, now: Seconds) -> Insert:
    names = ["item", "number", "worker", "begun", "beat", "words"]
    row = select(item.c.id, item.c.tries, item.c.worker, now, now, literal(""))
    return insert(_TRIES).from_select(names, row)


@lru_cache
def new_try(dialect: str) -> Insert:
    """The try of an item that was taken. Parameter: `b_taken`, its identifier."""
    item = select(_ITEMS).where(_ITEMS.c.id == bindparam("b_taken", type_=Integer)).subquery()
    return _new_try(item, clock_of(dialect))


@lru_cache(maxsize=64)
def at_once(dialect: str, outcome: TryOutcome | None, *, words: bool) -> Select[Any]:
    """`ended_try` if there is an outcome, `taken_item` and `new_try` in one query.

    Returns one row: whether the end was accepted, then the fields of the item, or nulls if none waits.
    """
    item = taken_item(dialect).cte("taken")
    accepted, more = false().label("accepted"), [_new_try(item, clock_of(dialect)).cte("tried")]
    if outcome is not None:
        ended = ended_try(dialect, outcome, words=words)
        own = ended.item.cte("ended")
        accepted = exists(select(own.c.id)).label("accepted")
        more.append(ended.own.where(exists(select(own.c.id))).cte("ended_try"))
    one = select(accepted).subquery("one")
    return select(one.c.accepted, *item.c).select_from(one.outerjoin(item, true())).add_cte(*more)

"""The statements of the queue. PostgreSQL carries out an exchange of items as one, with one commit.

They are built once: to build one takes longer than to carry it out. Their parameters begin with `b_`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Float,
    FromClause,
    Insert,
    Integer,
    ScalarSelect,
    Select,
    String,
    Table,
    Update,
    any_,
    bindparam,
    case,
    column,
    distinct,
    func,
    insert,
    literal,
    null,
    select,
    true,
    update,
)
from sqlalchemy.orm import aliased
from sqlalchemy.sql.dml import ReturningUpdate
from sqlalchemy.types import TypeEngine

from agentforge.schema import CampaignItem, CampaignState, ItemState, TryOutcome

from ..tables import CampaignRow, ItemRow, TryRow

Seconds = ColumnElement[float]

_ITEMS, _TRIES = cast("Table", ItemRow.__table__), cast("Table", TryRow.__table__)

LOST_TRIES = 3
"""Tries whose worker died before an item is quarantined."""

_AFTER = {
    TryOutcome.DONE: ItemState.DONE,
    TryOutcome.FAILED: ItemState.FAILED,
    TryOutcome.OUT_OF_TIME: ItemState.FAILED,
    TryOutcome.UNSUPPORTED: ItemState.UNSUPPORTED,
    TryOutcome.LOST: ItemState.WAITING,
    TryOutcome.RELEASED: ItemState.WAITING,
    TryOutcome.REFUSED: ItemState.WAITING,
    TryOutcome.POSTPONED: ItemState.WAITING,
}
_GIVEN_BACK = (TryOutcome.RELEASED, TryOutcome.REFUSED, TryOutcome.POSTPONED)
"""Ends after which the item goes behind the others, if there is a reason."""


_RESULT_RUN = func.coalesce(_ITEMS.c.result_run, _ITEMS.c.run)
"""The run that has the result of an item which is done; an earlier one, unless `attach_result` was called."""


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


def behind_the_others() -> ScalarSelect[int]:
    """The position behind all items of an item's campaign."""
    others = aliased(ItemRow)
    behind = select(func.max(others.position) + 1).where(others.campaign == ItemRow.campaign)
    return behind.scalar_subquery()


@lru_cache(maxsize=64)
def ended_try(dialect: str, outcome: TryOutcome, *, words: bool, died: bool = False) -> Ended:
    """The end of a try. An item that is given back for a reason goes behind the others.

    Parameters: those of `item_of_try`, `b_words` if there are words, `b_beat` for the end of one that died.
    """
    ended = bindparam("b_beat", type_=Float(53)) if died else clock_of(dialect)
    begun = select(TryRow.begun).where(*of_try()).scalar_subquery()
    said = bindparam("b_words", type_=String)
    greatest = func.greatest if dialect == "postgresql" else func.max
    spent = greatest(0.0, ended - begun)  # the clock of a machine may be set back
    change: dict[str, Any] = {"seconds": ItemRow.seconds + spent, "state": _AFTER[outcome].value}
    if outcome is TryOutcome.LOST:
        last = ItemRow.lost + 1 >= LOST_TRIES
        change["lost"] = ItemRow.lost + 1
        change["state"] = case((last, ItemState.QUARANTINED.value), else_=change["state"])
    if words and outcome in _GIVEN_BACK:
        change["position"] = behind_the_others()
    if outcome is TryOutcome.DONE:
        change["result_run"] = _RESULT_RUN
    if words or outcome is TryOutcome.DONE:
        change["reason"] = said if words else ""
    more = {"words": said} if words else {}
    return Ended(
        update(_ITEMS).where(*held()).values(change).returning(ItemRow.id),
        update(_TRIES).where(*of_try()).values(ended=ended, outcome=outcome.value, **more),
    )


@lru_cache
def taken_items(dialect: str, *, several: bool) -> ReturningUpdate[Any]:
    """Waiting items of an open campaign for a worker; it returns the fields of `CampaignItem`.

    Several are taken only if no worker died at any of them, so that an item which kills its worker takes none
    with it. Near the campaign's end they become fewer: at most half of a worker's even share.

    Parameters: `b_campaign`, `b_worker`, `b_lease` in seconds, `b_most` items, and `b_host` with its length
    `b_width`: how the names of all workers of this machine begin.
    """
    campaign, most = bindparam("b_campaign", type_=String), bindparam("b_most", type_=Integer)
    is_open = select(CampaignRow.name).where(
        CampaignRow.name == campaign, CampaignRow.state == CampaignState.OPEN.value
    )
    waits = (ItemRow.campaign == campaign, ItemRow.state == ItemState.WAITING.value)
    waiting = (
        select(ItemRow.id)
        .where(*waits, is_open.exists(), *((ItemRow.lost == 0,) if several else ()))
        .order_by(ItemRow.position)
        .limit(_share(dialect, waits, most) if several else most)
        .with_for_update(skip_locked=True, of=ItemRow)
    )
    # PostgreSQL evaluates an array once; it may evaluate a subquery of IN more often, and take too many.
    chosen = (
        _ITEMS.c.id == any_(func.array(waiting.scalar_subquery()))
        if dialect == "postgresql"
        else (_ITEMS.c.id.in_(waiting))
    )
    # A run's lock and its checkpoints are on the machine where it began.
    host = func.substr(ItemRow.worker, 1, bindparam("b_width", type_=Integer))
    here = host == bindparam("b_host", type_=String)
    return (
        update(_ITEMS)
        .where(chosen)
        .values(
            state=ItemState.RUNNING.value,
            worker=bindparam("b_worker", type_=String),
            tries=ItemRow.tries + 1,
            lease_until=clock_of(dialect) + bindparam("b_lease", type_=Float(53)),
            run=case((here, ItemRow.run), else_=null()),
        )
        .returning(*(getattr(ItemRow, name) for name in CampaignItem.model_fields), ItemRow.position)
    )


def _share(dialect: str, waits: Sequence[ColumnElement[bool]], most: ColumnElement[int]) -> ScalarSelect[int]:
    """At most that many, and at most half of what waits for each worker."""
    runs = (waits[0], ItemRow.state == ItemState.RUNNING.value)
    halves = (
        select((2 * (func.count(distinct(ItemRow.worker)) + 1)).label("number")).where(*runs).cte("halves")
    )
    number = select(halves.c.number).scalar_subquery()
    some = select(ItemRow.id).where(*waits).limit(number * most).subquery()  # no need to count them all
    count = select(func.count()).select_from(some).scalar_subquery()
    least = func.least if dialect == "postgresql" else func.min
    return select(least(most, 1 + count // number)).scalar_subquery()


def _new_tries(item: FromClause, now: Seconds) -> Insert:
    names = ["item", "number", "worker", "begun", "beat", "words"]
    row = select(item.c.id, item.c.tries, item.c.worker, now, now, literal(""))
    return insert(_TRIES).from_select(names, row)


@lru_cache
def new_try(dialect: str) -> Insert:
    """The try of an item that was taken. Parameter: `b_taken`, its identifier."""
    item = select(_ITEMS).where(_ITEMS.c.id == bindparam("b_taken", type_=Integer)).subquery()
    return _new_tries(item, clock_of(dialect))


class Done(NamedTuple):
    """A try that reached its end, in seconds after its item was taken."""

    item: CampaignItem
    begun_s: float
    ended_s: float


def _done_values(begun: Seconds, ended: Seconds) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the rows of the item and of its try get, by seconds after the item was taken."""
    seconds = _ITEMS.c.seconds + (ended - begun)
    item = {"state": ItemState.DONE.value, "result_run": _RESULT_RUN, "reason": "", "seconds": seconds}
    own = {"outcome": TryOutcome.DONE.value, "begun": _TRIES.c.begun + begun, "ended": _TRIES.c.begun + ended}
    return item, own


@lru_cache
def done_try() -> Ended:
    """The end of a try that succeeded. Parameters: `b_begun_s`, `b_ended_s` and those of `item_of_try`."""
    begun, ended = (bindparam(f"b_{name}_s", type_=Float(53)) for name in ("begun", "ended"))
    item, own = _done_values(begun, ended)
    return Ended(
        update(_ITEMS).where(*held()).values(item).returning(ItemRow.id),
        update(_TRIES).where(*of_try()).values(own),
    )


@lru_cache
def at_once(*, several: bool) -> Select[Any]:
    """`done_try` of some items, `taken_items` and `new_try` in one query, on PostgreSQL.

    Parameters: those of `taken_items`; of the items that are done, the arrays `b_item`, `b_number` of
    the try, `b_begun_s` and `b_ended_s`.

    Returns at least one row: the identifiers of the items whose end was accepted (null if there is none),
    then the fields of an item that was taken, or nulls.
    """
    dialect = "postgresql"
    kinds: dict[str, TypeEngine[Any]] = {
        "item": Integer(),
        "number": Integer(),
        "begun_s": Float(53),
        "ended_s": Float(53),
    }
    arrays = (bindparam(f"b_{name}", type_=ARRAY(kind)) for name, kind in kinds.items())
    columns = (column(name, kind) for name, kind in kinds.items())
    given = func.unnest(*arrays).table_valued(*columns, name="given").render_derived().alias("given")
    ended = (
        update(_ITEMS)
        .where(
            _ITEMS.c.id == given.c.item,
            _ITEMS.c.tries == given.c.number,
            _ITEMS.c.state == ItemState.RUNNING.value,
            _ITEMS.c.worker == bindparam("b_worker", type_=String),
        )
        .values(_done_values(given.c.begun_s, given.c.ended_s)[0])
        .returning(*given.c)
        .cte("ended")
    )
    own = (
        update(_TRIES)
        .where(_TRIES.c.item == ended.c.item, _TRIES.c.number == ended.c.number)
        .values(_done_values(ended.c.begun_s, ended.c.ended_s)[1])
        .cte("ended_tries")
    )
    taken = taken_items(dialect, several=several).cte("taken")
    accepted = select(func.array_agg(ended.c.item).label("accepted")).subquery("accepted")
    return (
        select(accepted.c.accepted, *taken.c)
        .select_from(accepted.outerjoin(taken, true()))
        .order_by(taken.c.position)
        .add_cte(own, _new_tries(taken, clock_of(dialect)).cte("tried"))
    )

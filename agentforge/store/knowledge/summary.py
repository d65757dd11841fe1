"""Statistics of the outcomes in a table of their own, so that a look-up reads no outcome.

Each writer of outcomes locks their contexts first (`lock`), and sums up the changed pairs of strategy and
context again before the transaction ends (`refresh`). So the table agrees with the outcomes whenever a
transaction begins, and writers of one context wait for each other. A pair is summed up from its outcomes, and
nothing is added to the old figures: a verdict that proves an earlier one, and a removal, need no rule.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError

from agentforge.schema import Context, EvaluationStatus, Evidence, Outcome

from ..tables import ContextRow, OutcomeRow, SummaryRow

PASSED = EvaluationStatus.PASSED.value
CLAIMED = "claimed"
"""Evidence in the table of an outcome from another database, whatever it says of itself."""
MOST_CLAIMED = math.log(1.5)
"""A claimed log speedup counts as at most this much, up or down."""
CLAIM = OutcomeRow.evidence == CLAIMED
_PROOF = and_(OutcomeRow.status == PASSED, OutcomeRow.evidence == Evidence.VERIFIED.value)
VERIFIED = and_(_PROOF, OutcomeRow.log_speedup.is_not(None))
NO_FAILURE = [PASSED, *(status.value for status in EvaluationStatus if status.undecided)]
"""Statuses that count as no failure."""
_FAILED = and_(OutcomeRow.status.not_in(NO_FAILURE), ~CLAIM)
_DISCOURAGING = or_(
    OutcomeRow.evidence == Evidence.SUSPICIOUS.value,
    OutcomeRow.log_speedup.is_(None),
    OutcomeRow.log_speedup <= 0,
)
_PAIR = (OutcomeRow.strategy, OutcomeRow.context)
_APART = (OutcomeRow.after, OutcomeRow.generator, OutcomeRow.parameters)
_PART = 1000
"""Identifiers in one statement."""
_KEY = ("apart", "strategy", "context", "after", "generator", "parameters")


def parts(identifiers: Sequence[str]) -> Iterator[Sequence[str]]:
    """Few enough at a time for one statement."""
    return (identifiers[i : i + _PART] for i in range(0, len(identifiers), _PART))


def lock(connection: Connection, contexts: Mapping[str, Context | None]) -> None:
    """Keep other writers out of contexts until the transaction ends. New ones are added.

    The order of the hashes prevents a deadlock. SQLite has one writer at a time anyway.

    Args:
        contexts: by hash; None for one that is known.
    """
    for key, context in sorted(contexts.items(), key=lambda item: item[0]):
        row = select(ContextRow.hash).where(ContextRow.hash == key).with_for_update()
        if connection.scalar(row) is None and context is not None:
            new = insert(ContextRow).values(
                hash=key, tried=False, claimed=False, body=context.model_dump_json()
            )
            try:
                with connection.begin_nested():
                    connection.execute(new)
            except IntegrityError:  # another writer has just added it
                connection.scalar(row)


def refresh(connection: Connection, pairs: Iterable[tuple[str, str]]) -> None:
    """Sum up the outcomes of pairs of strategy and context again; their contexts are locked."""
    of_strategy: dict[str, set[str]] = defaultdict(set)
    for strategy, context in pairs:
        of_strategy[strategy].add(context)
    for strategy, contexts in of_strategy.items():
        for part in parts(sorted(contexts)):
            _sum_up(connection, {"contexts": part, "strategy": strategy})
    _mark(connection, set[str]().union(*of_strategy.values()))


def rebuild(connection: Connection) -> int:
    """Sum up all outcomes again; returns how many rows were wrong, missing or superfluous."""
    unknown = OutcomeRow.context.not_in(select(ContextRow.hash))
    samples = select(func.min(OutcomeRow.id)).where(unknown).group_by(OutcomeRow.context)
    bodies = connection.scalars(select(OutcomeRow.body).where(OutcomeRow.id.in_(samples)))
    new = {context.hash: context for context in (Outcome.model_validate_json(b).context for b in bodies)}
    contexts = {**dict.fromkeys(connection.scalars(select(ContextRow.hash))), **new}
    lock(connection, contexts)
    before = _content(connection)
    for part in parts(sorted(contexts)):
        _sum_up(connection, {"contexts": part})
    _mark(connection, contexts)
    after = _content(connection)
    return sum(not _agree(before.get(key), after.get(key)) for key in before.keys() | after.keys())


def _sum_up(connection: Connection, chosen: Mapping[str, str | Sequence[str]]) -> None:
    """Replace the rows of some contexts, or those of one strategy in them."""
    for statement in _replacement(*chosen):
        connection.execute(statement, chosen)


def _mark(connection: Connection, contexts: Iterable[str]) -> None:
    """Say which contexts were tried, and which have claims."""
    here = SummaryRow.context == ContextRow.hash
    for part in parts(sorted(contexts)):
        flags = {
            "tried": exists().where(here, SummaryRow.newest.is_not(None)),
            "claimed": exists().where(here, SummaryRow.claims > 0),
        }
        connection.execute(update(ContextRow).where(ContextRow.hash.in_(part)).values(flags))


@cache
def _replacement(*names: str) -> tuple[Executable, ...]:
    """Statements that delete and insert rows, with parameters of these names. To make them takes long."""

    def chosen(table: type[OutcomeRow | SummaryRow]) -> list[ColumnElement[bool]]:
        some: list[ColumnElement[bool]] = [table.context.in_(bindparam("contexts", expanding=True))]
        return [*some, table.strategy == bindparam("strategy")] if "strategy" in names else some

    found: list[Executable] = [delete(SummaryRow).where(*chosen(SummaryRow))]
    for apart in (False, True):
        new = statistics(chosen(OutcomeRow), apart=apart)
        found.append(insert(SummaryRow).from_select([column.name for column in new.selected_columns], new))
    return tuple(found)


def statistics(scope: Iterable[ColumnElement[bool]], *, apart: bool) -> Select[Any]:
    """Rows of the summary.

    Args:
        scope: which outcomes; with one of a pair, all of it.
        apart: a row for each strategy that was built upon, generator and setting of the parameters, with what
            the strategy itself gained; else one for each pair, with whole log speedups and the mean credit.
    """
    by = (*_PAIR, *(_APART if apart else ()))
    o = _contributions(OutcomeRow.credit if apart else OutcomeRow.log_speedup, scope, by)
    key = [o[column.key] for column in by]
    best = [o[name] for name in ("best_solution", "best_log_speedup", "best_parameters")]
    return (
        select(
            *key,
            (true() if apart else false()).label("apart"),
            func.count(o["log"]).label("n"),
            func.coalesce(func.avg(o["log"]), 0.0).label("mean"),
            func.coalesce(func.sum(o["log"] * o["log"]), 0.0).label("squares"),
            func.count(o["failed"]).label("failures"),
            func.count(o["unproven"].distinct()).label("unproven"),
            func.count(o["discouraging"].distinct()).label("discouraging"),
            func.count(o["measured"]).label("measured"),
            func.coalesce(func.avg(o["measured"]), 0.0).label("mean_measured"),
            func.count(o["claim"]).label("claims"),
            func.coalesce(func.avg(o["claim"]), 0.0).label("mean_claimed"),
            func.max(o["newest"]).label("newest"),
            *(() if apart else (func.max(column).label(column.name) for column in best)),
            *(() if apart else (func.avg(o["credit"]).label("mean_credit"),)),
        )
        .group_by(*key)
        .order_by(o["context"])
    )


def _contributions(
    value: ColumnElement[Any] | Any, scope: Iterable[ColumnElement[bool]], by: Iterable[Any]
) -> Any:
    """Columns of what each outcome adds to the statistics of its strategy in its context; NULL is nothing.

    If an unproven solution was measured several times, its newest time counts.

    Args:
        by: columns that are equal within a row of the statistics.
    """
    o = OutcomeRow
    proven = func.max(case((_PROOF, 1), else_=0)).over(partition_by=(*_PAIR, o.solution))
    unproven = and_(o.status == PASSED, o.evidence != Evidence.VERIFIED.value, ~CLAIM, proven == 0)
    fastest = (case((VERIFIED, o.log_speedup)).desc().nulls_last(), o.time, o.id)
    best = and_(VERIFIED, func.row_number().over(partition_by=_PAIR, order_by=fastest) == 1)
    said = o.log_speedup
    clipped = case((said > MOST_CLAIMED, MOST_CLAIMED), (said < -MOST_CLAIMED, -MOST_CLAIMED), else_=said)
    timed = and_(o.status == PASSED, o.evidence == Evidence.UNVERIFIED.value, value.is_not(None))
    latest = func.row_number().over(partition_by=(*by, o.solution, timed), order_by=(o.time.desc(), o.id))
    found = select(
        *_PAIR,
        *_APART,
        case((VERIFIED, value)).label("log"),
        case((VERIFIED, o.credit)).label("credit"),
        case((_FAILED, 1)).label("failed"),
        case((unproven, o.solution)).label("unproven"),
        case((and_(unproven, _DISCOURAGING), o.solution)).label("discouraging"),
        case((and_(timed, proven == 0, latest == 1), value)).label("measured"),
        case((and_(CLAIM, o.status == PASSED), clipped)).label("claim"),
        case((~CLAIM, o.time)).label("newest"),
        case((best, o.solution)).label("best_solution"),
        case((best, o.log_speedup)).label("best_log_speedup"),
        case((best, o.parameters)).label("best_parameters"),
    )
    return found.where(*scope).subquery().c


def _content(connection: Connection) -> dict[Any, Row[Any] | tuple[bool, bool]]:
    """The summary's rows by their keys, and the contexts' flags by hash."""
    table = SummaryRow.__table__
    columns = [table.c[name] for name in _KEY] + [c for c in table.c if c.name not in ("id", *_KEY)]
    found: dict[Any, Any] = {}
    for row in connection.execute(select(*columns)):
        key = tuple(row[: len(_KEY)])
        found[key if key not in found else (key, len(found))] = row[len(_KEY) :]
    for context in connection.execute(select(ContextRow.hash, ContextRow.tried, ContextRow.claimed)):
        found[context.hash] = (context.tried, context.claimed)
    return found


def _agree(first: Sequence[Any] | None, second: Sequence[Any] | None) -> bool:
    """Up to rounding: a sum depends on the order in which the database adds."""
    if first is None or second is None:
        return False
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) if isinstance(a, float) and b is not None else a == b
        for a, b in zip(first, second, strict=True)
    )

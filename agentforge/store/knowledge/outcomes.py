"""What happened when strategies were tried: append-only outcomes, and their statistics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, delete, false, func, or_, select
from sqlalchemy.orm import Session, aliased

from agentforge.schema import Context, EvaluationStatus, Evidence, Outcome, Strategy, StrategyRecord

from .._engine import Database, add_all_once, add_once
from ..tables import ContextRow, OutcomeRow, SolutionRow, StrategyRow, SummaryRow
from . import summary
from .scope import Scope
from .summary import CLAIM, CLAIMED, NO_FAILURE, VERIFIED


@dataclass(frozen=True)
class OutcomeTotals:
    """Counts over all outcomes."""

    outcomes: int
    faster: int
    """Verified with a speedup above 1."""
    cheating: int
    claimed: int
    """From other databases, and in none of the other counts but `outcomes`."""


@dataclass(frozen=True)
class VerifiedSolution:
    """A solution with its newest verified outcome."""

    solution: str
    """Hash."""
    definition: str
    """Hash of the problem that it solves."""
    context: Context
    strategy: str
    log_speedup: float


@dataclass(frozen=True)
class KnownContexts:
    """Contexts of outcomes."""

    tried: tuple[Context, ...]
    """With outcomes of this database."""
    claimed: tuple[Context, ...]
    """With claims that count, of other databases; at most `MOST_CLAIMED_CONTEXTS`."""


class Experience(NamedTuple):
    """Statistics of what a strategy itself gained. A tuple and no noun, because a look-up reads hundreds."""

    context: Context
    n: int = 0
    """This and what follows as in `StrategyRecord`."""
    mean_log_speedup: float = 0.0
    var_log_speedup: float = 0.0
    failures: int = 0
    unproven: int = 0
    discouraging: int = 0
    claims: int = 0
    mean_claimed_log_speedup: float = 0.0
    measured: int = 0
    mean_measured_log_speedup: float = 0.0
    newest: datetime | None = None
    after: str = ""
    """Strategy that the outcomes were built on."""
    generator: str = ""
    """This and the next one as in `Outcome`."""
    parameters: Mapping[str, int | float | str | bool] = MappingProxyType({})


_CONTEXTS = select(ContextRow.body).order_by(ContextRow.hash)
_SHARED = Experience._fields[:-3]
"""Fields of a `StrategyRecord` too."""
MOST_CLAIMED_CONTEXTS = 1000
"""Contexts of claims that a look-up compares, the first by their hashes: a file cannot make it slow."""


class Outcomes:
    """Outcomes, their statistics, and strategies that no card describes."""

    _db: Database
    _scope: Scope | None = None
    """What look-ups may use; None for everything."""

    def record_outcomes(self, outcomes: Iterable[Outcome]) -> int:
        """Keep outcomes, all or none; returns how many were new. Idempotent by `Outcome.id`."""
        with self._db.write() as session:
            return add_outcomes(session, outcomes)

    def outcomes(self, strategy: str | None = None, *, claims: bool = True) -> tuple[Outcome, ...]:
        """All outcomes, or those of one strategy, oldest first.

        Args:
            claims: also those of other databases.
        """
        query = select(OutcomeRow.body).order_by(OutcomeRow.time, OutcomeRow.id)
        if strategy is not None:
            query = query.where(OutcomeRow.strategy == strategy)
        if not claims:
            query = query.where(~CLAIM)
        with self._db.read() as session:
            return tuple(Outcome.model_validate_json(body) for body in session.scalars(query))

    def verified_solutions(self, op_type: str, before: datetime) -> tuple[VerifiedSolution, ...]:
        """Solutions that runs wrote here and whose outcomes before a time were verified, by their hash.

        Those that had failed or were suspicious before that time are left out. Claims and later outcomes
        change nothing.
        """
        other = aliased(OutcomeRow)

        def known(row: type[OutcomeRow]) -> ColumnElement[bool]:
            early = row.time < before.astimezone(UTC)
            return early if self._scope is None else and_(early, self._scope.has_outcome(row))

        doubted = (
            select(other.id)
            .where(
                known(other),
                other.solution == OutcomeRow.solution,
                other.evidence != CLAIMED,
                or_(
                    other.evidence == Evidence.SUSPICIOUS.value,
                    other.status.not_in(NO_FAILURE),
                ),
            )
            .correlate(OutcomeRow)
            .exists()
        )
        query = (
            select(
                OutcomeRow.solution,
                SolutionRow.definition,
                ContextRow.body,
                OutcomeRow.strategy,
                OutcomeRow.log_speedup,
            )
            .join(SolutionRow, SolutionRow.hash == OutcomeRow.solution)
            .join(ContextRow, ContextRow.hash == OutcomeRow.context)
            .where(VERIFIED, OutcomeRow.op_type == op_type, OutcomeRow.run.is_not(None), ~doubted)
            .where(known(OutcomeRow))
            .order_by(OutcomeRow.time, OutcomeRow.id)
        )
        found: dict[str, VerifiedSolution] = {}
        with self._db.read() as session:
            for solution, definition, context, strategy, gain in session.execute(query):
                assert gain is not None  # as it is verified
                found[solution] = VerifiedSolution(solution, definition, _context(context), strategy, gain)
        return tuple(found[solution] for solution in sorted(found))

    def outcome_totals(self) -> OutcomeTotals:
        """Counts over all outcomes."""
        cheating = OutcomeRow.status == EvaluationStatus.CHEATING.value
        query = select(
            func.count(),
            func.count(case((and_(VERIFIED, OutcomeRow.log_speedup > 0), OutcomeRow.id))),
            func.count(case((and_(cheating, ~CLAIM), OutcomeRow.id))),
            func.count(case((CLAIM, OutcomeRow.id))),
        ).select_from(OutcomeRow)
        with self._db.read() as session:
            return OutcomeTotals(*session.execute(query).one())

    def contexts(self) -> KnownContexts:
        """All contexts with experience, in the order of their hashes."""
        scope = self._scope
        tried = _CONTEXTS.where(ContextRow.tried if scope is None else scope.contexts)
        claimed = _CONTEXTS.where(ContextRow.claimed if scope is None else false())
        few = claimed.limit(MOST_CLAIMED_CONTEXTS)
        with self._db.read() as session:
            return KnownContexts(*(tuple(map(_context, session.scalars(query))) for query in (tried, few)))

    def strategy_records(
        self, contexts: Sequence[Context] | None = None, strategies: Iterable[str] | None = None
    ) -> dict[str, tuple[StrategyRecord, ...]]:
        """Statistics by strategy, one record for each context in which it was tried.

        Args:
            contexts: only these, at most some hundred.
            strategies: only these.
        """
        found: dict[str, list[StrategyRecord]] = {}
        for row, context in self._summaries(contexts, strategies, apart=False):
            shared = zip(_SHARED, _experience(row, context), strict=False)
            *_, best, log_speedup, parameters, credit = row
            record = StrategyRecord(
                **dict(shared),
                best_solution=best,
                best_log_speedup=log_speedup,
                best_parameters=_parameters(parameters or "{}"),
                mean_credit=credit,
            )
            found.setdefault(row[0], []).append(record)
        return {strategy: tuple(some) for strategy, some in found.items()}

    def experience(
        self, contexts: Sequence[Context] | None = None, strategies: Iterable[str] | None = None
    ) -> dict[str, tuple[Experience, ...]]:
        """Statistics of what strategies themselves gained here, without the best solutions.

        One for each context, strategy that was built upon, generator and setting of the parameters, unless
        there are only claims. Arguments as for `strategy_records`.
        """
        found: dict[str, list[Experience]] = {}
        for row, context in self._summaries(contexts, strategies, apart=True):
            found.setdefault(row[0], []).append(_experience(row, context))
        return {strategy: tuple(some) for strategy, some in found.items()}

    def _summaries(
        self, contexts: Sequence[Context] | None, strategies: Iterable[str] | None, *, apart: bool
    ) -> list[tuple[Sequence[Any], Context]]:
        """Rows of the summary with their contexts."""
        known = {context.hash: context for context in contexts or ()}
        chosen: dict[str, Any] = {"apart": apart}
        if contexts is not None:
            chosen["contexts"] = [*known]
        if strategies is not None:
            chosen["strategies"] = [*strategies]
        if not all(chosen.get(name, True) for name in ("contexts", "strategies")):
            return []
        with self._db.read() as session:
            query = _select_summaries(*chosen)
            if self._scope is not None:
                query = self._scope.summaries(chosen, apart=apart)
            rows = session.execute(query, chosen).all()
            if contexts is None:  # read after the rows, because another writer may have added some
                bodies = session.execute(select(ContextRow.hash, ContextRow.body))
                known = {row.hash: _context(row.body) for row in bodies}
        return [(row, known[row[1]]) for row in rows]

    def rebuild_summary(self) -> int:
        """Sum up all outcomes again; returns how many statistics were wrong, missing or superfluous."""
        with self._db.write() as session:
            return summary.rebuild(session.connection())

    def remove_outcomes(self, identifiers: Iterable[str]) -> None:
        """Forget outcomes by `Outcome.id`."""
        chosen = [OutcomeRow.id.in_(part) for part in summary.parts([*identifiers])]
        with self._db.write() as session:
            connection, pairs = session.connection(), set[tuple[str, str]]()
            for some in chosen:
                rows = connection.execute(select(OutcomeRow.strategy, OutcomeRow.context).where(some))
                pairs |= {(row.strategy, row.context) for row in rows}
            summary.lock(connection, dict.fromkeys(context for _, context in pairs))
            for some in chosen:
                connection.execute(delete(OutcomeRow).where(some))
            summary.refresh(connection, pairs)

    def save_strategy(self, strategy: Strategy) -> None:
        """Keep a strategy that no card describes, bare of records and lessons. Idempotent.

        One of this database takes the place of one that another database claimed under its name. One that
        is kept already applies from now on to what either of both applies to.
        """
        with self._db.write() as session:
            add_strategy(session, strategy)

    def stored_strategies(self) -> tuple[Strategy, ...]:
        """Strategies kept by `save_strategy`, by identifier."""
        query = select(StrategyRow.body).order_by(StrategyRow.id)
        if self._scope is not None:
            query = query.where(self._scope.strategies)
        with self._db.read() as session:
            return tuple(Strategy.model_validate_json(body) for body in session.scalars(query))


def add_outcomes(session: Session, outcomes: Iterable[Outcome]) -> int:
    """Add those that are new; returns how many."""
    every = {outcome.id: outcome for outcome in outcomes}
    summary.lock(session.connection(), {o.context.hash: o.context for o in every.values()})
    fresh: list[Outcome] = []
    for part in summary.parts([*every]):
        known = set(session.scalars(select(OutcomeRow.id).where(OutcomeRow.id.in_(part))))
        new = [every[identifier] for identifier in part if identifier not in known]
        add_all_once(session, [*map(_row, new)])
        fresh += new
    summary.refresh(session.connection(), ((o.strategy, o.context.hash) for o in fresh))
    return len(fresh)


def add_strategy(session: Session, strategy: Strategy) -> bool:
    """See `Outcomes.save_strategy`; returns whether the database changed."""
    bare = strategy.model_copy(update={"records": (), "lessons": ()})
    known = session.get(StrategyRow, bare.id)
    if known is None:
        add_once(session, StrategyRow(id=bare.id, body=bare.model_dump_json()))
        return True
    kept = Strategy.model_validate_json(known.body)
    new = bare if kept.claimed else kept.model_copy(update=_where_either_applies(kept, bare))
    if bare.claimed or new == kept:
        return False
    known.body = new.model_dump_json()
    return True


def _where_either_applies(one: Strategy, other: Strategy) -> dict[str, tuple[str, ...]]:
    """Operator classes, languages and devices; empty if one of them applies to all."""
    pairs = {
        name: (getattr(one, name), getattr(other, name)) for name in ("op_types", "languages", "devices")
    }
    return {name: (*a, *(x for x in b if x not in a)) if a and b else () for name, (a, b) in pairs.items()}


def _row(outcome: Outcome) -> OutcomeRow:
    return OutcomeRow(
        id=outcome.id,
        strategy=outcome.strategy,
        context=outcome.context.hash,
        op_type=outcome.context.op_type,
        solution=outcome.solution,
        run=outcome.run,
        status=outcome.status.value,
        evidence=CLAIMED if outcome.claimed else outcome.evidence.value,
        log_speedup=outcome.log_speedup,
        credit=outcome.credit,
        after=outcome.after,
        generator=outcome.generator,
        parameters=json.dumps(outcome.parameters, sort_keys=True),
        time=outcome.time.astimezone(UTC),
        body=outcome.model_dump_json(),
    )


@lru_cache(maxsize=1 << 14)
def _context(body: str) -> Context:
    """Cached, because each look-up asks for all of them."""
    return Context.model_validate_json(body)


@lru_cache(maxsize=1 << 14)
def _parameters(body: str) -> dict[str, int | float | str | bool]:
    found: dict[str, int | float | str | bool] = json.loads(body)
    return found


@cache
def _select_summaries(*names: str) -> Select[Any]:
    """The statement that reads statistics, with parameters of these names. To make it takes long.

    Rows apart that sum up nothing but claims are left out: a file can bring any number of them.
    """
    table = SummaryRow.__table__.c
    query = select(*(column for column in table if column.name not in ("id", "apart")))
    query = query.where(table.apart == bindparam("apart"), or_(~table.apart, table.newest.is_not(None)))
    if "contexts" in names:
        query = query.where(table.context.in_(bindparam("contexts", expanding=True)))
    if "strategies" in names:
        query = query.where(table.strategy.in_(bindparam("strategies", expanding=True)))
    return query.order_by(table.strategy, table.context, table.after, table.generator, table.parameters)


def _experience(row: Sequence[Any], context: Context) -> Experience:
    (_, _, after, generator, parameters, n, mean, squares, failures, unproven, discouraging, measured,
     mean_measured, claims, claimed, newest, *_) = row  # fmt: skip
    variance = max(0.0, (squares - n * mean * mean) / (n - 1)) if n > 1 else 0.0
    if newest is not None and newest.tzinfo is None:
        newest = newest.replace(tzinfo=UTC)
    return Experience(
        context, n, mean, variance, failures, unproven, discouraging, claims, claimed, measured,
        mean_measured, newest, after or "", generator or "", _parameters(parameters or "{}"),
    )  # fmt: skip

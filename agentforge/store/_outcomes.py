"""What happened when strategies were tried: append-only outcomes, aggregated by query."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from agentforge.schema import Context, EvaluationStatus, Evidence, Outcome, Strategy, StrategyRecord

from ._engine import Database, add_all_once, add_once
from .tables import OutcomeRow, SolutionRow, StrategyRow

_PASSED = EvaluationStatus.PASSED.value
CLAIMED = "claimed"
"""Evidence in the table of an outcome from another database, whatever it says of itself."""
MOST_CLAIMED = math.log(1.5)
"""A claimed log speedup counts as at most this much, up or down."""
_PART = 1000
"""Identifiers in one statement."""
_CLAIM = OutcomeRow.evidence == CLAIMED
_VERIFIED = and_(
    OutcomeRow.status == _PASSED,
    OutcomeRow.evidence == Evidence.VERIFIED.value,
    OutcomeRow.log_speedup.is_not(None),
)
_DISCOURAGING = or_(
    OutcomeRow.evidence == Evidence.SUSPICIOUS.value,
    OutcomeRow.log_speedup.is_(None),
    OutcomeRow.log_speedup <= 0,
)
_FAILED = and_(OutcomeRow.status.not_in([_PASSED, EvaluationStatus.HARNESS_ERROR.value]), ~_CLAIM)


@cache
def _unproven_solution() -> ColumnElement[Any]:
    """The solution's hash if it passed here and no outcome of the strategy verified it; else NULL."""
    other = aliased(OutcomeRow)
    proven = (
        select(other.id)
        .where(
            other.strategy == OutcomeRow.strategy,
            other.context == OutcomeRow.context,
            other.solution == OutcomeRow.solution,
            other.status == _PASSED,
            other.evidence == Evidence.VERIFIED.value,
        )
        .correlate(OutcomeRow)
        .exists()
    )
    unverified = and_(OutcomeRow.status == _PASSED, OutcomeRow.evidence != Evidence.VERIFIED.value, ~_CLAIM)
    return case((and_(unverified, ~proven), OutcomeRow.solution))


def _ranked() -> Select[Any]:
    """Verified outcomes with their rank within strategy and context, the fastest first."""
    rank = func.row_number().over(
        partition_by=(OutcomeRow.strategy, OutcomeRow.context),
        order_by=(OutcomeRow.log_speedup.desc(), OutcomeRow.time, OutcomeRow.id),
    )
    return select(OutcomeRow.id, rank.label("rank")).where(_VERIFIED)


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


class Outcomes:
    """Outcomes, their statistics, and strategies that no card describes."""

    _db: Database

    def record_outcomes(self, outcomes: Iterable[Outcome]) -> int:
        """Keep outcomes, all or none; returns how many were new. Idempotent by `Outcome.id`."""
        with self._db.write() as session:
            return add_outcomes(session, outcomes)

    def outcomes(self, strategy: str | None = None) -> tuple[Outcome, ...]:
        """All outcomes, or those of one strategy, oldest first."""
        query = select(OutcomeRow.body).order_by(OutcomeRow.time, OutcomeRow.id)
        if strategy is not None:
            query = query.where(OutcomeRow.strategy == strategy)
        with self._db.read() as session:
            return tuple(Outcome.model_validate_json(body) for body in session.scalars(query))

    def verified_solutions(self, op_type: str, before: datetime) -> tuple[VerifiedSolution, ...]:
        """Solutions that runs wrote here and whose outcomes before a time were verified, by their hash.

        Solutions that came with a claim are left out, and so are those that ever failed or were suspicious.
        """
        other = aliased(OutcomeRow)
        doubted = (
            select(other.id)
            .where(
                other.solution == OutcomeRow.solution,
                or_(
                    other.evidence.in_([CLAIMED, Evidence.SUSPICIOUS.value]),
                    other.status.not_in([_PASSED, EvaluationStatus.HARNESS_ERROR.value]),
                ),
            )
            .correlate(OutcomeRow)
            .exists()
        )
        query = (
            select(OutcomeRow.body, SolutionRow.definition)
            .join(SolutionRow, SolutionRow.hash == OutcomeRow.solution)
            .where(_VERIFIED, OutcomeRow.op_type == op_type, OutcomeRow.run.is_not(None), ~doubted)
            .where(OutcomeRow.time < before.astimezone(UTC))
            .order_by(OutcomeRow.time, OutcomeRow.id)
        )
        found: dict[str, VerifiedSolution] = {}
        with self._db.read() as session:
            for body, definition in session.execute(query):
                o = Outcome.model_validate_json(body)
                found[o.solution] = VerifiedSolution(
                    o.solution, definition, o.context, o.strategy, o.log_speedup or 0.0
                )
        return tuple(found[solution] for solution in sorted(found))

    def outcome_totals(self) -> OutcomeTotals:
        """Counts over all outcomes."""
        cheating = OutcomeRow.status == EvaluationStatus.CHEATING.value
        query = select(
            func.count(),
            func.count(case((and_(_VERIFIED, OutcomeRow.log_speedup > 0), OutcomeRow.id))),
            func.count(case((and_(cheating, ~_CLAIM), OutcomeRow.id))),
            func.count(case((_CLAIM, OutcomeRow.id))),
        ).select_from(OutcomeRow)
        with self._db.read() as session:
            return OutcomeTotals(*session.execute(query).one())

    def strategy_records(self, op_type: str | None = None) -> dict[str, tuple[StrategyRecord, ...]]:
        """Statistics by strategy, one record for each context in which it was tried."""
        return self._records(OutcomeRow.log_speedup, op_type=op_type)

    def experience(self) -> dict[str, tuple[StrategyRecord, ...]]:
        """Statistics of what strategies themselves gained, without the best solutions.

        One record for each context, strategy that was built upon, generator and setting of the parameters.
        """
        apart = (OutcomeRow.after, OutcomeRow.generator, OutcomeRow.parameters)
        return self._records(OutcomeRow.credit, apart=apart, with_best=False)

    def _records(
        self,
        value: ColumnElement[Any] | InstrumentedAttribute[float | None],
        *,
        apart: Sequence[InstrumentedAttribute[Any]] = (),
        op_type: str | None = None,
        with_best: bool = True,
    ) -> dict[str, tuple[StrategyRecord, ...]]:
        """Statistics of a column by strategy, context and the columns `apart`."""
        log = case((_VERIFIED, value))
        unproven = _unproven_solution()
        steady = and_(OutcomeRow.evidence == Evidence.UNVERIFIED.value, unproven.is_not(None))
        measured = case((steady, value))
        said = OutcomeRow.log_speedup
        clipped = case((said > MOST_CLAIMED, MOST_CLAIMED), (said < -MOST_CLAIMED, -MOST_CLAIMED), else_=said)
        claim = case((and_(_CLAIM, OutcomeRow.status == _PASSED), clipped))
        query = select(
            OutcomeRow.strategy,
            OutcomeRow.context,
            func.count(log).label("n"),
            func.avg(log).label("mean"),
            func.sum(log * log).label("squares"),
            func.count(case((_FAILED, OutcomeRow.id))).label("failures"),
            func.count(unproven.distinct()).label("unproven"),
            func.count(case((_DISCOURAGING, unproven)).distinct()).label("discouraging"),
            func.count(measured).label("measured"),
            func.avg(measured).label("mean_measured"),
            func.count(claim).label("claims"),
            func.avg(claim).label("claimed"),
            func.min(OutcomeRow.id).label("sample"),
            func.max(case((~_CLAIM, OutcomeRow.time))).label("newest"),
            *apart,
        ).group_by(OutcomeRow.strategy, OutcomeRow.context, *apart)
        ranked = _ranked().subquery()
        best = select(OutcomeRow.body).join(ranked, ranked.c.id == OutcomeRow.id).where(ranked.c.rank == 1)
        if op_type is not None:
            query = query.where(OutcomeRow.op_type == op_type)
            best = best.where(OutcomeRow.op_type == op_type)
        records: dict[str, list[StrategyRecord]] = {}
        with self._db.read() as session:
            bodies = session.scalars(best) if with_best else ()
            fastest = {
                (outcome.strategy, outcome.context.hash): outcome
                for outcome in map(Outcome.model_validate_json, bodies)
            }
            order = (OutcomeRow.strategy, OutcomeRow.context, *apart)
            groups = session.execute(query.order_by(*order)).all()
            samples = [*{group.context: group.sample for group in groups}.values()]
            contexts = {
                outcome.context.hash: outcome.context
                for part in _parts(samples)
                for outcome in map(
                    Outcome.model_validate_json,
                    session.scalars(select(OutcomeRow.body).where(OutcomeRow.id.in_(part))),
                )
            }
        for group in groups:
            top = fastest.get((group.strategy, group.context))
            records.setdefault(group.strategy, []).append(_record(group, contexts[group.context], top))
        return {strategy: tuple(found) for strategy, found in records.items()}

    def remove_outcomes(self, identifiers: Iterable[str]) -> None:
        """Forget outcomes by `Outcome.id`."""
        with self._db.write() as session:
            for part in _parts([*identifiers]):
                session.execute(delete(OutcomeRow).where(OutcomeRow.id.in_(part)))

    def save_strategy(self, strategy: Strategy) -> None:
        """Keep a strategy that no card describes, bare of records and lessons. Idempotent by its id.

        One of this database takes the place of one that another database claimed under its name.
        """
        with self._db.write() as session:
            add_strategy(session, strategy)

    def stored_strategies(self) -> tuple[Strategy, ...]:
        """Strategies kept by `save_strategy`, by identifier."""
        query = select(StrategyRow.body).order_by(StrategyRow.id)
        with self._db.read() as session:
            return tuple(Strategy.model_validate_json(body) for body in session.scalars(query))


def add_outcomes(session: Session, outcomes: Iterable[Outcome]) -> int:
    """Add those that are new; returns how many."""
    rows, new = {outcome.id: _row(outcome) for outcome in outcomes}, 0
    for part in _parts([*rows]):
        known = set(session.scalars(select(OutcomeRow.id).where(OutcomeRow.id.in_(part))))
        fresh = [rows[identifier] for identifier in part if identifier not in known]
        add_all_once(session, fresh)
        new += len(fresh)
    return new


def _parts(identifiers: Sequence[str]) -> Iterator[Sequence[str]]:
    """Few enough at a time for one statement."""
    return (identifiers[i : i + _PART] for i in range(0, len(identifiers), _PART))


def add_strategy(session: Session, strategy: Strategy) -> bool:
    """See `Outcomes.save_strategy`; returns whether the database changed."""
    bare = strategy.model_copy(update={"records": (), "lessons": ()})
    known = session.get(StrategyRow, bare.id)
    if known is None:
        add_once(session, StrategyRow(id=bare.id, body=bare.model_dump_json()))
        return True
    if bare.claimed or not Strategy.model_validate_json(known.body).claimed:
        return False
    known.body = bare.model_dump_json()
    return True


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


def _record(group: Any, context: Any, top: Outcome | None) -> StrategyRecord:
    n, mean = int(group.n), float(group.mean or 0.0)
    spread = float(group.squares or 0.0) - n * mean * mean
    return StrategyRecord(
        context=context,
        n=n,
        mean_log_speedup=mean,
        var_log_speedup=max(0.0, spread / (n - 1)) if n > 1 else 0.0,
        failures=group.failures,
        unproven=group.unproven,
        discouraging=group.discouraging,
        best_solution=top.solution if top else None,
        best_log_speedup=top.log_speedup if top else None,
        best_parameters=top.parameters if top else {},
        claims=group.claims,
        mean_claimed_log_speedup=float(group.claimed or 0.0),
        after=getattr(group, "after", ""),
        generator=getattr(group, "generator", ""),
        parameters=json.loads(getattr(group, "parameters", None) or "{}"),
        measured=group.measured,
        mean_measured_log_speedup=float(group.mean_measured or 0.0),
        newest=group.newest.replace(tzinfo=UTC) if group.newest and not group.newest.tzinfo else group.newest,
    )

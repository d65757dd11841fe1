"""The summary says what the outcomes say, whatever was written, removed or written at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, update

from agentforge.schema import Context, EvaluationStatus, Evidence, Outcome
from agentforge.store import Store
from agentforge.store.knowledge.outcomes import _row
from agentforge.store.tables import ContextRow, OutcomeRow, SummaryRow
from tests.store import nouns
from tests.store.conftest import postgres_server, postgres_url, sqlite_url, store, url
from tests.store.test_store import outcome

from . import reference

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "store", "url"]


def agrees(store: Store) -> None:
    outcomes = store.outcomes()
    experience, expected = store.experience(), reference.experience(outcomes)
    assert experience.keys() == expected.keys()
    assert all(reference.same(experience[name], some) for name, some in expected.items())
    records, wanted = store.strategy_records(), reference.records(outcomes)
    assert records.keys() == wanted.keys()
    assert all(reference.same(records[name], some) for name, some in wanted.items())
    known = store.contexts()
    assert (set(known.tried), set(known.claimed)) == reference.known(outcomes)


@pytest.fixture(scope="module")
def memory() -> Iterator[Store]:
    with Store("sqlite:///:memory:") as opened:
        yield opened


@settings(max_examples=50, deadline=None)
@given(
    outcomes=reference.OUTCOMES,
    sizes=st.lists(st.integers(1, 9), max_size=6),
    removed=st.sets(st.integers(0, 39)),
)
def test_it_is_that_of_the_outcomes(
    memory: Store, outcomes: list[Outcome], sizes: list[int], removed: set[int]
) -> None:
    memory.remove_outcomes([outcome.id for outcome in memory.outcomes()])
    for size in sizes:
        memory.record_outcomes(outcomes[:size])
        outcomes = outcomes[size:]
    memory.add_knowledge([], [], outcomes)
    agrees(memory)
    memory.remove_outcomes(f"o{number:03d}" for number in removed)
    agrees(memory)
    assert memory.rebuild_summary() == 0


def test_a_verdict_changes_what_came_before_it(store: Store) -> None:
    quick = {"evidence": Evidence.UNVERIFIED, "solution": "s", "after": "tile", "log_gain": 0.1}
    store.record_outcomes([outcome(1, 0.4, **quick), outcome(2, 0.3, **quick)])
    agrees(store)
    store.record_outcomes([outcome(3, 0.2, solution="s")])
    agrees(store)
    store.remove_outcomes(["o3"])
    agrees(store)
    store.remove_outcomes(["o1", "o2"])
    assert store.experience() == store.strategy_records() == {}
    assert store.contexts().tried == ()


def test_a_solution_that_is_measured_again_counts_once(store: Store) -> None:
    quick = {"evidence": Evidence.UNVERIFIED, "parameters": {}}
    store.record_outcomes(outcome(n, n / 10, solution="again", **quick) for n in range(1, 6))
    store.record_outcomes([outcome(6, 0.1, solution="once", **quick)])
    for (record,) in (store.experience()["fuse"], store.strategy_records()["fuse"]):
        assert (record.unproven, record.measured) == (2, 2)
        assert record.mean_measured_log_speedup == pytest.approx((0.5 + 0.1) / 2), "the last time counts"


def test_what_says_nothing_about_a_solution_is_no_failure(store: Store) -> None:
    kinds = (EvaluationStatus.CRASHED, EvaluationStatus.UNSUPPORTED, EvaluationStatus.HARNESS_ERROR)
    store.record_outcomes(
        outcome(number, None, status=status, evidence=Evidence.UNVERIFIED)
        for number, status in enumerate(kinds)
    )
    (record,) = store.strategy_records()["fuse"]
    assert record.failures == 1
    agrees(store)


def test_it_is_repaired(store: Store) -> None:
    store.record_outcomes(outcome(i, i / 10, context=nouns.context(dtype=f"d{i % 2}")) for i in range(6))
    assert store.rebuild_summary() == 0
    with store._db.write() as session:
        connection = session.connection()
        connection.execute(insert(OutcomeRow), [_fields(outcome(9, 0.9, context=nouns.context(dtype="d9")))])
    assert store.rebuild_summary() == 3, "a row apart and one of the pair, and the context's flag"
    agrees(store)
    with store._db.write() as session:
        connection = session.connection()
        changed = connection.execute(update(SummaryRow).where(SummaryRow.n > 1).values(mean=7.0))
        connection.execute(delete(SummaryRow).where(SummaryRow.context == nouns.context(dtype="d9").hash))
        connection.execute(update(ContextRow).values(claimed=True))
    assert store.rebuild_summary() == changed.rowcount + 2 + 3
    agrees(store)


def _fields(one: Outcome) -> dict[str, object]:
    row = _row(one)
    return {column.name: getattr(row, column.name) for column in OutcomeRow.__table__.columns}


def test_two_processes_lose_no_count(url: str) -> None:
    Store(url).close()
    children = [multiprocessing.get_context("spawn").Process(target=_write, args=(url, i)) for i in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0]
    with Store(url) as store:
        (record,) = store.strategy_records([nouns.context()])["fuse"]
        assert record.n == 2 * 10
        agrees(store)
        assert store.rebuild_summary() == 0


def _write(url: str, child: int) -> None:
    """12 outcomes of one pair, of which 2 are removed again; and contexts that the other one adds too."""
    with Store(url) as store:
        for number in range(12):
            new = {"parameters": {"tile": number % 3}, "id": f"{child}-{number}"}
            others = [
                outcome(number, 0.1, **{**new, "id": f"{child}-{number}-{i}", "context": context})
                for i, context in enumerate(_contexts(number)[:: 1 - 2 * child])
            ]
            store.record_outcomes([*others, outcome(number, 0.1, **new)])
            if number % 6 == 5:
                store.remove_outcomes([f"{child}-{number}"])


def _contexts(number: int) -> list[Context]:
    return [nouns.context(dtype=f"d{i}") for i in (number, number + 1)]

"""A look-up reads the summary of the nearest contexts, and says what all outcomes say."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from agentforge.knowledge import KnowledgeBase
from agentforge.knowledge.ranking.similarity import NEAREST
from agentforge.knowledge.transfer import claim_of
from agentforge.schema import Context, EvaluationStatus, Outcome, StrategyRecord
from agentforge.store import Experience, Store
from agentforge.store.knowledge import outcomes as outcomes_module
from tests.cli.conftest import Run, home, run
from tests.store import nouns
from tests.store.knowledge import reference
from tests.store.test_store import outcome

__all__ = ["home", "run"]

NOW = nouns.NOW + timedelta(days=400)
ASKED = reference.CONTEXTS[0]


class Full(Store):
    """Computes everything from all outcomes."""

    def experience(
        self, contexts: Sequence[Context] | None = None, strategies: Iterable[str] | None = None
    ) -> dict[str, tuple[Experience, ...]]:
        return {name: tuple(found) for name, found in reference.experience(self.outcomes()).items()}

    def strategy_records(
        self, contexts: Sequence[Context] | None = None, strategies: Iterable[str] | None = None
    ) -> dict[str, tuple[StrategyRecord, ...]]:
        found = reference.records(self.outcomes())
        return {name: tuple(r for r in some if r.context in (contexts or ())) for name, some in found.items()}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, KnowledgeBase, KnowledgeBase]]:
    folder = tmp_path_factory.mktemp("lookup")
    for name, log in zip(reference.NAMES, (0.31, 0.2, 0.07), strict=True):
        head = f"id: {name}\ntitle: {name}\nsummary: s\nprior_log_speedup: {log}\n"
        (folder / f"{name}.md").write_text(
            f"---\n{head}parameters:\n  tile: [0, 1, 2]\n  stores: [auto, 'on']\n---\n"
        )
    url = f"sqlite:///{folder}/a.db"
    with Store(url) as store, Full(url) as full:
        summed, whole = (KnowledgeBase(one, [folder], clock=lambda: NOW) for one in (store, full))
        yield store, summed, whole


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    outcomes=reference.OUTCOMES,
    asked=st.sampled_from(reference.CONTEXTS),
    after=st.sampled_from(["", "fuse"]),
)
def test_the_answer_is_that_of_all_outcomes(
    bases: tuple[Store, KnowledgeBase, KnowledgeBase], outcomes: list[Outcome], asked: Context, after: str
) -> None:
    store, summed, whole = bases
    store.remove_outcomes([one.id for one in store.outcomes()])
    store.record_outcomes(outcomes)
    found, expected = (base.ranked(asked, after=after) for base in (summed, whole))
    assert [s.id for s, _ in found] == [s.id for s, _ in expected]
    for (strategy, belief), (other, full) in zip(found, expected, strict=True):
        assert astuple(belief) == pytest.approx(astuple(full), rel=1e-9, abs=1e-9)
        assert strategy.expected.keys() == other.expected.keys()
        for name, gains in strategy.expected.items():
            assert gains == pytest.approx(other.expected[name], abs=1e-9)
        assert reference.same(strategy.records, other.records)


def far(number: int) -> Context:
    return ASKED.model_copy(update={"op_type": "softmax", "intensity": 2 + number})


class Spying(Store):
    """Remembers which contexts were asked."""

    asked: Collection[Context] = ()

    def experience(
        self, contexts: Sequence[Context] | None = None, strategies: Iterable[str] | None = None
    ) -> dict[str, tuple[Experience, ...]]:
        self.asked = {*self.asked, *(contexts or ())}
        return super().experience(contexts, strategies)


def test_it_asks_the_nearest_contexts(bases: tuple[Store, KnowledgeBase, KnowledgeBase]) -> None:
    store = bases[0]
    store.remove_outcomes([one.id for one in store.outcomes()])
    store.record_outcomes(outcome(i, 0.1, context=far(i)) for i in range(NEAREST + 20))
    store.record_outcomes([outcome(999, 0.1, context=ASKED)])
    with Spying(store.where) as spying:
        KnowledgeBase(spying, []).ranked(ASKED)
        assert spying.asked == {ASKED, *map(far, range(NEAREST))}


def test_claims_push_no_own_context_out(bases: tuple[Store, KnowledgeBase, KnowledgeBase]) -> None:
    """More claims than contexts are asked, all of them nearer than what was tried here."""
    store, base, _ = bases
    store.remove_outcomes([one.id for one in store.outcomes()])
    store.record_outcomes(outcome(i, 0.5, strategy="skip", context=far(1), parameters={}) for i in range(9))
    before = {s.id: belief for s, belief in base.ranked(ASKED)}
    near = [ASKED.model_copy(update={"operators": (("pointwise", 300 + i),)}) for i in range(NEAREST + 9)]
    store.record_outcomes(claim_of(outcome(i, 2.0, context=one)) for i, one in enumerate(near))
    assert {s.id: belief for s, belief in base.ranked(ASKED)} == before


def test_a_flood_of_claims_is_read_in_part(
    bases: tuple[Store, KnowledgeBase, KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims of one context are one row, whatever their parameters, and few contexts are compared."""
    store = bases[0]
    store.remove_outcomes([one.id for one in store.outcomes()])
    store.record_outcomes(claim_of(outcome(i, 0.5, context=ASKED, parameters={"u": i})) for i in range(50))
    store.record_outcomes(claim_of(outcome(i, 0.5, context=far(i))) for i in range(50, 60))
    read = [len(some) for some in store.strategy_records([ASKED]).values()]
    assert read == [1]
    monkeypatch.setattr(outcomes_module, "MOST_CLAIMED_CONTEXTS", 4)
    assert len(store.contexts().claimed) == 4
    assert rows_read(store, store.contexts) == 4
    with Spying(store.where) as spying:
        KnowledgeBase(spying, []).ranked(ASKED)
        assert not spying.asked


def test_claims_with_parameters_of_their_own_are_not_read(
    bases: tuple[Store, KnowledgeBase, KnowledgeBase],
) -> None:
    """In a context that was tried here."""
    store, base, _ = bases
    store.remove_outcomes([one.id for one in store.outcomes()])
    store.record_outcomes([outcome(0, 0.1, context=ASKED)])
    store.record_outcomes([claim_of(outcome(1, 0.5, context=ASKED))])
    before = rows_read(store, lambda: base.ranked(ASKED))
    store.record_outcomes(claim_of(outcome(i, 0.5, context=ASKED)) for i in range(2, 50))
    assert rows_read(store, lambda: base.ranked(ASKED)) == before
    assert rows_read(store, lambda: store.experience([ASKED])) == 1


def rows_read(store: Store, ask: Callable[[], object]) -> int:
    """Rows that the database gives meanwhile."""
    engine, asked = store._db._engine, list[tuple[str, Any]]()

    def keep(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", keep)
    try:
        ask()
    finally:
        event.remove(engine, "before_cursor_execute", keep)
    selects = [(statement, parameters) for statement, parameters in asked if statement.startswith("SELECT")]
    with closing(sqlite3.connect(store.where.removeprefix("sqlite:///"))) as raw:
        return sum(len(raw.execute(*select).fetchall()) for select in selects)


def test_a_claim_changes_no_expectation(bases: tuple[Store, KnowledgeBase, KnowledgeBase]) -> None:
    """Of a strategy that failed in a context less like the one in question than the claim's."""
    store, base, _ = bases
    store.remove_outcomes([one.id for one in store.outcomes()])
    near = ASKED.model_copy(update={"dtype": "bfloat16"})
    failed = {"status": EvaluationStatus.CRASHED, "context": far(1)}
    store.record_outcomes(outcome(i, None, **failed) for i in range(99))
    store.record_outcomes([outcome(99, 0.1, strategy="skip", context=near)])
    before = base.ranked(ASKED)
    store.record_outcomes([claim_of(outcome(100, 0.1, context=near))])
    after = {s.id: belief for s, belief in base.ranked(ASKED)}
    assert after == {s.id: belief for s, belief in before}
    assert base.ranked(ASKED)[0][0].id == before[0][0].id


def test_check_repairs_the_summary(run: Run, home: Path) -> None:
    url = f"sqlite:///{home}/agentforge.db"
    with Store(url) as store, store._db.write() as session:
        session.connection().exec_driver_sql(
            "INSERT INTO contexts (hash, tried, claimed, body) VALUES ('x', 1, 0, '{\"op_type\": \"norm\"}')"
        )
    assert run("kb", "check", "--json").json == {"doubtful": [], "removed": False, "repaired": 1}
    assert "disagreed" not in run("kb", "check").out

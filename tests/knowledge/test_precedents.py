"""Verified solutions of earlier runs: whose, for which problem, and which are never given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from agentforge.knowledge import APART, KnowledgeBase, export_knowledge, import_knowledge
from agentforge.schema import BuildSpec, EvaluationStatus, Evidence, Precedent, Solution
from agentforge.store import Store
from agentforge.store.tables import OutcomeRow, SolutionRow
from tests.store import nouns

BEGUN = nouns.NOW + timedelta(days=1)
HERE = nouns.definition().hash


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def tried(
    store: Store,
    text: str,
    speedup: float,
    *,
    run: str | None = "earlier",
    where: str = "dram/many-rows",
    architecture: str = "null",
    status: EvaluationStatus = EvaluationStatus.PASSED,
    evidence: Evidence | None = None,
    after_s: float = 0.0,
    **solution: Any,
) -> Solution:
    """Record a solution that some run wrote."""
    written = nouns.solution(text, **solution)
    store.save_solution(written)
    measured = nouns.evaluation(written, speedup=speedup, status=status, evidence=evidence, after_s=after_s)
    context = nouns.context(shape_class=where, architecture=architecture)
    KnowledgeBase(store, ()).record("fuse", context, written, measured, {}, run)
    return written


def given(store: Store, language: str = "cpp", definition: str = HERE) -> tuple[Precedent, ...]:
    return KnowledgeBase(store, ()).precedents(definition, nouns.context(), language, BEGUN)


def texts(store: Store, **asked: str) -> set[str]:
    return {p.solution.source("model_new.py") for p in given(store, **asked)}


def test_verified_solutions_of_the_same_problem(store: Store) -> None:
    tried(store, "slow", 1.1)
    tried(store, "fast", 2.0)
    found = {p.solution.source("model_new.py"): p for p in given(store)}
    assert set(found) == {"slow", "fast"}
    assert math.exp(found["fast"].log_speedup) == pytest.approx(2.0)
    assert found["fast"].strategy == "fuse"
    assert given(store, "cuda") == ()


def test_equally_fast_solutions_teach_nothing(store: Store) -> None:
    tried(store, "one", 2.0)
    tried(store, "other", 2.0 * math.exp(APART) * 0.99)
    assert given(store) == ()
    tried(store, "third", 2.0 * math.exp(APART) * 1.01)
    assert texts(store) == {"one", "other", "third"}


def test_the_newest_measurement_counts(store: Store) -> None:
    tried(store, "slow", 1.1)
    tried(store, "fast", 5.0)
    tried(store, "fast", 2.0, after_s=60)
    assert max(p.log_speedup for p in given(store)) == pytest.approx(math.log(2.0))


@pytest.mark.parametrize(
    "other",
    [
        {"evidence": Evidence.UNVERIFIED},
        {"evidence": Evidence.SUSPICIOUS},
        {"status": EvaluationStatus.CHEATING},
        {"status": EvaluationStatus.INCORRECT_NUMERICAL},
        {"run": None},  # foreign code that was judged here
        {"after_s": 2 * 86400.0},  # written after the run began that asks
        {"architecture": "other"},
        {"author": "inductor"},
        {"spec": BuildSpec(language="python")},
    ],
    ids=lambda other: " ".join(other),
)
def test_what_is_never_given(store: Store, other: dict[str, Any]) -> None:
    tried(store, "slow", 1.1)
    tried(store, "fast", 2.0)
    tried(store, "never", 4.0, **other)
    assert texts(store) == {"slow", "fast"}


@pytest.mark.parametrize(
    "found",
    [
        {"status": EvaluationStatus.CHEATING},
        {"status": EvaluationStatus.NONDETERMINISTIC},
        {"evidence": Evidence.SUSPICIOUS},
    ],
)
def test_a_solution_that_was_found_out_is_not_given_again(store: Store, found: dict[str, Any]) -> None:
    for text, speedup in (("slow", 1.1), ("fast", 2.0), ("cheat", 9.0)):
        tried(store, text, speedup)
    assert texts(store) == {"slow", "fast", "cheat"}
    tried(store, "cheat", 9.0, after_s=60, **found)
    assert texts(store) == {"slow", "fast"}


def test_claims_are_never_given(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "theirs.jsonl"
    with Store(f"sqlite:///{tmp_path}/theirs.db") as theirs:
        for text, speedup in (("slow", 1.1), ("fast", 2.0), ("ours too", 4.0)):
            tried(theirs, text, speedup)
        assert texts(theirs) == {"slow", "fast", "ours too"}
        export_knowledge(KnowledgeBase(theirs, ()), theirs, file)
    import_knowledge(store, file)
    assert store.outcome_totals().claimed == 3
    for text in ("slow", "fast"):
        store.save_solution(nouns.solution(text))
    assert given(store) == ()
    tried(store, "own slow", 1.0)
    tried(store, "own fast", 3.0)
    assert texts(store) == {"own slow", "own fast"}


def test_what_is_found_later_changes_no_prompt_of_a_run_that_began_before(store: Store) -> None:
    for text, speedup in (("slow", 1.1), ("fast", 2.0)):
        tried(store, text, speedup)
    tried(store, "fast", 2.0, after_s=2 * 86400.0, run="other", status=EvaluationStatus.CHEATING)
    assert texts(store) == {"slow", "fast"}
    later = BEGUN + timedelta(days=2)
    assert KnowledgeBase(store, ()).precedents(HERE, nouns.context(), "cpp", later) == ()


def test_an_arm_of_a_campaign_is_given_what_only_another_arm_found_out(store: Store) -> None:
    for text, speedup in (("slow", 1.1), ("fast", 2.0)):
        tried(store, text, speedup)
    made, problems = nouns.campaign(1, created=nouns.NOW + timedelta(seconds=30))
    store.create_campaign(made, problems)
    while (item := store.take_item("night", "host:1", 600)) is not None:
        store.attach_run(item, f"run-{item.arm}")
    tried(store, "fast", 2.0, after_s=60.0, run="run-llm", evidence=Evidence.SUSPICIOUS)
    assert texts(store.as_known_to("run-base")) == {"slow", "fast"}
    assert texts(store.as_known_to("run-llm")) == set()


@pytest.mark.parametrize("first", ["claim", "verdict"])
def test_a_claim_does_not_hide_a_solution_that_a_run_wrote(store: Store, tmp_path: Path, first: str) -> None:
    file = tmp_path / "theirs.jsonl"
    with Store(f"sqlite:///{tmp_path}/theirs.db") as theirs:
        tried(theirs, "fast", 9.0)
        tried(theirs, "slow", 1.0, status=EvaluationStatus.CRASHED)
        export_knowledge(KnowledgeBase(theirs, ()), theirs, file)
    if first == "claim":
        import_knowledge(store, file)
    for text, speedup in (("slow", 1.1), ("fast", 2.0)):
        tried(store, text, speedup)
    import_knowledge(store, file)
    assert store.outcome_totals().claimed == 2
    assert {round(math.exp(p.log_speedup), 6) for p in given(store)} == {1.1, 2.0}


def test_else_those_of_the_most_similar_problem(store: Store) -> None:
    near, far = (nouns.definition(reference=f"# {name}").hash for name in ("near", "far"))
    for name, where in ((near, "l2/many-rows"), (far, "l2/few-rows")):
        tried(store, f"{name} slow", 1.1, where=where, definition=name)
        tried(store, f"{name} fast", 2.0, where=where, definition=name)
    assert texts(store) == {f"{near} slow", f"{near} fast"}
    tried(store, "alone", 2.0)
    assert texts(store) == {f"{near} slow", f"{near} fast"}, "one solution is no contrast"
    tried(store, "slower", 1.0)
    assert texts(store) == {"alone", "slower"}


def test_problems_that_are_not_alike_teach_nothing(store: Store) -> None:
    far = nouns.definition(reference="# far").hash
    for text, speedup in (("slow", 1.1), ("fast", 2.0)):
        tried(store, text, speedup, where="l2/few-rows", definition=far)
    assert given(store) == ()


def test_solutions_of_other_problems_are_not_read_without_need(store: Store) -> None:
    near = nouns.definition(reference="# near").hash
    tried(store, "near slow", 1.1, where="l2/many-rows", definition=near)
    tried(store, "near fast", 2.0, where="l2/many-rows", definition=near)
    for text, speedup in (("slow", 1.1), ("fast", 2.0)):
        tried(store, text, speedup)
    with store._db.write() as session:
        session.execute(update(SolutionRow).where(SolutionRow.definition == near).values(body="{"))
        session.execute(update(OutcomeRow).values(body="{"))
    assert texts(store) == {"slow", "fast"}

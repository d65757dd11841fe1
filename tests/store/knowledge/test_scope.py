"""The arms of a campaign learn from what was known before, and each from itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentforge.schema import Arm, Lesson, Outcome, Strategy
from agentforge.store import Store
from tests.store import nouns
from tests.store.conftest import postgres_server, postgres_url, sqlite_url, store, url
from tests.store.test_store import outcome

from . import reference

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "store", "url"]

BEFORE, AFTER = -timedelta(days=1), timedelta(days=1)
ARMS = (Arm(name="a", agent="playbook"), Arm(name="b", agent="playbook"))


def begin(store: Store, arms: Sequence[Arm] = ARMS) -> None:
    """A campaign whose arms have a run each, `run-a` and `run-b`."""
    made, problems = nouns.campaign(1, arms=tuple(arms), created=nouns.NOW)
    store.create_campaign(made, problems)
    while (item := store.take_item("night", "host:1", 600)) is not None:
        store.attach_run(item, f"run-{item.arm}")


def lesson(name: str, run: str, when: timedelta) -> Lesson:
    return Lesson(
        id=name, strategy="fuse", context=nouns.context(), evaluation="e", text=name,
        speedup=2.0, author="judge", run=run, time=nouns.NOW + when,
    )  # fmt: skip


def test_an_arm_does_not_know_what_another_one_found(store: Store) -> None:
    begin(store)
    here = nouns.context(shape_class="elsewhere")
    every = (
        outcome(1, 0.1, run="old", time=nouns.NOW + BEFORE),
        outcome(2, 0.2, run="run-a", time=nouns.NOW + AFTER),
        outcome(3, 0.9, run="run-b", time=nouns.NOW + AFTER, context=here, strategy="found by b"),
        outcome(4, 0.8, run="another campaign's", time=nouns.NOW + AFTER),
    )
    store.record_outcomes(every)
    for name in ("fuse", "found by b"):
        store.save_strategy(Strategy(id=name, title=name, summary="s"))
    for name, run, when in (("old", "old", BEFORE), ("a", "run-a", AFTER), ("b", "run-b", AFTER)):
        store.save_lesson(lesson(name, run, when))

    seen, known = store.as_known_to("run-a"), every[:2]
    assert _as_reference(seen, known)
    assert set(seen.contexts().tried) == {nouns.context()}
    assert [s.id for s in seen.stored_strategies()] == ["fuse"]
    assert {one.id for one in seen.lessons()["fuse"]} == {"old", "a"}
    assert (
        here in store.contexts().tried and len(store.lessons()["fuse"]) == 3
    )  # the whole store is as it was
    assert _as_reference(store.as_known_to("run of no campaign"), every)


def test_an_arm_does_not_know_what_another_one_found_by_a_slow_clock(store: Store) -> None:
    begin(store)
    early = [
        outcome(1, 0.1, run=None, time=nouns.NOW + BEFORE),
        outcome(2, 0.2, run="run-a", time=nouns.NOW + BEFORE),
        outcome(3, 0.9, run="run-b", time=nouns.NOW + BEFORE),
    ]
    store.record_outcomes(early)
    store.save_strategy(Strategy(id="fuse", title="fuse", summary="s"))
    for name, run in (("old", "old"), ("a", "run-a"), ("b", "run-b")):
        store.save_lesson(lesson(name, run, BEFORE))
    seen = store.as_known_to("run-a")
    assert _as_reference(seen, early[:2])
    assert {one.id for one in seen.lessons()["fuse"]} == {"old", "a"}


def test_a_campaign_of_one_arm_knows_everything(store: Store) -> None:
    begin(store, ARMS[:1])
    store.record_outcomes(every := [outcome(1, 0.1, run="other", time=nouns.NOW + AFTER)])
    assert _as_reference(store.as_known_to("run-a"), every)


@pytest.mark.parametrize("run", ["old", "run-a"])
def test_no_arm_uses_a_claim_whenever_it_came(store: Store, run: str) -> None:
    """Its time and its run are those of another database."""
    begin(store)
    claim = outcome(1, 0.9, run=run, time=nouns.NOW + BEFORE, claimed=True)
    store.record_outcomes([claim, own := outcome(2, 0.1, run="old", time=nouns.NOW + BEFORE)])
    seen = store.as_known_to("run-a")
    assert _as_reference(seen, [own])
    assert (seen.contexts().tried, seen.contexts().claimed) == ((nouns.context(),), ())
    assert store.contexts().claimed == (nouns.context(),)


@pytest.fixture
def campaign(store: Store) -> Store:
    begin(store)
    return store


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outcomes=reference.OUTCOMES, runs=st.lists(st.sampled_from([None, "run-a", "run-b"]), min_size=60))
def test_statistics_are_those_of_the_outcomes_in_the_scope(
    campaign: Store, outcomes: list[Outcome], runs: list[str | None]
) -> None:
    campaign.remove_outcomes([one.id for one in campaign.outcomes()])
    late = [
        one.model_copy(update={"run": run, "time": nouns.NOW + AFTER + timedelta(seconds=i)})
        for i, (one, run) in enumerate(zip(outcomes, runs, strict=False))
    ]
    campaign.record_outcomes(late)
    kept = [one for one in campaign.outcomes() if one.run == "run-a" and not one.claimed]
    assert _as_reference(campaign.as_known_to("run-a"), kept)


def _as_reference(store: Store, outcomes: Sequence[Outcome]) -> bool:
    """Whether the store's statistics are those of these outcomes."""
    found, wanted = store.experience(), reference.experience(outcomes)
    records, expected = store.strategy_records(), reference.records(outcomes)
    return (
        found.keys() == wanted.keys()
        and records.keys() == expected.keys()
        and all(reference.same(found[name], some) for name, some in wanted.items())
        and all(reference.same(records[name], some) for name, some in expected.items())
    )

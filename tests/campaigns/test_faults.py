"""Whose fault it is that items fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.campaigns.faults import MOST_FAILURES, Faults
from agentforge.schema import CampaignItem, ItemState, TryOutcome
from agentforge.store import Store
from agentforge.store.campaigns import LOST_TRIES
from tests.store import nouns


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'faults.db'}") as opened:
        yield opened


def fill(store: Store, definitions: tuple[str, ...]) -> None:
    made, problems = nouns.campaign(len(definitions))
    named = [p.model_copy(update={"definition": d}) for p, d in zip(problems, definitions, strict=True)]
    store.create_campaign(made.model_copy(update={"arms": made.arms[:1]}), named)


def begin(store: Store, faults: Faults, worker: str) -> CampaignItem:
    item = store.take_item("night", worker, 600.0)
    assert item is not None
    faults.begin(item)
    return item


def end(store: Store, faults: Faults, item: CampaignItem, outcome: TryOutcome = TryOutcome.FAILED) -> int:
    assert store.end_item(item, outcome, "it fails")
    return faults.ended(item, outcome)


def test_workers_that_began_together_each_doubt_the_machine(store: Store) -> None:
    fill(store, ("",) * 20)
    workers = [(f"host:{number}", Faults(store, f"host:{number}")) for number in (1, 2)]
    held = [begin(store, faults, worker) for worker, faults in workers]
    for (worker, faults), item in zip(workers, held, strict=True):
        ends = [end(store, faults, item)]
        ends += [end(store, faults, begin(store, faults, worker)) for _ in range(MOST_FAILURES - 1)]
        assert ends == [0, 0, 0, 0, MOST_FAILURES]
    time.sleep(0.01)
    later = Faults(store, "host:3")
    assert not any(end(store, later, begin(store, later, "host:3")) for _ in range(MOST_FAILURES + 1))
    other = Faults(store, "elsewhere:1")
    counts = [end(store, other, begin(store, other, "elsewhere:1")) for _ in range(MOST_FAILURES)]
    assert counts[-1] == MOST_FAILURES, "another machine may be at fault itself"


def test_workloads_of_one_definition_fail_together(store: Store) -> None:
    fill(store, ("norm",) * 8 + ("",) * 4)
    faults = Faults(store, "host:1")
    counts = [end(store, faults, begin(store, faults, "host:1")) for _ in range(12)]
    assert counts == [0] * 11 + [12]


def test_items_that_were_quarantined_and_those_out_of_time_wait_again_and_keep_their_runs(
    store: Store,
) -> None:
    fill(store, ("",) * 5)
    faults, count = Faults(store, "host:1"), 0
    for number in range(5):
        outcome = TryOutcome.OUT_OF_TIME if number else TryOutcome.LOST
        for _ in range(1 if number else LOST_TRIES):
            item = begin(store, faults, "host:1")
            store.attach_run(item, f"run-{number}")
            assert count == 0
            count = end(store, faults, item, outcome)
    assert count == 5
    items = store.campaign_items("night")
    assert [(i.state, i.lost, i.run) for i in items] == [
        (ItemState.WAITING, 0, f"run-{number}") for number in range(5)
    ]

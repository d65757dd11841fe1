"""The queue on SQLite and on a real PostgreSQL: no item is lost or done twice when workers die."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from agentforge.schema import (
    Budget,
    BusyError,
    CampaignItem,
    CampaignState,
    ItemState,
    LLMCall,
    TryOutcome,
    UsageError,
)
from agentforge.store import Store
from agentforge.store.campaigns import LOST_TRIES, Done, worker_name
from agentforge.store.tables import TryRow
from tests.store import nouns
from tests.store.nouns import campaign

LONG_S = 600.0


def take(store: Store, worker: str = "host:1", lease_s: float = LONG_S) -> CampaignItem:
    item = store.take_item("night", worker, lease_s)
    assert item is not None
    return item


def test_starting_twice_changes_nothing(store: Store) -> None:
    made, problems = campaign()
    assert store.create_campaign(made, problems)
    item = take(store)
    assert not store.create_campaign(made.model_copy(update={"created": datetime.now(UTC)}), problems)
    assert [i.problem for i in store.campaign_items("night")] == ["p0", "p0", "p1", "p1", "p2", "p2"]
    assert store.campaign_items("night")[0] == item
    assert store.get_campaign("night") == made
    assert store.list_campaigns() == (made,)
    assert store.campaign_problems("night") == tuple(problems)
    assert store.campaign_problem("night", "p1") == problems[1]


def test_a_campaign_that_several_machines_begin_at_once_is_there_once(store: Store) -> None:
    gate = threading.Barrier(2)

    def begin(name: str) -> bool:
        gate.wait(60)
        return store.create_campaign(*campaign(name=name))

    with ThreadPoolExecutor(2) as machines:
        for number in range(10):
            made = machines.map(begin, [f"night-{number}"] * 2)
            assert sorted(made) == [False, True]
            assert len(store.campaign_items(f"night-{number}")) == 6


def test_a_removed_campaign_leaves_nothing_but_its_runs(store: Store) -> None:
    store.create_campaign(*campaign())
    item = take(store)
    store.create_run(nouns.run("run"))
    store.attach_run(item, "run")
    with pytest.raises(BusyError, match="worker host:1 has an item of campaign night"):
        store.delete_campaign("night")
    store.end_item(item, TryOutcome.DONE)
    store.delete_campaign("night")
    assert (store.list_campaigns(), store.campaign_items("night"), store.campaign_tries("night")) == (
        (),
        (),
        (),
    )
    assert store.get_run("run").id == "run"
    with pytest.raises(UsageError, match="there is no campaign 'night'"):
        store.delete_campaign("night")
    assert store.create_campaign(*campaign())


def test_a_clock_that_is_set_back_takes_no_time_from_an_item(store: Store) -> None:
    store.create_campaign(*campaign())
    item = take(store)
    with store._db.write() as session:
        session.execute(update(TryRow).values(begun=TryRow.begun + 3600))
    assert store.end_item(item, TryOutcome.FAILED, "it failed")
    assert store.campaign_items("night")[0].seconds == 0.0


def test_a_name_belongs_to_one_campaign(store: Store) -> None:
    store.create_campaign(*campaign())
    assert not store.create_campaign(*campaign(code="another")), "other code goes on with it"
    assert store.get_campaign("night").code == ""
    with pytest.raises(UsageError, match="exists with other budget: choose another --name"):
        store.create_campaign(*campaign(budget=Budget(minutes=2)))
    with pytest.raises(UsageError, match="exists with other problems, or was made by an older version"):
        store.create_campaign(*campaign(problems_hash="other"))
    with pytest.raises(UsageError, match="there is no campaign 'day'"):
        store.get_campaign("day")


def test_items_are_taken_in_order_and_not_while_the_campaign_is_paused(store: Store) -> None:
    store.create_campaign(*campaign())
    first = take(store)
    assert (first.problem, first.arm, first.tries, first.worker) == ("p0", "base", 1, "host:1")
    store.set_campaign_state("night", CampaignState.PAUSED)
    assert store.take_item("night", "host:2", LONG_S) is None
    assert store.get_campaign("night").state is CampaignState.PAUSED
    assert store.end_item(first, TryOutcome.DONE)  # what runs may end
    store.set_campaign_state("night", CampaignState.OPEN)
    assert take(store).arm == "llm"


def test_a_worker_that_lost_its_lease_changes_nothing(store: Store) -> None:
    store.create_campaign(*campaign())
    slow = take(store, "host:1", lease_s=-1)
    assert store.attach_run(slow, "run-1")
    assert store.beat_item(slow, -1, "searching")
    assert store.reap_items("night") == 1
    assert not store.end_item(slow, TryOutcome.DONE)
    other = take(store, "host:2")
    assert (other.id, other.tries, other.lost, other.run) == (slow.id, 2, 1, "run-1")
    assert not store.beat_item(slow, LONG_S, "late")
    assert not store.attach_run(slow, "run-2")
    assert not store.end_item(slow, TryOutcome.DONE)
    assert store.end_item(other, TryOutcome.DONE)
    assert not store.end_item(other, TryOutcome.DONE)
    outcomes = [(t.outcome, t.words) for t in store.campaign_tries("night")]
    assert outcomes == [
        (TryOutcome.LOST, "worker host:1 died; it said last: searching"),
        (TryOutcome.DONE, ""),
    ]


def test_an_exchange_ends_tries_and_takes_other_items(store: Store) -> None:
    store.create_campaign(*campaign(2))
    first = take(store)
    accepted, (second,) = store.exchange_items([Done(first, 1.0, 3.5)], "night", "host:1", LONG_S)
    assert accepted == {first.id}
    assert (second.arm, second.worker, second.tries) == ("llm", "host:1", 1)
    done = [Done(first, 0.0, 9.0), Done(second, 0.5, 1.0)]
    accepted, others = store.exchange_items(done, "night", "host:1", LONG_S, most=0)
    assert (accepted, others) == ({second.id}, ()), "an end counts once"
    spent = [(i.state, i.seconds) for i in store.campaign_items("night")]
    assert spent[:3] == [(ItemState.DONE, 2.5), (ItemState.DONE, 0.5), (ItemState.WAITING, 0.0)]
    tries = {t.item: t.outcome for t in store.campaign_tries("night")}
    assert tries == {first.id: TryOutcome.DONE, second.id: TryOutcome.DONE}


def test_several_items_are_taken_in_order_and_fewer_near_the_end(store: Store) -> None:
    store.create_campaign(*campaign(20))
    one = take(store, "host:1")
    _, some = store.exchange_items((), "night", "host:2", LONG_S, most=8)
    assert [item.id for item in some] == [one.id + number for number in range(1, 9)]
    _, fewer = store.exchange_items((), "night", "host:3", LONG_S, most=8)
    assert len(fewer) == 1 + 31 // 6, "half of what waits, for each of two workers and this one"
    store.set_campaign_state("night", CampaignState.PAUSED)
    assert store.exchange_items((), "night", "host:1", LONG_S, most=8) == (frozenset(), ())


def test_an_item_at_which_a_worker_died_is_taken_alone(store: Store) -> None:
    store.create_campaign(*campaign(4))
    _, doomed = store.exchange_items((), "night", "host:1", -1, most=2)
    assert store.reap_items("night") == len(doomed) == 2
    _, others = store.exchange_items((), "night", "host:2", LONG_S, most=3)
    assert not {item.id for item in others} & {item.id for item in doomed}
    while any(item.state is ItemState.WAITING and not item.lost for item in store.campaign_items("night")):
        store.exchange_items((), "night", "host:3", LONG_S, most=3)
    for item in doomed:
        assert [i.id for i in store.exchange_items((), "night", "host:3", LONG_S, most=3)[1]] == [item.id]


def test_items_that_are_done_can_be_visited_again(store: Store) -> None:
    store.create_campaign(*campaign(1))
    first, second = take(store), take(store)
    store.attach_run(first, "run-1")
    store.end_item(first, TryOutcome.DONE)
    assert store.extend_items("night", {first.id: 2, second.id: 1}) == 1
    again = take(store)
    assert (again.id, again.visits, again.run, again.tries) == (first.id, 3, "run-1", 2)


def test_a_result_stays_until_another_run_has_a_better_one(store: Store) -> None:
    store.create_campaign(*campaign(1))
    first = take(store)
    store.attach_run(first, "run-1")
    store.end_item(first, TryOutcome.DONE)
    store.extend_items("night", {first.id: 1})
    second = take(store, "elsewhere:1")
    store.attach_run(second, "run-2")
    store.end_item(second, TryOutcome.FAILED, "it does not build")
    store.retry_items("night", (ItemState.FAILED,))
    third = take(store, "elsewhere:2")
    assert (third.id, third.run, third.result_run, third.visits) == (first.id, None, "run-1", 2)
    store.attach_run(third, "run-3")
    assert store.exchange_items([Done(third, 0.0, 1.0)], "night", "elsewhere:2", LONG_S, most=0)[0]
    item = store.campaign_items("night")[0]
    assert (item.run, item.result_run) == ("run-3", "run-1")
    store.extend_items("night", {first.id: 1})
    fourth = take(store, "elsewhere:2")
    assert store.attach_result(fourth, "run-3")
    store.end_item(fourth, TryOutcome.DONE)
    assert not store.attach_result(fourth, "run-1"), "it has no lease"
    item = store.campaign_items("night")[0]
    assert (item.run, item.result_run) == ("run-3", "run-3")
    assert {i: sorted(runs) for i, runs in store.campaign_runs("night").items()} == {
        first.id: ["run-1", "run-2", "run-3"]
    }


def test_an_item_may_begin_anew_and_its_run_counts(store: Store) -> None:
    store.create_campaign(*campaign(1))
    item = take(store)
    store.attach_run(item, "run-1")
    assert store.detach_run(item)
    store.end_item(item, TryOutcome.RELEASED)
    assert not store.detach_run(item), "it has no lease"
    assert take(store).run is None
    assert store.campaign_runs("night") == {item.id: ["run-1"]}


def test_the_words_of_a_running_item_are_those_of_its_own_try(store: Store) -> None:
    store.create_campaign(*campaign())
    first = take(store)
    store.beat_item(first, LONG_S, "searching")
    assert store.end_item(first, TryOutcome.RELEASED)
    assert store.campaign_words("night") == {}
    again = take(store)
    store.beat_item(again, LONG_S, "waiting for another process that measures")
    ((item, (words, silent_s)),) = store.campaign_words("night").items()
    assert (item, words) == (first.id, "waiting for another process that measures")
    assert silent_s < LONG_S


def test_another_machine_does_not_continue_a_run(store: Store) -> None:
    store.create_campaign(*campaign())
    first = take(store, "host:1")
    store.attach_run(first, "run-1")
    store.end_item(first, TryOutcome.RELEASED)
    again = take(store, "host:2")
    assert again.run == "run-1"
    store.end_item(again, TryOutcome.RELEASED)
    assert take(store, "elsewhere:1").run is None


def test_a_worker_of_this_machine_that_lives_keeps_its_item(store: Store) -> None:
    store.create_campaign(*campaign())
    with subprocess.Popen(["sleep", "60"]) as process:
        worker = worker_name(process.pid)
        item = take(store, worker, lease_s=-1)
        with store._db.write() as session:  # as a server does whose clock is behind that of this machine
            session.execute(update(TryRow).where(TryRow.item == item.id).values(beat=TryRow.beat - 600))
        process.send_signal(signal.SIGSTOP)
        assert store.reap_items("night") == 0
        assert store.reap_items("night", worker) == 1, "its own are those that it does not know of"
        take(store, worker, lease_s=-1)
        process.kill()
    assert store.reap_items("night") == 1


def test_another_process_with_the_number_of_a_dead_worker_keeps_nothing(store: Store) -> None:
    store.create_campaign(*campaign())
    with subprocess.Popen(["sleep", "60"]) as process:
        take(store, f"{worker_name(process.pid)}0", lease_s=-1)
        assert store.reap_items("night") == 1
        process.kill()


def test_a_living_worker_of_an_earlier_version_keeps_its_item(store: Store) -> None:
    store.create_campaign(*campaign())
    with subprocess.Popen(["sleep", "60"]) as process:
        take(store, worker_name(process.pid).rpartition(".")[0], lease_s=-1)
        assert store.reap_items("night") == 0
        process.kill()
    assert store.reap_items("night") == 1


def test_an_item_that_is_given_back_for_a_reason_goes_behind_the_others(store: Store) -> None:
    store.create_campaign(*campaign(2))
    first = take(store)
    assert store.end_item(first, TryOutcome.RELEASED, "another process works on its run")
    order = [take(store) for _ in range(4)]
    assert (order[-1].id, order[-1].reason) == (first.id, "another process works on its run")
    assert store.campaign_items("night")[0].id == first.id


def test_three_dead_workers_quarantine_an_item_with_their_last_words(store: Store) -> None:
    store.create_campaign(*campaign(1))
    for number in range(LOST_TRIES):
        item = take(store, f"host:{number}", lease_s=-1)
        assert item.arm == "base"
        store.beat_item(item, -1, f"attempt {number}\0\udcff")
        assert store.reap_items("night") == 1
    item = store.campaign_items("night")[0]
    assert item.state is ItemState.QUARANTINED
    assert item.reason == "worker host:2 died; it said last: attempt 2\\udcff"
    assert take(store).arm == "llm"
    assert store.retry_items("night", (ItemState.QUARANTINED,)) == 1
    again = take(store)
    assert (again.arm, again.lost, again.run, again.reason) == ("base", 0, None, "")


def test_a_retry_continues_the_run_of_an_item_that_was_out_of_time_alone(store: Store) -> None:
    store.create_campaign(*campaign(2))
    ends = (TryOutcome.OUT_OF_TIME, TryOutcome.FAILED, TryOutcome.LOST)
    items = [take(store) for _ in ends]
    for item, outcome in zip(items, ends, strict=True):
        store.attach_run(item, f"run-{item.id}")
        assert store.end_item(item, outcome, "it took too long")
    for _ in range(LOST_TRIES - 1):
        again = take(store)
        assert again.run == f"run-{items[2].id}"
        store.end_item(again, TryOutcome.LOST, "it died")
    states = [item.state for item in store.campaign_items("night")]
    assert states[:3] == [ItemState.FAILED, ItemState.FAILED, ItemState.QUARANTINED]
    assert store.retry_items("night", (ItemState.FAILED, ItemState.QUARANTINED)) == 3
    assert [take(store).run for _ in items] == [f"run-{items[0].id}", None, None]


def test_items_are_put_back_behind_the_others_unless_something_else_happened(store: Store) -> None:
    store.create_campaign(*campaign(2))
    failed = [take(store) for _ in range(2)]
    for item in failed:
        store.attach_run(item, f"run-{item.id}")
        store.end_item(item, TryOutcome.FAILED, "it does not import")
    store.retry_items("night", (ItemState.FAILED,))
    again = take(store)
    assert again.id == failed[0].id
    store.attach_run(again, "run-again")
    store.end_item(again, TryOutcome.FAILED, "it does not import")
    assert store.put_back_items([again, failed[1]]) == 1, "the other one waits in any case"
    order = [take(store) for _ in range(4)]
    assert [order[0].id, order[-1].id] == [failed[1].id, again.id]
    assert (order[-1].run, order[-1].reason) == ("run-again", "it does not import")
    outcomes = [t.outcome for t in store.campaign_tries("night") if t.item == again.id]
    assert outcomes == [TryOutcome.FAILED, TryOutcome.DOUBTED, None]


def test_a_campaign_gets_one_kind_of_device(store: Store) -> None:
    store.create_campaign(*campaign())
    assert not store.create_campaign(*campaign(device="cuda")), "it was auto"
    assert store.get_campaign("night").device == "cuda"
    assert store.fix_device("night", "cpu").device == "cuda"
    assert not store.create_campaign(*campaign(device="auto")), "the command that began it continues it"
    with pytest.raises(UsageError, match="exists with other device"):
        store.create_campaign(*campaign(device="cpu"))
    store.set_campaign_state("night", CampaignState.PAUSED)
    assert store.set_campaign_limit("night", 90.0).limit_s == 90.0
    found = store.get_campaign("night")
    assert (found.limit_s, found.device, found.state) == (90.0, "cuda", CampaignState.PAUSED)
    with pytest.raises(UsageError, match="there is no campaign 'day'"):
        store.fix_device("day", "cpu")


def test_seconds_of_another_database_count_once(store: Store) -> None:
    store.create_campaign(*campaign())
    item = take(store)
    store.end_item(item, TryOutcome.RELEASED)
    own = store.campaign_tries("night")[0]
    assert own.seconds == pytest.approx(store.campaign_items("night")[0].seconds, abs=0.1)
    for _ in range(2):
        store.count_seconds(item.id, {own.key: own.seconds, "there": 40.0, "too": 2.0})
        assert store.campaign_items("night")[0].seconds == pytest.approx(42.0, abs=0.1)
    store.count_run(item.id, "run-there")
    found = [(t.key, t.ended, t.seconds) for t in store.campaign_tries("night") if t.number < 0]
    assert sorted(found) == [("0", None, 0.0), ("there", None, 40.0), ("too", None, 2.0)]
    again = take(store)
    assert (again.id, again.tries) == (item.id, 2)


def test_an_item_that_is_given_back_does_not_count_as_lost(store: Store) -> None:
    store.create_campaign(*campaign(1))
    for _ in range(LOST_TRIES + 1):
        assert store.end_item(take(store), TryOutcome.RELEASED)
    item = take(store)
    assert (item.arm, item.lost, item.tries) == ("base", 0, LOST_TRIES + 2)
    assert store.end_item(item, TryOutcome.FAILED, "it does not import")
    progress = store.campaign_progress("night")
    assert (progress.items, progress.over, progress.states[ItemState.FAILED]) == (2, 1, 1)
    assert store.campaign_items("night")[0].reason == "it does not import"


@pytest.mark.parametrize("seed", range(3))
def test_many_workers_that_die_and_wake_up_again_do_each_item_once(store: Store, seed: int) -> None:
    store.create_campaign(*campaign(30))
    finished: list[int] = []  # items whose end was accepted, one entry each time
    lock = threading.Lock()

    def work(number: int) -> None:
        chance, stale = random.Random(seed * 100 + number), list[CampaignItem]()
        while True:
            store.reap_items("night")
            item = store.take_item("night", f"host:{number}", 0.05)
            if item is None:
                progress = store.campaign_progress("night")
                if progress.over == progress.items:
                    return
                time.sleep(0.01)
                continue
            if chance.random() < 0.15:
                stale.append(item)  # it sleeps over its lease, and thinks later that the item is its own
                continue
            late = [item, *(stale if chance.random() < 0.5 else [])]
            for one in late:
                if store.end_item(one, TryOutcome.DONE):
                    with lock:
                        finished.append(one.id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    items = store.campaign_items("night")
    assert len(items) == 60
    assert all(item.state.over for item in items)
    assert Counter(finished) == Counter(i.id for i in items if i.state is ItemState.DONE)
    done = Counter(t.item for t in store.campaign_tries("night") if t.outcome is TryOutcome.DONE)
    assert set(done.values()) == {1}
    quarantined = [i for i in items if i.state is ItemState.QUARANTINED]
    assert all(i.lost == LOST_TRIES for i in quarantined)


_WORKER = """
import os, sys, time
from agentforge.schema import TryOutcome
from agentforge.store import Store

store, worker = Store(sys.argv[1]), f"host:{os.getpid()}"
while True:
    store.reap_items("night")
    item = store.take_item("night", worker, 3.0)
    if item is None:
        progress = store.campaign_progress("night")
        if progress.over == progress.items:
            break
        time.sleep(0.05)
        continue
    print(item.id, flush=True)
    time.sleep(0.02)
    store.end_item(item, TryOutcome.DONE)
"""


@pytest.mark.slow
def test_kill_9_of_workers_loses_nothing_and_repeats_nothing(url: str) -> None:
    with Store(url) as store:
        store.create_campaign(*campaign(40))

        def start() -> subprocess.Popen[str]:
            command = [sys.executable, "-c", _WORKER, url]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        doomed, survivors = [start() for _ in range(2)], [start() for _ in range(2)]
        for process in doomed:
            assert process.stdout is not None
            process.stdout.readline()  # it has taken an item
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            process.stdout.close()
        for process in survivors:
            process.communicate(timeout=120)
            assert process.returncode == 0
        items, tries = store.campaign_items("night"), store.campaign_tries("night")
    assert {item.state for item in items} == {ItemState.DONE}
    assert len(items) == 80
    outcomes = Counter(t.outcome for t in tries)
    assert outcomes[TryOutcome.DONE] == 80
    assert outcomes[TryOutcome.LOST] == len(tries) - 80  # also of a survivor that stalled over its lease


def test_device_seconds_are_those_of_the_verdicts_of_its_runs(store: Store) -> None:
    store.create_campaign(*campaign())
    assert store.campaign_device_seconds("night") == {}
    item = take(store)
    for run, seconds in (("a", 1.5), ("b", 4.0)):
        store.create_run(nouns.run(run))
        store.save_evaluation(nouns.evaluation(seconds=seconds, log="a\0b"), run)
    assert store.attach_run(item, "a")
    assert store.campaign_device_seconds("night") == {item.id: pytest.approx(1.5)}
    store.end_item(item, TryOutcome.RELEASED)
    assert store.attach_run(take(store, "elsewhere:1"), "b")
    assert store.campaign_device_seconds("night") == {item.id: pytest.approx(5.5)}


def test_the_spending_of_a_campaign_counts_the_calls_of_all_its_runs(store: Store) -> None:
    store.create_campaign(*campaign())
    assert store.campaign_spending("night") == (0, 0.0, 0)
    item = take(store)
    ends = {0.5: {"status": "answered"}, None: {"status": "failed", "error": "a\0b"}}  # one without a price
    for number, (dollars, end) in enumerate(ends.items()):
        store.create_run(nouns.run(f"run-{number}"))
        assert store.attach_run(item, f"run-{number}")
        call = {"key": f"k{number}", "run": f"run-{number}", "role": "coder", "model": "m", "prompt": "p"}
        numbers = {"tokens_in": 100, "tokens_out": 50, "dollars": dollars, "time": nouns.NOW}
        store.save_call(LLMCall.model_validate({**call, **numbers, **end}))
        store.end_item(item, TryOutcome.FAILED, "again")
        store.retry_items("night", (ItemState.FAILED,))
        item = take(store)
    assert store.campaign_spending("night") == (300, 0.5, 1)
    reserve = {"tokens_in": 10, "tokens_out": 90, "dollars": 9.0, "time": nouns.NOW, "status": "begun"}
    store.save_call(LLMCall.model_validate({**call, **reserve, "key": "in progress"}))
    assert store.campaign_spending("night") == (300, 0.5, 2), "it may cost less"

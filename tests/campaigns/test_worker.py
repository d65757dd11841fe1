"""Workers: real child processes on a real queue."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from agentforge.campaigns import worker as workers
from agentforge.campaigns.claims import Claims
from agentforge.campaigns.extend import retry
from agentforge.campaigns.item import local_target
from agentforge.campaigns.start import parse_arms, plan_campaign
from agentforge.campaigns.worker import Worker
from agentforge.config import load_settings
from agentforge.runs.judging_code import judging_code
from agentforge.schema import (
    CampaignState,
    ItemState,
    MachineError,
    RunStatus,
    StoreError,
    SuiteProblem,
    TryOutcome,
    UnreachableError,
    UsageError,
)
from agentforge.store import Store

QUICK = [
    "budget.attempts=0",
    "referee.compile_baseline=false",
    "referee.full_seconds=0.3",
    "referee.full_blocks=4",
    "referee.task_seconds=0",
]


def create(store: Store, problems: Path, *given: str, arms: tuple[str, ...] = (), **changes: object) -> str:
    campaign, found = plan_campaign(
        f"folder:{problems}", parse_arms(arms), load_settings([*QUICK, *given]), name="night", device="cpu"
    )
    store.create_campaign(campaign.model_copy(update=changes), found)
    return campaign.name


@pytest.fixture
def store(home: Path) -> Store:
    return Store(load_settings().url)


@pytest.mark.slow
def test_a_worker_ends_every_item_with_a_run_or_a_reason(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "on_a_known_machine")
    said: list[str] = []
    Worker(store, create(store, problems), tell=said.append).work()
    broken, good = store.campaign_items("night")
    assert broken.state is ItemState.FAILED
    assert "a_package_that_is_nowhere" in broken.reason
    assert good.state is ItemState.DONE
    assert good.run is not None
    assert store.get_run(good.run).status is RunStatus.FINISHED
    assert [line.partition(" after")[0] for line in said] == [
        "[0/2] broken (playbook), postponed",
        "[1/2] good (playbook), done",
        "[2/2] broken (playbook), failed",
    ]


def _fake(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setattr(workers, "_ITEM", f"tests.campaigns.fake_items:{body}")


def outcomes(store: Store, campaign: str = "night") -> list[TryOutcome | None]:
    return [found.outcome for found in store.campaign_tries(campaign)]


def test_an_item_downloads_no_model_unless_the_user_says_so(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "says_if_it_is_offline")
    (problems / "broken.py").unlink()
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    said: list[str] = []
    Worker(store, create(store, problems), tell=said.append).work()
    assert said[-1].endswith("offline 1")


@pytest.mark.slow
def test_an_item_whose_process_is_killed_is_tried_again_and_then_quarantined(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problems / "broken.py").unlink()
    _fake(monkeypatch, "killed")
    Worker(store, create(store, problems), tell=lambda _: None).work()
    assert outcomes(store) == [TryOutcome.LOST] * 3
    (item,) = store.campaign_items("night")
    assert item.state is ItemState.QUARANTINED
    assert "killed by SIGSEGV; it said last: about to fall" in item.reason


@pytest.mark.slow
def test_an_item_that_takes_too_long_fails(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problems / "broken.py").unlink()
    _fake(monkeypatch, "asleep")
    Worker(store, create(store, problems, limit_s=2.0), tell=lambda _: None).work()
    (item,) = store.campaign_items("night")
    assert item.state is ItemState.FAILED
    assert outcomes(store) == [TryOutcome.OUT_OF_TIME]
    assert "it took more than 0.0333 minutes (--limit-minutes); it said last: " in item.reason


def test_a_retry_with_another_limit_reaches_workers_that_have_begun(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problems / "broken.py").unlink()
    said: list[str] = []
    worker = Worker(store, create(store, problems, limit_s=60.0), tell=said.append)
    item = store.take_item("night", "host:1", 60.0)
    assert item is not None
    store.end_item(item, TryOutcome.OUT_OF_TIME, "it took more than 1 minutes")
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match=r"--limit-minutes .* is no limit"):
            retry(store, "night", (ItemState.FAILED,), limit_minutes=wrong)
    assert retry(store, "night", (ItemState.FAILED,), limit_minutes=30.0) == 1
    _fake(monkeypatch, "says_its_limit")
    worker.work()
    assert said[0].endswith(": limit 1800 s")


def test_another_limit_reaches_the_first_tries_of_workers_that_have_begun(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problems / "broken.py").unlink()
    said: list[str] = []
    worker = Worker(store, create(store, problems, limit_s=60.0), tell=said.append)
    assert retry(store, "night", (ItemState.FAILED,), limit_minutes=30.0) == 0
    _fake(monkeypatch, "says_its_limit")
    worker.work()
    assert said[0].endswith(": limit 1800 s")


@pytest.mark.slow
def test_an_item_that_is_short_of_memory_waits_behind_the_others_once(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "BUSY_S", 0.1)
    _fake(monkeypatch, "short_of_memory_at_first")
    said: list[str] = []
    Worker(store, create(store, problems), tell=said.append).work()
    assert [line.partition(" after")[0] for line in said] == [
        "[0/2] broken (playbook), postponed",
        "[1/2] good (playbook), done",
        "[2/2] broken (playbook), done",
    ]
    _fake(monkeypatch, "broken_is_short_of_memory")
    create(store, problems, name="day")
    Worker(store, "day", tell=print).work()
    postponed, final = TryOutcome.POSTPONED, TryOutcome.UNSUPPORTED
    assert outcomes(store, "day") == [postponed, final, TryOutcome.DONE]
    assert retry(store, "day", (ItemState.UNSUPPORTED,)) == 1
    Worker(store, "day", tell=print).work()
    assert outcomes(store, "day") == [*[postponed, final] * 2, TryOutcome.DONE], "a retry begins anew"


@pytest.mark.slow
def test_an_item_without_its_package_is_left_for_other_machines_once(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "broken_lacks_a_package")
    name = create(store, problems)
    Worker(store, name, tell=print).work()
    assert outcomes(store) == [TryOutcome.POSTPONED, TryOutcome.FAILED, TryOutcome.DONE]
    assert store.campaign_items(name)[0].reason.endswith("run pip install einops")


def _many(folder: Path, *names: str) -> Path:
    for file in folder.iterdir():
        file.unlink()
    for name in names:
        (folder / f"{name}.py").write_text(f"x = '{name}'\n")
    return folder


@pytest.mark.slow
def test_a_machine_on_which_all_fails_puts_its_items_back_once(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "on_a_sick_machine")
    name = create(store, _many(problems, *"abcdefg"))
    with pytest.raises(
        MachineError,
        match=r"last 5 items failed on this machine and wait again: .* e \(playbook\): torch cannot",
    ):
        Worker(store, name, tell=print).work()
    assert outcomes(store) == [TryOutcome.DOUBTED] * 5
    assert {item.state for item in store.campaign_items(name)} == {ItemState.WAITING}
    Worker(store, name, tell=print).work()  # it ends, although all fail again
    assert {item.state for item in store.campaign_items(name)} == {ItemState.FAILED}
    first = [(t.item, t.ended or 0.0) for t in store.campaign_tries(name) if t.outcome is TryOutcome.FAILED]
    assert [item for item, _ in sorted(first, key=lambda end: end[1])][:2] == [6, 7], "untried ones first"


@pytest.mark.slow
def test_failures_with_a_success_between_them_count(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "on_a_sick_machine")
    name = create(store, _many(problems, "a", "b", "c", "d", "e_good", "f", "g", "h", "i"))
    Worker(store, name, tell=print).work()
    assert store.campaign_progress(name).states[ItemState.FAILED] == 8


def test_the_first_worker_decides_on_which_kind_of_device_all_items_are_measured(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "quick")
    asked = list[str]()
    here = ["cuda"]

    def find(kind: str, *_: object) -> SimpleNamespace:
        asked.append(kind)
        if kind not in ("auto", *here):
            raise UsageError(f"this machine has no {kind}")
        return SimpleNamespace(kind=here[0])

    monkeypatch.setattr(workers, "find_device", find)
    name, said = create(store, problems, device="auto"), list[str]()
    late = Worker(store, name, tell=said.append)
    Worker(store, name, tell=said.append).work()
    assert store.get_campaign(name).device == "cuda"
    assert said[0] == "all items of campaign night are measured on this kind: cuda"
    here[0], asked[:] = "cpu", []
    with pytest.raises(
        MachineError, match=r"campaign night is measured on cuda, and this machine has none: .* has no cuda"
    ):
        late.work()  # it began when none was fixed
    assert asked == ["auto", "cuda"]
    assert store.get_campaign(name).device == "cuda"
    with pytest.raises(MachineError, match="measured on cuda, and this machine has none"):
        Worker(store, name, tell=print).work()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "pause", "why"),
    [
        ("busy_at_first", "BUSY_S", r".*s: run r-1 is being worked on by process 1"),
        (
            "without_its_database_at_first",
            "OUTAGE_S",
            r"good \(playbook\) was given back: database postgresql://host/a cannot be reached",
        ),
    ],
)
def test_an_item_is_given_back(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch, item: str, pause: str, why: str
) -> None:
    (problems / "broken.py").unlink()
    _fake(monkeypatch, item)
    monkeypatch.setattr(workers, pause, 0.1)
    said: list[str] = []
    Worker(store, create(store, problems), tell=said.append).work()
    assert outcomes(store) == [TryOutcome.RELEASED, TryOutcome.DONE]
    assert store.campaign_items("night")[0].lost == 0, "three of these would quarantine it"
    assert re.match(why, said[0])


@pytest.mark.slow
def test_a_worker_takes_no_items_of_others_soon_after_the_database_was_away(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(store, problems)
    store.take_item("night", "elsewhere:1", 0.1)
    monkeypatch.setattr(workers, "BEAT_S", 0.5)
    monkeypatch.setattr(workers, "AWAY_S", 0.0)
    with workers._Heartbeat(store, "night", Claims(store, "night", "here:1", 1.0)):
        time.sleep(1.2)
        assert outcomes(store) == [None]
        monkeypatch.setattr(workers, "AWAY_S", 60.0)
        time.sleep(0.8)
    assert outcomes(store) == [TryOutcome.LOST]


def test_a_heartbeat_goes_on_if_its_campaign_is_removed(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(store, problems)
    monkeypatch.setattr(workers, "BEAT_S", 0.05)
    with workers._Heartbeat(store, "night", Claims(store, "night", "here:1", 1.0)) as heartbeat:
        store.delete_campaign("night")
        time.sleep(0.5)
        assert heartbeat._thread.is_alive()


@pytest.mark.slow
def test_a_machine_that_cannot_work_gives_the_item_back(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body, words in (
        ("no_compiler", "install g"),
        ("full_disk", "free some space"),
        ("before_an_upgrade", "by a newer AgentForge"),
    ):
        _fake(monkeypatch, body)
        with pytest.raises(MachineError, match=words):
            Worker(store, create(store, problems), tell=lambda _: None).work()
    assert outcomes(store) == [TryOutcome.REFUSED] * 3
    assert {(i.state, i.lost) for i in store.campaign_items("night")} == {(ItemState.WAITING, 0)}


@pytest.mark.slow
def test_an_item_that_finds_fault_with_machines_waits_behind_the_others_and_then_fails(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "broken_needs_a_compiler")
    name = create(store, problems)
    with pytest.raises(MachineError, match=r"broken \(playbook\): there is no compiler: install g"):
        Worker(store, name, tell=print).work()
    said: list[str] = []
    Worker(store, name, tell=said.append).work()
    assert [line.partition(" after")[0] for line in said] == [
        "[1/2] good (playbook), done",
        "[2/2] broken (playbook), failed",
    ]
    assert outcomes(store) == [TryOutcome.REFUSED, TryOutcome.FAILED, TryOutcome.DONE]
    assert store.campaign_items(name)[0].reason == "there is no compiler: install g++"


@pytest.mark.slow
def test_a_machine_that_can_do_nothing_fails_no_item(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "no_compiler")
    name = create(store, problems)
    for _ in range(3):  # of two items; as often as something starts the worker again
        with pytest.raises(MachineError, match="install g"):
            Worker(store, name, tell=print).work()
    assert outcomes(store) == [TryOutcome.REFUSED] * 3
    assert {item.state for item in store.campaign_items(name)} == {ItemState.WAITING}


def test_an_item_that_a_machine_refused_which_works_fails_at_the_next_one(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "broken_needs_a_compiler")
    name = create(store, problems)
    for outcome, words in ((TryOutcome.REFUSED, "no compiler"), (TryOutcome.DONE, "")):
        item = store.take_item(name, "elsewhere:1", 600)
        assert item is not None
        store.end_item(item, outcome, words)
    Worker(store, name, tell=print).work()
    assert outcomes(store) == [TryOutcome.REFUSED, TryOutcome.FAILED, TryOutcome.DONE]


PAID = ("llm:anthropic:claude-haiku-4-5",)


def test_a_worker_without_a_key_takes_no_item(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-another-machine")
    name = create(store, problems, arms=PAID)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(MachineError, match=r"there is no key for .*ANTHROPIC_API_KEY"):
        Worker(store, name, tell=print).work()
    assert outcomes(store) == []


def test_a_worker_without_the_campaigns_prices_takes_no_item(store: Store, problems: Path) -> None:
    table = problems.parent / "prices.toml"
    table.write_text("")
    name = create(store, problems, f"llm.prices={table}")
    table.unlink()
    with pytest.raises(MachineError, match=r"price table .*prices\.toml cannot be read"):
        Worker(store, name, tell=print).work()
    assert outcomes(store) == []


@pytest.mark.slow
def test_an_item_whose_key_is_gone_is_given_back(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    keys = Path.cwd() / ".env"
    keys.write_text("ANTHROPIC_API_KEY=sk-that-goes-away\n")
    monkeypatch.setenv("ITEM_KEYS", str(keys))
    _fake(monkeypatch, "without_its_key")
    with pytest.raises(MachineError, match="there is no key for"):
        Worker(store, create(store, problems, arms=PAID), tell=print).work()
    assert outcomes(store) == [TryOutcome.RELEASED]
    assert {item.state for item in store.campaign_items("night")} == {ItemState.WAITING}


@pytest.mark.slow
def test_a_refused_key_ends_the_worker_and_fails_no_item(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "broken_is_refused_its_key")
    name = create(store, problems)
    for _ in range(3):  # the second worker does the other item first
        with pytest.raises(MachineError, match=r"broken \(playbook\) was given back: .* refuses the key"):
            Worker(store, name, tell=print).work()
    assert outcomes(store) == [*[TryOutcome.RELEASED] * 3, TryOutcome.DONE]
    assert store.campaign_items(name)[0].state is ItemState.WAITING


@pytest.mark.slow
def test_an_outage_is_no_fault_of_the_item_that_meets_it(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "broken_meets_two_outages")
    monkeypatch.setattr(workers, "OUTAGE_S", 0.1)
    monkeypatch.setattr(workers, "OUTAGES", 2)  # in a row: the other item comes between these two
    said: list[str] = []
    Worker(store, create(store, problems), tell=said.append).work()
    assert [line.partition(" after")[0] for line in said] == [
        "broken (playbook) was given back: there is no route to anthropic; this worker goes on",
        "[1/2] good (playbook), done",
        "broken (playbook) was given back: there is no route to anthropic; this worker goes on",
        "[2/2] broken (playbook), done",
    ]
    assert outcomes(store) == [TryOutcome.RELEASED, TryOutcome.RELEASED, TryOutcome.DONE, TryOutcome.DONE]
    assert not any(item.lost for item in store.campaign_items("night"))


@pytest.mark.slow
def test_a_long_outage_ends_the_worker_and_fails_no_item(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "in_an_outage")
    monkeypatch.setattr(workers, "OUTAGE_S", 0.1)
    monkeypatch.setattr(workers, "OUTAGES", 3)
    with pytest.raises(MachineError, match="was given back: there is no route"):
        Worker(store, create(store, problems), tell=print).work()
    assert outcomes(store) == [TryOutcome.RELEASED] * 3
    assert {item.state for item in store.campaign_items("night")} == {ItemState.WAITING}


@pytest.mark.slow
def test_a_new_worker_lets_others_renew_their_leases_first(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "quick")
    monkeypatch.setattr(workers, "BEAT_S", 60.0)
    name = create(store, problems)
    slow = store.take_item(name, "elsewhere:1", -1.0)  # its lease ran out while the database was away
    assert slow is not None
    thread = threading.Thread(target=Worker(store, name, tell=print).work)
    thread.start()
    until = time.monotonic() + 60
    while TryOutcome.DONE not in outcomes(store) and time.monotonic() < until:
        time.sleep(0.1)
    assert store.beat_item(slow, 600.0, "searching")
    assert store.end_item(slow, TryOutcome.DONE)
    thread.join(60)
    assert outcomes(store) == [TryOutcome.DONE] * 2


def test_nothing_is_judged_on_a_full_disk(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LEAST_DISK", 1 << 60)  # more than any disk has
    with pytest.raises(MachineError, match=r"is full \(\d+ MiB are free\): free some space"):
        Worker(store, create(store, problems), tell=print).work()
    assert outcomes(store) == []


@pytest.mark.slow
def test_an_item_during_which_the_disk_became_full_is_given_back(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "of_a_run")
    worker = Worker(store, create(store, problems), tell=print)
    run = worker._run

    def fill(*arguments: Any) -> str:
        found = run(*arguments)
        monkeypatch.setattr(workers, "LEAST_DISK", 1 << 60)
        return found

    monkeypatch.setattr(worker, "_run", fill)
    with pytest.raises(MachineError, match="is full"):
        worker.work()
    assert outcomes(store) == [TryOutcome.RELEASED]
    item = store.campaign_items("night")[0]
    assert (item.state, item.run) == (ItemState.WAITING, None), "it begins anew"
    assert store.campaign_runs("night") == {item.id: ["run-1"]}


def test_a_worker_without_the_campaigns_device_takes_no_item(store: Store, problems: Path) -> None:
    with pytest.raises(MachineError, match="'tpu' is not one of the devices"):
        Worker(store, create(store, problems, device="tpu"), tell=print).work()
    assert outcomes(store) == []


@pytest.mark.slow
def test_a_process_whose_lease_is_lost_is_ended(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problems / "broken.py").unlink()
    _fake(monkeypatch, "chatting")
    monkeypatch.setattr(workers, "BEAT_S", 0.2)
    monkeypatch.setattr(workers, "LEASE_S", -1.0)  # run out as soon as it is given
    said: list[str] = []
    Worker(store, create(store, problems), tell=said.append).work()
    assert said == ["good (playbook) was given to another worker"] * 3
    (item,) = store.campaign_items("night")
    assert item.state is ItemState.QUARANTINED
    assert "died; it said last: " in item.reason


def test_a_paused_campaign_sends_its_workers_home(store: Store, problems: Path) -> None:
    name = create(store, problems)
    store.set_campaign_state(name, CampaignState.PAUSED)
    said: list[str] = []
    Worker(store, name, tell=said.append).work()
    assert said == ["campaign night is paused; continue it with: agentforge campaign resume night"]


def test_a_worker_of_another_version_is_refused(store: Store, problems: Path) -> None:
    with pytest.raises(UsageError, match=r"started by agentforge 0\.0\.7, and this is"):
        Worker(store, create(store, problems, version="0.0.7"), tell=print)


def test_a_problem_travels_with_its_text(home: Path, problems: Path) -> None:
    file, settings = problems / "good.py", load_settings()
    problem = SuiteProblem(
        id="good", target=f"{file}:Model", file=str(file), source=file.read_text(encoding="utf-8")
    )
    assert local_target(problem, settings) == f"{file}:Model"
    file.write_text("changed = 1\n")
    copied, _, name = local_target(problem, settings).rpartition(":")
    assert Path(copied).read_text() == problem.source
    assert (Path(copied).is_relative_to(home), Path(copied).name, name) == (True, "good.py", "Model")


def test_a_worker_with_other_code_says_so_once(
    store: Store, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(monkeypatch, "quick")
    said: list[str] = []
    Worker(store, create(store, problems, code="0123456789abcdef"), tell=said.append).work()
    (told,) = (line for line in said if "judges here" in line)
    assert told == (
        f"the code that judges here ({judging_code()}) is not that of the campaign's start "
        "(0123456789abcdef): the report says how many items each code judged"
    )
    assert said[0] == told
    assert [item.state for item in store.campaign_items("night")] == [ItemState.DONE] * 2


def test_a_copy_of_a_problem_stays_whole_for_its_readers(home: Path, problems: Path) -> None:
    settings = load_settings()
    problem = SuiteProblem(id="good", target="/gone/good.py", file="/gone/good.py", source="x = 1\n")
    copied = Path(local_target(problem, settings))
    before = copied.stat()
    local_target(problem, settings)
    assert (copied.stat().st_ino, copied.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    copied.write_text("torn")
    with copied.open() as reader:
        local_target(problem, settings)
        assert reader.read() == "torn", "what a reader has open is not emptied"
    assert copied.read_text() == problem.source
    assert list(copied.parent.iterdir()) == [copied]


def test_a_worker_says_once_that_it_waits_for_its_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "POLL_S", 0.0)
    ends = iter(
        [UnreachableError("it is away"), UnreachableError("it is away"), StoreError("the disk is full")]
    )

    def call() -> None:
        raise next(ends)

    said: list[str] = []
    with pytest.raises(StoreError, match="disk is full"):  # at once: waiting frees no space
        workers.patiently(call, said.append)
    assert said == ["it is away; this worker waits for it, at most 5 minutes"]


_WORK = """
import sys
from agentforge.campaigns import worker
from agentforge.store import Store

worker._ITEM, worker.LEASE_S, worker.BEAT_S, worker.POLL_S = sys.argv[2], 1.0, 0.2, 0.1
worker.Worker(Store(sys.argv[1]), sys.argv[3], tell=print).work()
"""


def start_worker(body: str, url: str, campaign: str = "night") -> subprocess.Popen[str]:
    """A worker in a process, with short leases and one of the fake items."""
    command = [sys.executable, "-c", _WORK, url, f"tests.campaigns.fake_items:{body}", campaign]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], text=True)


def _wait_for_the_end_of(pid: int) -> None:
    until = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.slow
def test_workers_of_two_campaigns_take_turns_on_one_gpu(
    store: Store, problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problems / "broken.py").unlink()
    create(store, problems)
    create(store, problems, name="day")
    (turns := tmp_path / "turns").mkdir()
    monkeypatch.setenv("ITEM_TURNS", str(turns))
    started = [start_worker("in_turn", load_settings().url, name) for name in ("night", "day")]
    assert [worker.wait(120) for worker in started] == [0, 0]
    first, second = sorted(tuple(map(float, path.read_text().split())) for path in turns.glob("*.turn"))
    assert first[1] <= second[0]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_worker_that_ends_leaves_its_item_and_no_process(
    store: Store,
    problems: Path,
    tmp_path: Path,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (problems / "broken.py").unlink()
    create(store, problems)
    monkeypatch.setenv("ITEM_PIDS", str(tmp_path / "pids"))
    first = start_worker("asleep", load_settings().url)
    until = time.monotonic() + 60
    while not (tmp_path / "pids").exists() and time.monotonic() < until:
        time.sleep(0.1)
    first.send_signal(number)
    first.wait(30)
    _wait_for_the_end_of(int((tmp_path / "pids").read_text().split()[0]))
    assert start_worker("quick", load_settings().url).wait(60) == 0
    (item,) = store.campaign_items("night")
    assert item.state is ItemState.DONE
    lost = TryOutcome.LOST if number == signal.SIGKILL else TryOutcome.RELEASED
    assert outcomes(store) == [lost, TryOutcome.DONE]

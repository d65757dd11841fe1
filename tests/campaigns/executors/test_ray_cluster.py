"""Workers as actors of a real Ray cluster: whatever part of it is killed, no item is lost or done twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agentforge.campaigns.executors import ray_cluster
from agentforge.campaigns.executors.ray_cluster import Resources, check_ray, run_actors
from agentforge.campaigns.start import plan_campaign
from agentforge.config import load_settings
from agentforge.schema import Arm, ItemState, MachineError, TryOutcome, UsageError
from agentforge.store import Store

ITEMS = 3
PLAYBOOK = Arm(name="playbook", agent="playbook")


def test_a_machine_without_ray_is_told_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda _: None)
    with pytest.raises(MachineError, match=r"pip install '\.\[ray\]'"):
        check_ray(Resources())


@pytest.mark.parametrize("wrong", [Resources(cpus=0), Resources(cpus=float("nan")), Resources(gpus=-1)])
def test_resources_that_are_none_are_refused(wrong: Resources) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UsageError, match="--cpus must be above 0"):
        check_ray(wrong)


@pytest.fixture
def cluster(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[psutil.Process]:
    """The head of a cluster of one machine, which gives up 3 s after its head has died."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    folder = Path(tempfile.mkdtemp(prefix="af-ray-"))  # not below tmp_path: a socket's path must be short
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "3")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # a token would be kept in the user's home
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", f"--temp-dir={folder}"]
    options = ["--num-cpus=2", "--num-gpus=0", "--port=0"]
    options += ["--include-dashboard=false", "--disable-usage-stats"]
    try:
        done = subprocess.run([*ray, *options], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        head = next(p for p in _processes(folder) if "gcs_server" in p.name())
        monkeypatch.setenv("RAY_ADDRESS", (folder / "ray_current_cluster").read_text().strip())
        yield head
    finally:
        for process in _processes(folder):
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _processes(folder: Path) -> list[psutil.Process]:
    """Those of the cluster: all name a file of its folder."""
    return [process for process in psutil.process_iter() if str(folder) in _command(process)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _campaign(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agentforge.cli", "campaign", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _until(found: Callable[[], object]) -> None:
    until = time.monotonic() + 90
    while not found():
        assert time.monotonic() < until
        time.sleep(0.1)


def _start(folder: Path, workers: int) -> subprocess.Popen[str]:
    """A campaign of items that nap and fail."""
    folder.mkdir()
    for number in range(ITEMS):
        (folder / f"p{number}.py").write_text("import time\ntime.sleep(1)\nraise ImportError('it napped')\n")
    return _campaign(
        "start", f"folder:{folder}", "--name", "night", "--yes", "--device", "cpu",
        "--executor", "ray", "--workers", str(workers),
    )  # fmt: skip


def _running(store: Store) -> list[str]:
    return [item.worker for item in store.campaign_items("night") if item.state is ItemState.RUNNING]


@pytest.mark.slow
def test_workers_without_room_begin_when_others_end_and_the_rest_is_left_out(
    home: Path, tmp_path: Path, cluster: psutil.Process
) -> None:
    started = _start(tmp_path / "problems", 5)  # on two CPUs
    try:
        _until((home / "agentforge.db").exists)
        with Store(load_settings().url) as store:
            _until(lambda: len(_running(store)) == 2)
            for worker in _running(store):
                psutil.Process(int(worker.rpartition(":")[2].partition(".")[0])).terminate()
            _, said = started.communicate(timeout=200)
            assert started.returncode == 0, said
            assert "the Ray cluster has room for 2 of 5 workers at a time; the others wait" in said
            assert {item.state for item in store.campaign_items("night")} == {ItemState.FAILED}
            assert len({found.worker for found in store.campaign_tries("night")}) > 2
    finally:
        started.kill()


@pytest.mark.slow
def test_workers_without_a_place_are_named_and_those_of_a_finished_campaign_are_given_up(
    home: Path, tmp_path: Path, cluster: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two CPUs; the items never end, and the second look says that no item is left."""
    (folder := tmp_path / "problems").mkdir()
    for number in range(ITEMS):
        (folder / f"p{number}.py").write_text("import time\ntime.sleep(600)\n")
    suite, settings = f"folder:{folder}", load_settings()
    campaign, problems = plan_campaign(suite, (PLAYBOOK,), settings, device="cpu", name="night")
    monkeypatch.setattr(ray_cluster, "WAIT_S", 10.0)
    looks, said = iter([False, True]), list[str]()
    with Store(settings.url) as store:
        store.create_campaign(campaign, problems)
        codes = run_actors(
            "night", 4, (), Resources(), device="cpu", url=settings.url, tell=said.append,
            finished=lambda: next(looks),
        )  # fmt: skip
        assert not store.campaign_progress("night").finished
    assert codes == []
    (named,) = (line for line in said if "has no place yet for these of the 4 workers" in line)
    numbers = named.partition("workers: ")[2].partition(";")[0].split(", ")
    assert len(numbers) >= 2 and set(numbers) <= {"1", "2", "3", "4"}
    assert named.endswith("each needs 1 CPUs and 0 GPUs of one machine")


@pytest.mark.slow
def test_kill_9_of_an_actor_and_of_the_head_loses_nothing(
    home: Path, tmp_path: Path, cluster: psutil.Process
) -> None:
    started = _start(tmp_path / "problems", 2)
    _until((home / "agentforge.db").exists)
    with Store(load_settings().url) as store:
        _until(lambda: len(_running(store)) == 2)
        actors = [p for p in psutil.process_iter() if "ray::_Worker" in _command(p)]
        assert len(actors) == 2
        actors[0].kill()
        _until(lambda: store.campaign_progress("night").over)
        cluster.kill()
        _, said = started.communicate(timeout=120)
        assert started.returncode == 2
        assert "nothing is lost: see the messages above" in said
        assert not store.campaign_progress("night").finished, "the test's items are too short"
        again = _campaign("work", "night")
        assert again.communicate(timeout=200) and again.returncode == 0
        items, tries = store.campaign_items("night"), store.campaign_tries("night")
    assert {item.state for item in items} == {ItemState.FAILED}
    assert all("it napped" in item.reason for item in items)
    ended = [found.item for found in tries if found.outcome is TryOutcome.FAILED]
    assert sorted(ended) == sorted(item.id for item in items)
    # A worker whose actor is killed gives its item back, if the machine is not too busy for that.
    assert {found.outcome for found in tries} <= {TryOutcome.FAILED, TryOutcome.RELEASED, TryOutcome.LOST}

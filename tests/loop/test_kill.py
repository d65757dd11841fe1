"""kill -9 at random moments, then go on: nothing finished is repeated, and the result is the same."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from agentforge.schema import AttemptEvaluated, AttemptStatus
from agentforge.search import policies
from agentforge.store import Store

from .conftest import make_run
from .killed import search

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.loop.killed", "agentforge.loop.graph", "alembic.command"])
"""Most of a search's time would be its imports."""


MODELS = ("openai:a", "openai:b", "openai:c")


def start(
    folder: Path, children: int = 1, policy: str = "best-first", models: tuple[str, ...] = ()
) -> BaseProcess:
    process = FORKS.Process(target=search, args=(folder, children, policy, models))
    process.start()
    return process


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def finish(folder: Path, process: BaseProcess) -> str:
    """Wait for the end of a search, and how it ended."""
    process.join(120)
    assert process.exitcode == 0
    return (folder / "result.txt").read_text()


def prepare(folder: Path) -> None:
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
        store.create_run(make_run())


def wait_for_a_start(folder: Path, process: BaseProcess, lines: int) -> bool:
    """Wait until the search has begun `lines` evaluations; False if it ended before."""
    log = folder / "evaluations.txt"
    while process.is_alive():
        if log.exists() and len(log.read_text().splitlines()) >= lines:
            return True
        time.sleep(0.005)
    return False


def outcome(folder: Path) -> list[tuple[str | None, str | None, AttemptStatus, str]]:
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
        return [(a.parent, a.solution, a.status, a.error) for a in store.attempts("run")]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "children"), [(1, 1), (3, 3)])
def test_killed_again_and_again(tmp_path: Path, seed: int, children: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        prepare(folder)
    assert finish(whole, start(whole, children)) == "2 8"

    generator, kills = random.Random(seed), 0
    for begun in range(1, 40, 2):
        process = start(killed, children)
        if wait_for_a_start(killed, process, begun):
            time.sleep(generator.uniform(0.0, 0.12))
            process.kill()
            kills += 1
        process.join(120)
        if process.exitcode == 0:
            assert finish(killed, process) == "2 8"
            break
        assert process.exitcode == -signal.SIGKILL
    else:
        pytest.fail("the search never came to its end")

    assert kills >= 2
    assert outcome(killed) == outcome(whole)
    with Store(f"sqlite:///{killed / 'agentforge.db'}") as store:
        finished = [e for e in store.events("run") if isinstance(e, AttemptEvaluated)]
        fresh = Counter((e.attempt, e.level) for e in finished if not e.reused)
    assert max(fresh.values()) == 1
    begun_twice = Counter((killed / "evaluations.txt").read_text().splitlines())
    assert sum(begun_twice.values()) <= len(begun_twice) + kills  # at most the one that was cut off


@pytest.mark.slow
def test_killed_once_in_an_evaluation(tmp_path: Path) -> None:
    prepare(tmp_path)
    process = start(tmp_path)
    assert wait_for_a_start(tmp_path, process, 3)
    kill(process)
    assert finish(tmp_path, start(tmp_path)) == "2 8"
    begun = Counter((tmp_path / "evaluations.txt").read_text().splitlines())
    assert max(begun.values()) <= 2
    assert sum(count == 2 for count in begun.values()) <= 1


@pytest.mark.slow
def test_a_damaged_checkpoint_costs_nothing(tmp_path: Path) -> None:
    prepare(tmp_path)
    process = start(tmp_path)
    assert wait_for_a_start(tmp_path, process, 3)
    kill(process)
    for leftover in tmp_path.glob("checkpoint.db*"):
        leftover.unlink()
    (tmp_path / "checkpoint.db").write_bytes(b"rubbish" * 1000)
    assert finish(tmp_path, start(tmp_path)) == "2 8"
    assert (tmp_path / "checkpoint.damaged").exists()


@pytest.mark.slow
@pytest.mark.parametrize("policy", policies.names())
def test_a_killed_search_decides_as_the_whole_one_under_every_policy(tmp_path: Path, policy: str) -> None:
    for name, kills in (("whole", ()), ("killed", (2, 5))):
        folder = tmp_path / name
        folder.mkdir()
        prepare(folder)
        for begun in kills:
            process = start(folder, 2, policy)
            assert wait_for_a_start(folder, process, begun)
            kill(process)
        finish(folder, start(folder, 2, policy))
    assert len(outcome(tmp_path / "whole")) > 3
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("children", [1, 2])
def test_a_killed_search_draws_the_same_models(tmp_path: Path, children: int) -> None:
    drawn = {}
    for name, kills in (("whole", ()), ("killed", (1, 4, 7))):
        folder = tmp_path / name
        folder.mkdir()
        prepare(folder)
        for begun in kills:
            process = start(folder, children, models=MODELS)
            assert wait_for_a_start(folder, process, begun)
            kill(process)
        finish(folder, start(folder, children, models=MODELS))
        with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
            drawn[name] = [a.coder for a in store.attempts("run")]
    assert set(drawn["whole"]) == set(MODELS)
    assert drawn["killed"] == drawn["whole"]

"""One process at a time works on a run."""

from __future__ import annotations

import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, text

from agentforge.isolation.procfs import boot_id
from agentforge.schema import BusyError, UsageError
from agentforge.store import Store

from . import nouns

_HOLD = """
import sys, time
from agentforge.store import Store
with Store(sys.argv[1]) as store, store.lock_run(sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def locked(store: Store) -> Store:
    store.create_run(nouns.run())
    return store


def _holder(url: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, url, nouns.run().id], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_a_live_process_keeps_it_and_a_killed_one_loses_it(locked: Store, url: str) -> None:
    with _holder(url) as child:
        try:
            with pytest.raises(BusyError, match=f"process {child.pid}"), locked.lock_run(nouns.run().id):
                pytest.fail("two processes on one run")
            child.kill()
            # Not reaped yet: a zombie holds nothing either.
            _until_zombie(child.pid)
            with locked.lock_run(nouns.run().id):
                pass
        finally:
            child.kill()


def _until_zombie(pid: int) -> None:
    from pathlib import Path

    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        pass


def test_the_same_process_cannot_take_it_twice(locked: Store) -> None:
    with (
        locked.lock_run(nouns.run().id),
        pytest.raises(UsageError, match="worked on"),
        locked.lock_run(nouns.run().id),
    ):
        pytest.fail("taken twice")


def test_free_again_after_an_exception(locked: Store) -> None:
    with pytest.raises(RuntimeError), locked.lock_run(nouns.run().id):
        raise RuntimeError
    with locked.lock_run(nouns.run().id):
        pass


def test_other_runs_are_free(locked: Store) -> None:
    locked.create_run(nouns.run("other"))
    with locked.lock_run(nouns.run().id), locked.lock_run("other"):
        pass


def test_no_such_run(locked: Store) -> None:
    with pytest.raises(UsageError, match="no run"), locked.lock_run("nothing"):
        pytest.fail("locked nothing")


def _change(url: str, assignment: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE run_locks SET {assignment}"))
    engine.dispose()


@pytest.mark.parametrize("assignment", ["started = '1'", "boot = 'an earlier boot'"])
def test_a_recycled_pid_and_a_reboot_free_it(locked: Store, url: str, assignment: str) -> None:
    with locked.lock_run(nouns.run().id):
        _change(url, assignment)
        with locked.lock_run(nouns.run().id):
            pass


def test_another_namespace_of_processes_holds_it(locked: Store, url: str) -> None:
    """Containers that share their host's name count processes from 1 each."""
    with locked.lock_run(nouns.run().id):
        _change(url, f"boot = '{boot_id()}:1', pid = 1")
        with pytest.raises(UsageError, match="worked on by process 1"), locked.lock_run(nouns.run().id):
            pytest.fail("taken from a process that we cannot see")
        _change(url, f"boot = '{boot_id()}'")  # of an older version; our process 1 has another start
        with locked.lock_run(nouns.run().id):
            pass


def test_a_worker_takes_it_from_a_container_that_was_restarted(locked: Store, url: str) -> None:
    run = nouns.run().id
    with locked.lock_run(run):
        locked.free_run(run)
        assert run in locked.worked_on(), "this process has it"
        _change(url, f"boot = '{boot_id()}:1', host = 'elsewhere'")
        locked.free_run(run)
        assert run in locked.worked_on(), "another machine has it"
        _change(url, f"host = '{socket.gethostname()}'")
        locked.free_run(run)
        assert run not in locked.worked_on()
        with locked.lock_run(run):
            pass


def test_another_machine_holds_it_while_events_come(locked: Store, url: str) -> None:
    long_ago = (datetime.now(UTC) - timedelta(days=1)).isoformat(sep=" ")
    with locked.lock_run(nouns.run().id):
        _change(url, "host = 'elsewhere', pid = 77")
        with pytest.raises(UsageError, match="77 on elsewhere"), locked.lock_run(nouns.run().id):
            pytest.fail("taken from a machine that we cannot see")
        _change(url, f"taken = '{long_ago}'")
        locked.append_event(nouns.run().id, nouns.event("alive"))
        with pytest.raises(UsageError), locked.lock_run(nouns.run().id):
            pytest.fail("an event of just now is a sign of life")
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE events SET time = '{long_ago}'"))
        engine.dispose()
        with locked.lock_run(nouns.run().id):
            pass

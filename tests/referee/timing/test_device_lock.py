"""One timing at a time: who waits says so, and not beyond the end of its run."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import pytest

from agentforge.referee.timing import device_lock as locks
from agentforge.referee.timing.device_lock import WAITING, device_lock
from agentforge.schema import TimeEnded


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a machine's locks."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("agentforge.referee.timing.device_lock._MACHINE", "locks")
    return tmp_path / "locks"


def taken_elsewhere(home: Path, name: str = "cpu.timing") -> bool:
    """Whether a process with this home has to wait."""
    try:
        with device_lock(home, name, until=time.monotonic()):
            return False
    except TimeEnded:
        return True


def test_two_homes_on_one_machine_take_turns(machine: Path) -> None:
    first, second = machine.parent / "a", machine.parent / "b"
    with device_lock(first):
        assert taken_elsewhere(second)
        assert not taken_elsewhere(second, "gpu-1.timing")
    assert not taken_elsewhere(second)


def test_other_users_may_lock_what_this_one_made(machine: Path, tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        with device_lock(tmp_path / "a"):
            assert machine.stat().st_mode & 0o7777 == 0o1777
            assert (machine / "cpu.timing.lock").stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(mask)


def test_a_lock_whose_file_was_removed_is_taken_anew(machine: Path, tmp_path: Path) -> None:
    with device_lock(tmp_path / "a"):
        (machine / "cpu.timing.lock").unlink()
        with device_lock(tmp_path / "b"):
            assert taken_elsewhere(tmp_path / "c")


@pytest.mark.parametrize(("failures", "waits"), [(2, True), (1000, False)])
def test_what_another_user_makes_right_now_is_tried_again(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, waits: bool
) -> None:
    opened, left = locks._opened, [failures]

    def closed(path: Path) -> int:
        if path.parent == machine and left[0]:
            left[0] -= 1
            raise PermissionError(f"{path} has no mode yet")
        return opened(path)

    with device_lock(tmp_path / "a"):
        monkeypatch.setattr(locks, "_opened", closed)
        begin = time.monotonic()
        assert taken_elsewhere(tmp_path / "b") is waits
        assert time.monotonic() - begin < 20


def test_a_cache_that_is_removed_while_one_waits_is_made_anew(machine: Path, tmp_path: Path) -> None:
    machine.touch()  # only the lock of the home is left
    home = tmp_path / "a"

    def remove(text: str) -> None:
        assert text == WAITING
        shutil.rmtree(home)

    with device_lock(home), device_lock(home, until=time.monotonic() + 20, progress=remove):
        assert taken_elsewhere(home)


@pytest.mark.parametrize("way", ["link to a folder", "link to a file", "file", "pipe"])
def test_what_is_in_the_way_leaves_the_lock_of_the_home(machine: Path, tmp_path: Path, way: str) -> None:
    other, lock = tmp_path / "other", machine / "cpu.timing.lock"
    if way == "link to a folder":
        other.mkdir()
        machine.symlink_to(other)
    elif way == "file":
        machine.touch()
    else:
        machine.mkdir()
        lock.symlink_to(other) if way == "link to a file" else os.mkfifo(lock)
    with device_lock(tmp_path / "a"):
        assert taken_elsewhere(tmp_path / "a")
        assert not taken_elsewhere(tmp_path / "b")
    assert not list(other.glob("*")) and not other.is_file()


def test_a_lock_that_another_process_keeps_ends_the_run_in_time(tmp_path: Path) -> None:
    said: list[str] = []
    with device_lock(tmp_path):
        begin = time.monotonic()
        late = device_lock(tmp_path, until=begin + 0.3, progress=said.append)
        with pytest.raises(TimeEnded, match=r"held .*timing\.lock"), late:
            pass
        assert 0.2 < time.monotonic() - begin < 20
    assert said == [WAITING]
    with device_lock(tmp_path, until=begin, progress=said.append):
        assert said == [WAITING], "a free lock is taken at once"


def test_a_lock_is_taken_when_it_becomes_free(tmp_path: Path) -> None:
    first = device_lock(tmp_path)
    first.__enter__()
    threading.Timer(0.3, lambda: first.__exit__(None, None, None)).start()
    begin = time.monotonic()
    with device_lock(tmp_path):
        assert time.monotonic() - begin > 0.2

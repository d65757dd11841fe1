"""One timing at a time: who waits says so, and not beyond the end of its run."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from agentforge.referee.timing.device_lock import WAITING, device_lock
from agentforge.schema import TimeEnded


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

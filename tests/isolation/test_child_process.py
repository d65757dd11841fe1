from __future__ import annotations

import os
import signal
import threading
import time

import psutil
import pytest

from agentforge.isolation import child_process, procfs
from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.schema import TargetError, TimeEnded

HERE = "tests.isolation.child_tasks"


def run(task: str, payload: dict | None = None, **options):
    return run_child(f"{HERE}:{task}", payload or {}, **{"timeout_s": 60.0, **options})


def test_returns_what_the_task_returns():
    assert run("echo", {"n": [1, None, "ü\n"]}) == {"n": [1, None, "ü\n"]}


def test_progress_comes_in_order_and_prints_do_not(capfd):
    lines: list[str] = []
    run("talk", progress=lines.append)
    assert lines == ["one", "two", "three"]
    assert "noise" not in capfd.readouterr().out


def test_answers_larger_than_a_pipe():
    assert run("large") == "x" * 3_000_000


def test_lone_surrogates_are_escaped():
    lines: list[str] = []
    with pytest.raises(ChildFailure, match=r"half a pair \\udcff") as caught:
        run("odd", progress=lines.append)
    assert lines == ["half a pair \\udcff"]
    caught.value.traceback.encode()


def test_our_own_errors_come_back_as_themselves():
    with pytest.raises(TargetError, match="mend it"):
        run("refuse")


@pytest.mark.parametrize(
    ("task", "kind", "text"),
    [
        ("fail", "raised", "KeyError: 'lost'"),
        ("leave", "raised", "SystemExit: 4"),
        ("vanish", "crashed", "exit code 7"),
        ("crash", "crashed", "SIGSEGV"),
        ("killed", "out_of_memory", "more memory"),
        ("hoard", "out_of_memory", "0.1 GiB"),
    ],
)
def test_each_way_to_fail_has_its_kind(task, kind, text):
    with pytest.raises(ChildFailure, match=text) as caught:
        run(task, memory_bytes=100 << 20)
    assert caught.value.kind == kind


def test_a_child_without_a_limit_of_memory_names_none():
    with pytest.raises(ChildFailure, match=r"^it needs more memory than is free here$"):
        run("killed", memory_bytes=0)


def test_free_memory_is_what_the_control_group_still_grants(monkeypatch):
    monkeypatch.setattr(child_process, "free_memory", lambda: 100 << 20)
    assert child_process.available_memory() == int(0.9 * (100 << 20))
    with pytest.raises(ChildFailure, match=r"0\.1 GiB"):
        run("hoard")
    monkeypatch.setattr(child_process, "free_memory", lambda: 0)
    assert child_process.available_memory() == 1, "0 sets no limit"


def test_a_raised_error_keeps_its_traceback():
    with pytest.raises(ChildFailure) as caught:
        run("fail")
    assert caught.value.error_type == "KeyError"
    assert "child_tasks.py" in caught.value.traceback


def test_time_out_ends_the_child_and_what_it_detached(tmp_path, monkeypatch):
    monkeypatch.setattr(child_process, "_SILENCE_S", 0.2)
    asked = []
    monkeypatch.setattr(procfs, "starved", lambda pids: asked.extend(pids) or True)
    pid_file, lines = tmp_path / "pid", []
    with pytest.raises(ChildFailure) as caught:
        payload = {"pid_file": str(pid_file), "detached": True}
        run("spawn_and_hang", payload, timeout_s=4.0, progress=lines.append)
    assert caught.value.kind == "timeout"
    assert caught.value.starved
    assert int(pid_file.read_text()) in asked, "it was asked about while it ran"
    assert gone(int(pid_file.read_text()))
    assert lines[-1].startswith("still hanging; ")
    assert "of at most 4 s are over" in lines[-1]


def test_the_end_of_the_callers_time_ends_the_child_and_is_no_failure_of_it(tmp_path):
    pid_file = tmp_path / "pid"
    with pytest.raises(TimeEnded, match=r"in the middle of .*:spawn_and_hang"):
        run("spawn_and_hang", {"pid_file": str(pid_file)}, end=time.monotonic() + 4.0)
    assert gone(int(pid_file.read_text()))
    with pytest.raises(TimeEnded, match=r"before .*:echo began"):
        run("echo", end=time.monotonic() - 1.0)
    assert run("echo", {"n": 1}, end=time.monotonic() + 100.0) == {"n": 1}


def test_ctrl_c_ends_the_child(tmp_path):
    pid_file = tmp_path / "pid"

    def interrupt_when_running() -> None:
        while not (pid_file.exists() and pid_file.read_text()):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_when_running, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run("spawn_and_hang", {"pid_file": str(pid_file)})
    assert gone(int(pid_file.read_text()))


def test_a_daemon_that_a_child_left_ends(tmp_path):
    pid_file = tmp_path / "pid"
    run("leave_a_daemon", {"pid_file": str(pid_file)})
    assert gone(int(pid_file.read_text()))


def gone(pid: int) -> bool:
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False

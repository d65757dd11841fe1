from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from agentforge.isolation import child_server
from agentforge.isolation.child_process import ChildFailure, run_child
from tests.isolation.test_child_process import HERE, gone, run

ROOT = Path(__file__).parents[2]


def test_children_have_one_server_and_are_as_processes_started_now(tmp_path, monkeypatch):
    first = run("surroundings")
    monkeypatch.setenv("AGENTFORGE_TEST", "ü")
    monkeypatch.chdir(tmp_path)
    second = run("surroundings", env={"TMPDIR": str(tmp_path)})
    assert first["server"] == second["server"]
    assert second["cwd"] == second["temporary"] == str(tmp_path)
    assert second["environment"]["AGENTFORGE_TEST"] == "ü"
    assert "AGENTFORGE_TEST" not in first["environment"]
    assert first["draw"] != second["draw"]


def test_what_an_import_may_read_needs_another_server(monkeypatch):
    first = run("surroundings")["server"]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert run("surroundings")["server"] != first
    assert gone(first)


def test_a_module_of_ours_is_imported_before_the_fork():
    with pytest.raises(ChildFailure):
        run_child("agentforge.problems.kernelbench:load_problem", {}, timeout_s=60.0)
    server = psutil.Process(run("surroundings")["server"])
    assert any("/torch/lib/" in mapped.path for mapped in server.memory_maps())


def test_what_torch_sets_itself_needs_no_other_server(monkeypatch, tmp_path):
    first = run("surroundings")["server"]
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    second = run("surroundings")
    assert second["server"] == first
    assert second["environment"]["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path)


def test_ctrl_c_does_not_wait_for_an_import(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # another server
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_child("agentforge.profiling.worker:profile", {}, timeout_s=60.0)
    assert time.monotonic() - begin < 1.5  # of more than 3 s
    assert run("echo", {"n": 1}) == {"n": 1}


def test_children_of_a_child_have_a_server_below_it():
    found = run("below", serves=True)
    assert found["above"] == found["own"]
    assert gone(found["server"])


def test_a_server_ends_when_it_has_nothing_to_do(monkeypatch):
    monkeypatch.setattr(child_server, "_IDLE_S", 0.2)
    server = run("surroundings")["server"]
    assert gone(server)
    assert run("echo", {"n": 1}) == {"n": 1}


def test_threads_share_a_server():
    with ThreadPoolExecutor(4) as threads:
        servers = {found["server"] for found in threads.map(lambda _: run("surroundings"), range(8))}
    assert len(servers) == 1


def test_a_killed_server_is_replaced(tmp_path):
    server, pid_file = run("surroundings")["server"], tmp_path / "pid"

    def kill_when_running() -> None:
        while not (pid_file.exists() and pid_file.read_text()):
            time.sleep(0.02)
        os.kill(server, signal.SIGKILL)

    killer = threading.Thread(target=kill_when_running)
    killer.start()
    with pytest.raises(ChildFailure):
        run("spawn_and_hang", {"pid_file": str(pid_file), "detached": True})
    killer.join()
    assert gone(int(pid_file.read_text()))
    assert run("echo", {"n": 1}) == {"n": 1}


def test_all_end_with_a_killed_caller(tmp_path):
    pid_file = tmp_path / "pid"
    code = (
        "from agentforge.isolation.child_process import run_child\n"
        f"run_child('{HERE}:spawn_and_hang', {{'pid_file': {str(pid_file)!r}}}, timeout_s=60)"
    )
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    below = [p.pid for p in psutil.Process(caller.pid).children(recursive=True)]
    assert len(below) == 4  # the server, a watcher, the child, and what it started
    caller.kill()
    caller.wait()
    assert all(map(gone, below))


def test_what_an_import_skips_in_the_path_is_skipped(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, Path("somewhere"), None])
    assert run("echo", {"n": 1}) == {"n": 1}

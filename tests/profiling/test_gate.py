"""A gate keeps another process waiting, and lets it go on whatever happens to the one that shut it."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from agentforge.profiling import profile_target
from agentforge.profiling.gate import Gate, pass_gate, shut_until
from tests.profiling.test_profile import DEVICE, ROOFLINE, target


def waits_at(path: str) -> tuple[Thread, list[str], Event]:
    """A thread in front of a gate, what it said, and whether it waits."""
    said, shut = list[str](), Event()

    def go() -> None:
        pass_gate(path, shut.set)
        said.append("through")

    thread = Thread(target=go)
    thread.start()
    return thread, said, shut


def test_a_gate_opens_when_all_is_ready() -> None:
    ready = Event()
    with shut_until(lambda: ready.wait(60) and None) as path:
        thread, said, shut = waits_at(path)
        assert shut.wait(60) and not said
        ready.set()
        thread.join(60)
        assert said == ["through"]
        pass_gate(path, lambda: said.append("shut again"))
    assert said == ["through"]
    assert not Path(path).parent.exists()


def test_who_waits_passes_if_the_gate_is_not_needed_any_more() -> None:
    never = Event()
    with shut_until(lambda: never.wait(60) and None) as path:
        thread, said, shut = waits_at(path)
        assert shut.wait(60)
    thread.join(60)
    never.set()
    assert said == ["through"]


def _shut(sender: multiprocessing.connection.Connection) -> None:
    sender.send(Gate().path)
    time.sleep(600)


def test_who_waits_passes_if_the_gates_process_is_killed() -> None:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_shut, args=(sender,))
    process.start()
    thread, said, shut = waits_at(receiver.recv())
    assert shut.wait(60) and not said
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    thread.join(60)
    process.join()
    assert said == ["through"]


@pytest.mark.slow
def test_a_profile_loads_and_exports_before_all_is_ready_and_times_nothing() -> None:
    lines: list[str] = []

    def ready() -> None:
        until = time.monotonic() + 100.0
        while not any(line.startswith("waiting") for line in lines) and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)
        lines.append("ready")

    made = target("LlamaBlock", "[torch.randn(4, 16, 32)]")
    profile_target(made, DEVICE, ROOFLINE, progress=lines.append, ready=ready)
    order = [word for line in lines if (word := line.split()[0]) != "still"]
    assert order[:5] == ["building", "exporting", "waiting", "ready", "timing"]

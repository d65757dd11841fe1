"""Cancelled calls: a thread that waits for one is free at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from agentforge.llm._base import CallFailed
from agentforge.llm.providers.background import interruptible, wait


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Where tests run in the background, SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


async def saying(what: str) -> str:
    return what


async def failing() -> str:
    raise CallFailed("busy")


def test_what_a_call_returns_or_raises() -> None:
    assert wait(saying("yes")) == "yes"
    with pytest.raises(CallFailed, match="busy"):
        wait(failing())


def test_an_interrupt_calls_off_the_calls_of_all_threads() -> None:
    ended: list[str] = []
    begun = threading.Barrier(3)

    def work() -> None:
        begun.wait(30)
        try:
            wait(asyncio.sleep(3600))
        except KeyboardInterrupt:
            ended.append("off")
        try:
            ended.append(wait(saying("more")))
        except KeyboardInterrupt:
            ended.append("none begun")

    threads = [threading.Thread(target=work) for _ in range(2)]
    with pytest.raises(KeyboardInterrupt), interruptible():
        for thread in threads:
            thread.start()
        begun.wait(30)
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            for thread in threads:
                thread.join(30)
    assert sorted(ended) == ["none begun", "none begun", "off", "off"]
    assert wait(saying("again")) == "again"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

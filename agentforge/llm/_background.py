"""Calls of all endpoints run on one event loop, in a thread of its own, and can be called off.

Agents work in threads and wait for their answers there; a thread that waits cannot be interrupted, a call on
the loop can. So a deadline ends a call at once, and Ctrl-C need not wait for what models still have to say.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_under_way: set[Future[Any]] = set()
_off = threading.Event()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="language-models", daemon=True).start()
    return loop


def wait(call: Coroutine[Any, Any, T]) -> T:
    """What the call returns or raises; `KeyboardInterrupt` where it is called off."""
    future = asyncio.run_coroutine_threadsafe(call, _loop())
    _under_way.add(future)
    try:
        if _off.is_set():
            future.cancel()
        return future.result()
    except CancelledError as error:
        raise KeyboardInterrupt from error
    finally:
        future.cancel()  # where this thread was interrupted itself; else it is done
        _under_way.discard(future)


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, SIGINT and SIGTERM call off the calls of all threads before they do what they did before.

    Changes nothing in a thread that hears no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        _off.set()
        for future in list(_under_way):
            future.cancel()
        before[number](number, frame)

    found: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: heard for number, heard in found.items() if callable(heard)}  # else ignored, or the end
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, heard in before.items():
            signal.signal(number, heard)
        _off.clear()

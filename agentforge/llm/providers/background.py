"""Run all calls on one event loop in its own thread, so that they can be cancelled.

A waiting thread cannot be interrupted, but a call on the loop can.
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
    """Wait for a call. Returns or raises what it does; raises `KeyboardInterrupt` if it was cancelled."""
    if _off.is_set():
        call.close()
        raise KeyboardInterrupt
    future = asyncio.run_coroutine_threadsafe(call, _loop())
    _under_way.add(future)
    try:
        if _off.is_set():  # since then
            future.cancel()
        return future.result()
    except CancelledError as error:
        raise KeyboardInterrupt from error
    finally:
        future.cancel()  # if this thread itself was interrupted; otherwise the call is done
        _under_way.discard(future)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the context, SIGINT and SIGTERM first cancel the calls of all threads."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        _off.set()
        for future in list(_under_way):
            future.cancel()
        before[number](number, frame)

    found: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {
        number: heard for number, heard in found.items() if callable(heard)
    }  # otherwise ignore the signal or end the process
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, heard in before.items():
            signal.signal(number, heard)
        _off.clear()

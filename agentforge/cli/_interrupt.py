"""Ctrl-C, SIGTERM and a closed terminal end a command within three seconds, whatever it waits for."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

ORDERLY_S = 1.5
"""Seconds that a command has to end by itself."""
SAME_S = 0.3
"""Signals within this time are one: a parent that dies sends its own once for each of its threads."""
LAST_WORD_S = 0.7
"""Seconds that writing down the interruption may take."""
INTERRUPTED = 130

exit_code = 0
"""Of the command, once it has ended."""
_last_words: list[Callable[[], None]] = []
_cutting_short = threading.Event()
_said = threading.Event()
_speaking = threading.Lock()


def last_word(say: Callable[[], None]) -> None:
    """Have a function called, in another thread, if the command does not end by itself in time."""
    _last_words.append(say)


def once(say: Callable[[], None]) -> None:
    """Say that the command is interrupted, unless this was said; another thread waits meanwhile."""
    with _speaking:
        if not _said.is_set():
            _said.set()
            say()


def leave() -> None:
    """Let the main thread go on, unless the command is being cut short: then that ends the process."""
    if _cutting_short.is_set():
        threading.Event().wait()


def install(say: Callable[[], None]) -> None:
    """Watch for SIGINT, SIGTERM and SIGHUP; a thread does it, because the main one may be in native code.

    SIGHUP stays ignored if the process began so, as after `nohup`.

    Args:
        say: the last word of a command that has none of its own.
    """
    atexit.register(_end)  # the first one registered is the last one to run
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(write, False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was begun is ended as by Ctrl-C
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read, say), name="interrupt", daemon=True).start()


def _end() -> None:
    """End an interrupted command with its code.

    Else `python -m` ends by SIGINT if KeyboardInterrupt has passed through source text that `exec` ran.
    """
    if exit_code == INTERRUPTED:
        os._exit(exit_code)


def _watch(read: int, otherwise: Callable[[], None]) -> None:
    from agentforge.isolation import procfs, scratch  # now: an import could wait for one of the main thread's

    _heard(read, None)
    with suppress(OSError):
        print("agentforge: stopping", file=sys.stderr, flush=True)
    time.sleep(SAME_S)
    while select.select([read], [], [], 0)[0]:
        os.read(read, 4096)
    _heard(read, ORDERLY_S - SAME_S)
    _cutting_short.set()
    # A worker is stopped and not yet killed: the run would take its death for a failure and write that down.
    _signal(procfs.descendants, signal.SIGSTOP)
    for say in _last_words or [otherwise]:
        speaker = threading.Thread(target=say, daemon=True)
        speaker.start()
        speaker.join(LAST_WORD_S)
    scratch.close_all()
    _signal(procfs.descendants, signal.SIGKILL)
    os._exit(INTERRUPTED)


def _signal(descendants: Callable[[int], list[int]], number: signal.Signals) -> None:
    for _ in range(2):  # a process that is being started escapes the first round
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _heard(read: int, timeout_s: float | None) -> None:
    """Wait for one of the signals, at most `timeout_s`."""
    while select.select([read], [], [], timeout_s)[0]:
        if os.read(read, 1)[0] in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            return

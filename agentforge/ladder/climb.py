"""Climb the ladder: each rung in a process of its own, with a time limit, several side by side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

from agentforge.devices import Fallback
from agentforge.schema import FrozenModel

from ._base import LADDER, Rung, RungOutcome, RungResult

OnRung = Callable[[RungResult], None]
"""Receives each result, in the order of the rungs."""
_MOST_TEXT = 600
_AT_ONCE = 6
"""Each rung imports torch, and takes about one processor and 3 GiB at most."""
_SIGNALS = {s.value: s.name for s in signal.Signals}


class Ladder(FrozenModel):
    """All results, in the order of the rungs."""

    rungs: tuple[RungResult, ...]

    @property
    def broken(self) -> RungResult | None:
        """The first rung without which nothing can be judged; None if kernels can be judged here."""
        essential = {r.name for r in LADDER if r.fallback is None}
        failed = (r for r in self.rungs if r.rung in essential and r.outcome is not RungOutcome.WORKS)
        if first := next(failed, None):
            return first
        without = {Fallback.NO_CUDA, Fallback.NO_TRITON, Fallback.NO_CUPY}
        if without <= set(self.fallbacks):
            return next(r for r in self.rungs if r.fallback == Fallback.NO_TRITON)
        return None

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """What AgentForge does without on this GPU."""
        return tuple(Fallback(r.fallback) for r in self.rungs if r.fallback)


def rung_command(rung: Rung) -> list[str]:
    """The command that tries a rung and prints one JSON object as its last line."""
    return [sys.executable, "-m", "agentforge.ladder.child", rung.program]


def climb(
    *,
    on_rung: OnRung | None = None,
    rungs: Sequence[Rung] = LADDER,
    command: Callable[[Rung], Sequence[str]] = rung_command,
) -> Ladder:
    """Try all rungs. A rung that fails, crashes or hangs costs only the rungs that need it.

    Args:
        on_rung: receives each result, in the order of the rungs.
        rungs: tried in this order, consecutive ones side by side if they do not need each other.
        command: what tries a rung.
    """
    results: dict[str, RungResult] = {}
    running: set[subprocess.Popen[str]] = set()
    stopped = Event()

    def attempt(rung: Rung) -> RungResult:
        lacking = [name for name in rung.needs if results[name].outcome is not RungOutcome.WORKS]
        if lacking:
            return _result(rung, RungOutcome.NOT_TRIED, f"needs {lacking[0]}")
        begin = time.monotonic()
        found = _try(rung, command(rung), running, stopped)
        return found.model_copy(update={"seconds": round(time.monotonic() - begin, 2)})

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            for group in _groups(rungs):
                for found in pool.map(attempt, group):
                    results[found.rung] = found
                    if on_rung:
                        on_rung(found)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stopped.set()
            for child in tuple(running):
                _kill(child)
            raise
    return Ladder(rungs=tuple(results.values()))


def _groups(rungs: Sequence[Rung]) -> Iterator[list[Rung]]:
    """Consecutive rungs that can be tried side by side."""
    group: list[Rung] = []
    for rung in rungs:
        needed = {r.name for r in group} & set(rung.needs)
        if group and (needed or rung.alone or group[-1].alone):
            yield group
            group = []
        group.append(rung)
    if group:
        yield group


def _try(
    rung: Rung, command: Sequence[str], running: set[subprocess.Popen[str]], stopped: Event
) -> RungResult:
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return _result(rung, RungOutcome.FAILS, str(error))
    running.add(child)
    if stopped.is_set():  # after it was added: a child is killed here or by the one that sets the event
        _kill(child)
    try:
        said, errors = child.communicate(timeout=rung.limit_s)
    except subprocess.TimeoutExpired:
        return _result(rung, RungOutcome.FAILS, f"no answer within {rung.limit_s:.0f} s")
    finally:
        _end(child)
        running.discard(child)
    return _read(rung, child.returncode, said, errors)


def _kill(child: subprocess.Popen[str]) -> None:
    """Kill the rung and what it started."""
    with suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)


def _end(child: subprocess.Popen[str]) -> None:
    _kill(child)
    with suppress(subprocess.TimeoutExpired):  # a process inside the driver cannot always be killed
        child.communicate(timeout=5)


def _read(rung: Rung, code: int, said: str, errors: str) -> RungResult:
    try:
        answer = json.loads(said.strip().splitlines()[-1])
        ok, detail, fix = bool(answer["ok"]), str(answer["detail"]), str(answer.get("fix", ""))
    except (IndexError, ValueError, KeyError, TypeError):
        ended = f"killed by {_SIGNALS.get(-code, -code)}" if code < 0 else f"exit code {code}"
        last = (errors.strip().splitlines() or ["it said nothing"])[-1]
        return _result(rung, RungOutcome.FAILS, f"{ended}: {last}")
    return _result(rung, RungOutcome.WORKS if ok else RungOutcome.FAILS, detail, fix)


def _result(rung: Rung, outcome: RungOutcome, detail: str, fix: str = "") -> RungResult:
    lost = rung.fallback.value if rung.fallback and outcome is not RungOutcome.WORKS else ""
    return RungResult(
        rung=rung.name, outcome=outcome, detail=detail[:_MOST_TEXT], fix=fix[:_MOST_TEXT], fallback=lost
    )

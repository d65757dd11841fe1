"""Calls of several workers on a GPU, interleaved in random order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from statistics import median
from typing import Any

from agentforge.referee.timing.gpu.device import Gpu
from agentforge.referee.timing.gpu.events import credible, empty_call

_MEAN_GAP_S = 5e-3
_MOST_COPIES = 64


class Mode(StrEnum):
    """When calls come. A kernel that is fast back to back may be slow when it is called now and then."""

    OFFLINE = "offline"
    """One after the other."""
    SERVER = "server"
    """After random pauses, exponentially distributed: clocks sink, caches and pipelines grow cold."""


@dataclass
class GpuTimes:
    """Seconds of a call by worker, one entry per block."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    """Calls whose events say much less than the clock: work on another stream, or a patched event."""

    def median(self, name: str) -> float:
        """Seconds of a usual call."""
        return median(self.seconds[name])

    def speedup(self, over: str, of: str) -> float:
        """Median of the ratios of each block's pair."""
        return median(a / b for a, b in zip(self.seconds[over], self.seconds[of], strict=True))


def rotations(bytes_of_inputs: int, l2_bytes: int) -> int:
    """How many copies of the inputs take turns, so that what a call reads was evicted since its last turn."""
    if bytes_of_inputs <= 0:
        return 1
    return max(2, min(_MOST_COPIES, -(-2 * l2_bytes // bytes_of_inputs)))


def compare(
    clients: Mapping[str, Sequence[Callable[[], Any]]],
    gpu: Gpu,
    *,
    mode: Mode = Mode.OFFLINE,
    blocks: int = 50,
    untimed: int = 3,
    random: Random | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> GpuTimes:
    """Time every worker once a block, in random order, on inputs that take turns.

    Args:
        untimed: calls of each worker before the first block, each on the next copy.
    """
    random = random or Random()
    for number in range(untimed):
        for calls in clients.values():
            gpu.prepare()
            gpu.time(calls[number % len(calls)])
    empty = empty_call(gpu)
    times = GpuTimes({name: [] for name in clients}, dict.fromkeys(clients, 0))
    for block in range(blocks):
        for name in random.sample(list(clients), len(clients)):
            gpu.prepare()
            if mode is Mode.SERVER:
                sleep(random.expovariate(1 / _MEAN_GAP_S))
            calls = clients[name]
            seconds, hidden = credible(gpu.time(calls[block % len(calls)]), empty)
            times.seconds[name].append(seconds)
            times.hidden[name] += hidden
    return times

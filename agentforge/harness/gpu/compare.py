"""Calls of several parties on a GPU, interleaved in random order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from statistics import median
from typing import Any

from .device import CallTime, Gpu

_SLACK, _SLACK_S = 1.5, 1e-4
"""The host's clock may exceed the events by so much: launching, and waiting for the device."""
_MEAN_GAP_S = 5e-3


class Mode(StrEnum):
    """When calls come. A kernel that is fast back to back may be slow when it is called now and then."""

    OFFLINE = "offline"
    """One after the other."""
    SERVER = "server"
    """After random pauses, exponentially distributed: clocks sink, caches and pipelines grow cold."""


@dataclass
class GpuTimes:
    """Seconds of a call by party, one entry a block."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    """Calls whose events say much less than the clock: work on another stream, or a patched event."""

    def median(self, name: str) -> float:
        """Seconds of a usual call."""
        return median(self.seconds[name])

    def speedup(self, over: str, of: str) -> float:
        """Median of the ratios of each block's pair."""
        return median(a / b for a, b in zip(self.seconds[over], self.seconds[of], strict=True))


def credible(found: CallTime, overhead_s: float) -> tuple[float, bool]:
    """The seconds to believe, and whether work was hidden from the events.

    Events stand for the device's time alone. Work that runs beside them shows on the host's clock, which
    waits for all streams: then that counts, less the overhead of an empty call.
    """
    clock = max(found.clock_s - overhead_s, 0.0)
    if clock > found.events_s * _SLACK + _SLACK_S:
        return clock, True
    return found.events_s, False


def compare(
    parties: Mapping[str, Sequence[Callable[[], Any]]],
    gpu: Gpu,
    *,
    mode: Mode = Mode.OFFLINE,
    blocks: int = 50,
    untimed: int = 3,
    random: Random | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> GpuTimes:
    """Time every party once a block, in random order, on inputs that take turns.

    Args:
        parties: by name, the call on each copy of the inputs.
        gpu: that runs them.
        mode: back to back, or with pauses.
        blocks: calls of each party.
        untimed: calls of each party before the first block, each on the next copy.
        random: order and pauses.
        sleep: pauses.
    """
    random = random or Random()
    for number in range(untimed):
        for calls in parties.values():
            gpu.prepare()
            gpu.time(calls[number % len(calls)])
    overhead = min(_empty(gpu) for _ in range(5))
    times = GpuTimes({name: [] for name in parties}, dict.fromkeys(parties, 0))
    for block in range(blocks):
        for name in random.sample(list(parties), len(parties)):
            gpu.prepare()
            if mode is Mode.SERVER:
                sleep(random.expovariate(1 / _MEAN_GAP_S))
            calls = parties[name]
            seconds, hidden = credible(gpu.time(calls[block % len(calls)]), overhead)
            times.seconds[name].append(seconds)
            times.hidden[name] += hidden
    return times


def _empty(gpu: Gpu) -> float:
    found = gpu.time(lambda: None)
    return max(found.clock_s - found.events_s, 0.0)

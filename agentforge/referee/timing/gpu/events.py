"""Which clock of a GPU to believe."""

from __future__ import annotations

from statistics import median

from .device import CallTime, Gpu

_SLACK, _SLACK_S = 1.5, 1e-4
"""The host's clock may exceed the events by so much: launching, and waiting for the device."""
_LEAST_REST_S = 2e-5
"""Less than this is the host's own doing, and not called hidden."""
_EMPTY_CALLS = 9


def empty_call(gpu: Gpu) -> CallTime:
    """What both clocks say of nothing: the part of their times that is not the call's."""
    found = [gpu.time(lambda: None) for _ in range(_EMPTY_CALLS)]
    beside = min(max(one.clock_s - one.events_s, 0.0) for one in found)
    return CallTime(0.0, beside, median(one.rest_s for one in found))


def credible(found: CallTime, empty: CallTime) -> tuple[float, bool]:
    """The seconds to believe, and whether work was hidden from the events.

    Work of other streams at the second event is added. The host's clock counts if it says much more.
    """
    rest = max(found.rest_s - empty.rest_s, 0.0)
    seconds, clock = found.events_s + rest, max(found.clock_s - empty.clock_s, 0.0)
    if clock > seconds * _SLACK + _SLACK_S:
        return clock, True
    return seconds, rest > max(found.events_s * (_SLACK - 1), _LEAST_REST_S)

"""Whether a candidate makes the reference slower: on a device, work of a stopped process goes on.

Between turns a candidate's threads are stopped. A kernel that it left running on a GPU is not, and shares the
GPU with whoever is timed. So the reference is timed alone before the candidate's process starts and after it
has ended, and must not have been much slower in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from .bench import Bench
from .timing import GroupTimes

_CALLS = 6
_SLOWER, _LEAST_S = 1.5, 5e-5
"""Times slower, and by so many seconds: caches and clocks differ between turns and calls in a row."""


def alone(bench: Bench) -> list[float]:
    """Seconds of a usual eager call of each workload, while there is no candidate."""
    found = []
    for course in bench.courses:
        bench.enter(course)
        course.inputs.fill(0)
        found.append(median(bench.eager.call(0) for _ in range(_CALLS)) / 1e9)
        bench.stop()
    return found


def hindrance(before: Sequence[float], times: Sequence[GroupTimes], after: Sequence[float]) -> str:
    """Why the baselines' times may be the candidate's doing; empty where they are not slower beside it.

    Args:
        before: seconds of each workload, from `alone`.
        times: of the same workloads, with the candidate.
        after: as `before`, when it has ended.
    """
    for first, group, last in zip(before, times, after, strict=True):
        beside = median(group.seconds["eager"])
        if beside > _SLOWER * max(first, last) + _LEAST_S:
            return (
                f"the reference takes {beside * 1e3:.3f} ms beside it, {first * 1e3:.3f} ms before and "
                f"{last * 1e3:.3f} ms after: it left work on the device, or something disturbs: measure again"
            )
    return ""

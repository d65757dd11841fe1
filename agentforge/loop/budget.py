"""The budget that a run has used, over all its sessions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from agentforge.config import SearchSettings
from agentforge.schema import Budget

OVERTIME, LEAST_OVERTIME_S = 0.25, 10.0
"""Share of the minutes that an evaluation in progress may take beyond them, and the least of it."""
FIRST, LEAST_FIRST_S = 2.0, 120.0
"""Share of the minutes that the search may take for a first verdict, and the least of it."""
_RESULT_S, _RESULT = 30.0, 0.05
"""Seconds before the run's limit at which evaluations end, so that there is time to write a result, and the
most of them as a share of the limit."""
EXPLORING_S, EXPLORING = 60.0, 0.5
"""Most seconds in which integration begins new variants, and the most of them as a share of the minutes."""


class BudgetMeter:
    """Counts a run's minutes, attempts and dollars against its limits.

    Args:
        seconds_used: wall time that earlier sessions of the run used up.
        stitched_s: seconds of it in stitching.
        least_stitching_s: see `SearchSettings`.
        limit_s: see `SearchSettings`.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        seconds_used: float = 0.0,
        stitched_s: float = 0.0,
        least_stitching_s: float = SearchSettings().least_stitching_s,
        limit_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self._least_stitching_s = least_stitching_s
        self._limit_s = math.inf if limit_s is None else limit_s
        self._before = seconds_used
        self._stitched_before = stitched_s
        self._stitching: float | None = None
        self._clock = clock
        self._start = clock()
        self._profiling = 0.0
        self._stopped = ""

    def profiled(self, seconds: float) -> None:
        """Do not count the first `seconds` of the run against its minutes: it needs a profile in any case."""
        self._profiling = seconds

    def stop(self, reason: str) -> None:
        """Take no further step in this session: a proposer could pass the budget with its next call."""
        self._stopped = reason

    @property
    def seconds(self) -> float:
        """Wall time of the run over all sessions."""
        return self._before + self._clock() - self._start

    def stitching_begins(self) -> None:
        """Do not count the rest of this session against the minutes: stitching comes on top of them."""
        self._stitching = self._clock()

    @property
    def stitched_s(self) -> float:
        """Seconds of stitching over all sessions."""
        now = 0.0 if self._stitching is None else self._clock() - self._stitching
        return self._stitched_before + now

    @property
    def search_s(self) -> float:
        """Seconds of the run that count against its minutes."""
        return max(0.0, self.seconds - self._profiling - self.stitched_s)

    @property
    def deadline(self) -> float | None:
        """`end` of an evaluation that is no first one."""
        return self.end(first=False)

    @property
    def limit(self) -> float | None:
        """When the run's own limit leaves just the time for a result, by the meter's clock, or None."""
        if self._limit_s == math.inf:
            return None
        return self._start + self._limit_s - min(_RESULT_S, _RESULT * self._limit_s)

    @property
    def out_of_time(self) -> bool:
        """Whether the run's own limit leaves just the time for a result."""
        return self.limit is not None and self._clock() >= self.limit

    def end(self, *, first: bool) -> float | None:
        """When an evaluation in progress has to end, by the meter's clock; None without a limit of time.

        A quarter of the minutes comes on top of them, so that what was begun in time can be finished.

        Args:
            first: it is the run's first verdict, or the full one of a region's first faster kernel. Without
                it the minutes were for nothing, so the search may take twice the minutes, quick verdict
                included.
        """
        if self.budget.minutes is None:
            return self.limit
        minutes_s = self.budget.minutes * 60
        most_s = minutes_s + max(LEAST_OVERTIME_S, OVERTIME * minutes_s)
        if first:
            most_s = max(LEAST_FIRST_S, FIRST * minutes_s)
        end = self._clock() + most_s - self.search_s
        return end if self.limit is None else min(end, self.limit)

    @property
    def stitching_s(self) -> float | None:
        """Seconds that integration and its proof may take, on top of the minutes; None without a limit."""
        minutes, left = self.budget.minutes, self._start + self._limit_s - self._clock()
        found = left if minutes is None else min(max(self._least_stitching_s, minutes * 60), left)
        return None if found == math.inf else max(found, 0.0)

    @property
    def exploring_s(self) -> float:
        """Seconds in which integration begins new variants."""
        minutes = self.budget.minutes
        return EXPLORING_S if minutes is None else min(EXPLORING_S, EXPLORING * 60 * minutes)

    @property
    def out_of_minutes(self) -> bool:
        """Whether the budget's minutes are used up."""
        return self.budget.minutes is not None and self.search_s >= self.budget.minutes * 60

    def exhausted(self, *, dollars: float, attempts: int | None = None) -> str:
        """Why no further step may be taken; empty while there is budget left.

        Args:
            attempts: made so far; None if the next step belongs to an attempt that counts already.
        """
        limits = self.budget
        if self._stopped:
            return self._stopped
        if self.out_of_minutes:
            return f"the budget of {limits.minutes:g} minutes is used up"
        if self.out_of_time:
            return f"the run's limit of {self._limit_s:g} seconds is used up"
        if limits.dollars is not None and (dollars > limits.dollars or dollars >= limits.dollars > 0):
            return f"the budget of {limits.dollars:g} dollars is used up"
        if attempts is not None and limits.attempts is not None and attempts >= limits.attempts:
            return f"the budget of {limits.attempts} attempts is used up"
        return ""

    def left(self, *, dollars: float, attempts: int) -> dict[str, float | None]:
        """The rest of each limit, never below 0; None is no limit."""
        limits = self.budget

        def rest(limit: float | None, used: float) -> float | None:
            return None if limit is None else max(0.0, limit - used)

        return {
            "minutes": rest(limits.minutes, self.search_s / 60),
            "attempts": rest(limits.attempts, attempts),
            "dollars": rest(limits.dollars, dollars),
        }

"""When a process group has been timed long enough: widths and the control decide, never who is faster."""

from __future__ import annotations

import pytest

from agentforge.harness.lateness import Beside
from agentforge.harness.timing import GroupTimes, Timer, TurnShape, turn_shape

LEAST, BLOCKS = 8, 24


def times_of(*controls: float, candidate: float = 0.5) -> GroupTimes:
    """One block for each number: how much slower the control was than the same baseline."""
    blocks = range(len(controls))
    return GroupTimes({"eager": [1.0 for _ in blocks], "control": list(controls),
                       "candidate": [candidate * (1 + 0.2 * (n % 2)) for n in blocks]})  # fmt: skip


def wanted(times: GroupTimes, used: float, patience: float = 4.0) -> bool:
    timer = object.__new__(Timer)
    timer._patience = patience
    timer._reads = timer._hidden = Beside("")
    return timer._wanted(times, BLOCKS, LEAST, used)


def test_the_least_is_done_whatever_it_costs() -> None:
    assert wanted(times_of(*[1.0] * (LEAST - 1)), used=100.0)
    assert not wanted(times_of(*[1.0] * LEAST), used=1.0)
    assert wanted(times_of(*[1.0] * LEAST), used=0.5)


def test_enough_blocks_end_it_before_the_time_does() -> None:
    assert not wanted(times_of(*[1.0] * BLOCKS), used=0.1)


@pytest.mark.parametrize("candidate", [0.1, 0.5, 3.0])
def test_an_unsteady_control_is_given_more_time_and_not_for_ever(candidate: float) -> None:
    unsteady = times_of(*[1.4, 0.7] * LEAST, candidate=candidate)
    assert wanted(unsteady, used=3.9)
    assert not wanted(unsteady, used=4.1)
    assert not wanted(unsteady, used=2.1, patience=2.0)
    assert not wanted(times_of(*[1.4, 0.7] * BLOCKS, candidate=candidate), used=1.5)


def test_disturbed_blocks_are_made_up_for() -> None:
    assert wanted(times_of(*[1.0] * 6, 9.0, 8.0), used=2.0)
    assert not wanted(times_of(*[1.0] * 8, 9.0, 8.0), used=2.0)


def test_short_calls_have_company() -> None:
    assert turn_shape(1e-4, 1 << 10).calls > turn_shape(1e-2, 1 << 10).calls > turn_shape(1.0, 1 << 10).calls
    assert turn_shape(1.0, 1 << 27) == turn_shape(1e-2, 1 << 10) == TurnShape(1, 3)

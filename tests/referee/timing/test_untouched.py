"""Page faults that an answer leaves to its reader are counted, and timed."""

from __future__ import annotations

from statistics import median

import pytest

from agentforge.referee import Referee
from agentforge.referee.timing.untouched import Untouched, fault_s, faults_of_reader

from ..judging import examined, problem
from .test_timer import timer_of

PAGES = 1024
REFERENCE = problem(
    "return torch.zeros(1 << 20).index_add(0, x, torch.ones(8))", "torch.randint(0, 1 << 20, (8,))"
)
ON_DEMAND = (
    "torch.zeros(1 << 20)",
    "torch.frombuffer(__import__('mmap').mmap(-1, 4 << 20, flags=0x22), dtype=torch.float32)",
)
IN_PLACE = ("index_add(", "index_add_(")


@pytest.mark.parametrize("lazy", [False, True])
def test_only_pages_that_nobody_touched_count(referee: Referee, lazy: bool) -> None:
    with examined(referee, REFERENCE, *([ON_DEMAND, IN_PLACE] if lazy else [])) as context:
        first, again = list[float](), list[float]()
        for _ in range(3):
            context.candidate.call(0)
            first.append(faults_of_reader(context.candidate))
            again.append(faults_of_reader(context.candidate))
    # Now and then the kernel takes pages away: the median tells.
    assert median(again) == 0
    assert median(first) > PAGES - 32 if lazy else median(first) == 0


def test_their_time_counts_as_the_call_s(referee: Referee) -> None:
    with examined(referee, REFERENCE, ON_DEMAND, IN_PLACE) as context:
        timer = timer_of(context)
        times = timer.run(4, 0.1, 4)
        assert min(times.seconds["candidate"]) > timer._untouched.excess_s() > (PAGES - 64) * fault_s()


def test_faults_that_the_reference_leaves_too_are_nobody_s() -> None:
    both = Untouched()
    assert both.excess_s() == 0
    for ours, theirs in ((100, 90), (100, 90), (9000, 90)):
        both.add(True, ours)
        both.add(False, theirs)
    assert both.excess_s() == 10 * fault_s() > 0
    fewer = Untouched()
    fewer.add(True, 0)
    fewer.add(False, 90)
    assert fewer.excess_s() == 0

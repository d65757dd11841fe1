"""Many more calls than timing needs, by an unpredictable number."""

from __future__ import annotations

import time
from functools import partial
from random import SystemRandom

from agentforge.referee.comparison.draw_bounds import own_draw
from agentforge.referee.comparison.output_sampling import OutputSampling, Sample, SamplePlan, of_whole
from agentforge.referee.timing.patience import busy
from agentforge.referee.timing.rare_work import Effort, levelled, rare_work
from agentforge.referee.workers.pytree import Leaf

from .._base import FULL_LEVEL, Check, CheckContext, When

_CALLS, _SECONDS = (150, 400), 1.0
"""Range that the number of calls is drawn from, and the time after which no further call is made."""
_LATER_CALLS, _LATER_SECONDS = (20, 80), 0.25
"""The same in later process groups, before timing only: the number of calls before the timed ones is unknown
there, and the first group has made more calls than any later one."""
_LEAST = 3
_ROUNDS = 3
"""How often calls are made, at most, until few of them do not work for many. All rounds count: disturbances
by the machine weigh less among more calls, and work for later calls does not."""
_PARTS, _ELEMENTS = 2, 1024
"""Ranges of each answer that are compared, and their elements."""


class Soak(Check):
    """Calls the candidate 150 to 400 times, or as often as one second allows, and checks every answer; 20 to
    80 times in later process groups, before timing only.

    It runs before and after timing, so a candidate cannot count up to the calls that matter.
    """

    name = "endurance"
    levels = FULL_LEVEL
    catches = (
        "answers that become wrong after many calls: 150 to 400, as many as fit into a second; 20 to 80 "
        "before timing in later groups"
    )

    def __init__(self, when: When) -> None:
        self.when = when

    def applies(self, context: CheckContext) -> bool:
        return super().applies(context) and (self.when is When.BEFORE_TIMING or context.first_group)

    def run(self, context: CheckContext) -> str:
        random, slots = SystemRandom(), range(context.prepared.inputs.slots)
        right = [self._right(context, slot) for slot in slots]
        sampling = OutputSampling(context.prepared, context.comparator, random)
        context.baselines.stop()
        worker, threads = context.candidate.worker, context.settings.threads
        calls, seconds = (_CALLS, _SECONDS) if context.first_group else (_LATER_CALLS, _LATER_SECONDS)
        # Otherwise a device does the work.
        looks = context.candidate.readable and self.when is When.BEFORE_TIMING
        done, efforts, doubts = 0, [list[Effort]() for _ in slots], list[str]()
        for _ in range(_ROUNDS):
            most, deadline = done + random.randrange(*calls), time.monotonic() + seconds
            least = done + _LEAST
            while done < most and (done < least or time.monotonic() < deadline):
                slot = random.choice(slots)
                disturbed, before = busy(threads), worker.cpu_seconds()
                nanoseconds = context.candidate.call(slot)
                effort = nanoseconds / 1e9 + worker.late_s, worker.cpu_seconds() - before
                if not (disturbed or busy(threads)):
                    efforts[slot].append(effort)
                plan = SamplePlan([], sampling.parts(_PARTS, _ELEMENTS), whole=False)
                if plan.parts:
                    got = Sample(pieces=context.candidate.fetch_parts(slot, plan.parts))
                    expected = sampling.settled(plan, got, of_whole(right[slot], plan.parts), right[slot])
                    own = partial(own_draw, context.baselines, context.prepared, slot)
                    sampling.compare(plan, got, expected, own, "after many calls")
                done += 1
            doubts = [*rare_work(levelled(efforts))] if looks else []
            if not doubts:
                break
        context.doubts_now += doubts
        return f"{done} more calls were right"

    @staticmethod
    def _right(context: CheckContext, slot: int) -> list[Leaf]:
        """Fill the slot and ask the reference."""
        context.prepared.inputs.fill(slot)
        return context.baselines.expect(context.prepared, slot)

"""Many more calls than timing needs, by an unpredictable number."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import SystemRandom

from agentforge.referee.comparison.draw_bounds import DrawBounds, own_draw
from agentforge.referee.comparison.output_sampling import OutputSampling, Sample, SamplePlan, range_of
from agentforge.referee.comparison.tolerance import settled
from agentforge.referee.timing.patience import busy
from agentforge.referee.timing.rare_work import Effort, levelled, rare_work
from agentforge.referee.workers.pytree import Leaf, Part

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
_KEPT = 8
"""Ranges that they are from if the answer is large; others are kept whole."""


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
        sampling = OutputSampling(context.prepared, context.comparator, random)
        right = [_Right.of(context, sampling, slot, random) for slot in slots]
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
                right[slot].check(context, sampling)
                done += 1
            doubts = [*rare_work(levelled(efforts))] if looks else []
            if not doubts:
                break
        context.doubts_now += doubts
        return f"{done} more calls were right"


@dataclass(frozen=True)
class _Right:
    """The right answer for a slot."""

    slot: int
    ranges: Callable[[], list[tuple[Part, Leaf]]]
    """Draws some of its ranges."""
    harder: DrawBounds

    @classmethod
    def of(cls, context: CheckContext, sampling: OutputSampling, slot: int, random: SystemRandom) -> _Right:
        """Fill the slot and ask the reference."""
        context.prepared.inputs.fill(slot)
        leaves = context.baselines.expect(context.prepared, slot)

        def draw(number: int = _PARTS) -> list[tuple[Part, Leaf]]:
            return [range_of(leaves, part) for part in sampling.parts(number, _ELEMENTS)]

        ranges: Callable[[], list[tuple[Part, Leaf]]] = draw
        if not sampling.medium:
            kept = draw(_KEPT)
            ranges = partial(random.sample, kept, min(_PARTS, len(kept)))
        own = partial(own_draw, context.baselines, context.prepared, slot)
        return cls(slot, ranges, DrawBounds(context.prepared, own))

    def check(self, context: CheckContext, sampling: OutputSampling) -> None:
        """Compare some ranges of the candidate's last answer.

        Raises:
            WorkerFailure: one is wrong.
        """
        drawn = self.ranges()
        plan = SamplePlan([], [part for part, _ in drawn], whole=False)
        if plan.parts:
            got = Sample(pieces=context.candidate.fetch_parts(self.slot, plan.parts))
            expected = [
                settled(piece, leaf.value, leaf.alternative, leaf.latitude, first)
                for piece, ((_, first, _), leaf) in zip(got.pieces, drawn, strict=True)
            ]
            sampling.compare(plan, got, Sample(pieces=expected), self.harder, "after many calls")

"""Many more calls than timing needs, by an unpredictable number."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from random import SystemRandom

import torch

from agentforge.referee.comparison.draw_bounds import DrawBounds
from agentforge.referee.comparison.output_sampling import part_of_alternative
from agentforge.referee.comparison.tolerance import Bound, settled
from agentforge.referee.timing.patience import busy
from agentforge.referee.timing.rare_work import Effort, levelled, rare_work
from agentforge.referee.workers.pytree import Latitude, Leaf, Part

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
_PARTS, _CHECKED, _ELEMENTS = 8, 2, 1024


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
        expected = [_Expected.of(context, slot, random) for slot in slots]
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
                expected[slot].check(context, random)
                done += 1
            doubts = [*rare_work(levelled(efforts))] if looks else []
            if not doubts:
                break
        context.doubts_now += doubts
        return f"{done} more calls were right"


@dataclass(frozen=True)
class _Expected:
    """The right values for a slot, in some ranges of its answer."""

    slot: int
    parts: list[Part]
    pieces: list[torch.Tensor]
    alternatives: list[torch.Tensor | None]
    latitudes: list[Latitude | None]
    harder: DrawBounds

    @classmethod
    def of(cls, context: CheckContext, slot: int, random: SystemRandom) -> _Expected:
        """Fill the slot and ask the reference."""
        prepared = context.prepared
        prepared.inputs.fill(slot)
        whole = context.baselines.expect(prepared, slot)
        leaves = [x.value for x in whole]
        parts = _parts(leaves, random)
        pieces = [leaves[n].reshape(-1)[first : first + count].clone() for n, first, count in parts]
        alternatives = [part_of_alternative(whole, part) for part in parts]
        harder = DrawBounds(prepared, partial(_own, context, slot))
        return cls(slot, parts, pieces, alternatives, [x.latitude for x in whole], harder)

    def check(self, context: CheckContext, random: SystemRandom) -> None:
        """Compare some ranges of the candidate's last answer.

        Raises:
            WorkerFailure: one is wrong.
        """
        prepared = context.prepared
        chosen = random.sample(range(len(self.parts)), min(_CHECKED, len(self.parts)))
        pieces = context.candidate.fetch_parts(self.slot, [self.parts[i] for i in chosen])
        for i, piece in zip(chosen, pieces, strict=True):
            leaf, first, _ = self.parts[i]
            where = (prepared.outputs[leaf].path, first)
            right = settled(piece, self.pieces[i], self.alternatives[i], self.latitudes[leaf], first)
            context.comparator.check_part(
                piece, right, prepared.bounds[leaf], prepared.scales[leaf], where, "after many calls",
                partial(self.harder.of, leaf),
            )  # fmt: skip
        context.comparator.calls += 1


def _own(context: CheckContext, slot: int) -> tuple[list[Leaf], list[Bound]]:
    """The reference's answer for a slot, which still has its inputs, and bounds by its error there."""
    answer = context.baselines.expect(context.prepared, slot)
    bounds = context.baselines.bounds_for(context.prepared, slot)
    context.baselines.stop()
    return answer, bounds


def _parts(leaves: list[object], random: SystemRandom) -> list[Part]:
    """Random flat ranges of the tensors among the leaves."""
    sizes = [(n, x.numel()) for n, x in enumerate(leaves) if isinstance(x, torch.Tensor) and x.numel()]
    parts: list[Part] = []
    for _ in range(_PARTS if sizes else 0):
        leaf, numel = random.choice(sizes)
        count = min(_ELEMENTS, numel)
        parts.append((leaf, random.randrange(numel - count + 1), count))
    return parts

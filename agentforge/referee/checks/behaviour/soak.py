"""Many more calls than timing needs, by an unpredictable number."""

from __future__ import annotations

import time
from functools import partial
from random import SystemRandom

import torch

from agentforge.referee.comparison.draw_bounds import DrawBounds
from agentforge.referee.comparison.output_sampling import part_of_alternative
from agentforge.referee.comparison.tolerance import Bound, settled
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
        prepared, baselines, random = context.prepared, context.baselines, SystemRandom()
        wanted: list[tuple[list[Part], list[torch.Tensor], list[torch.Tensor | None]]] = []
        latitudes, harder = [], []
        for slot in range(prepared.inputs.slots):
            prepared.inputs.fill(slot)
            whole = baselines.expect(prepared, slot)
            leaves = [x.value for x in whole]
            parts = _parts(leaves, random)
            pieces = [leaves[n].reshape(-1)[first : first + count].clone() for n, first, count in parts]
            wanted.append((parts, pieces, [part_of_alternative(whole, part) for part in parts]))
            latitudes.append([x.latitude for x in whole])
            harder.append(DrawBounds(prepared, partial(_own, context, slot)))
            del whole, leaves
        baselines.stop()
        calls, seconds = (_CALLS, _SECONDS) if context.first_group else (_LATER_CALLS, _LATER_SECONDS)
        count, deadline = random.randrange(*calls), time.monotonic() + seconds
        done, efforts = 0, [list[Effort]() for _ in wanted]
        worker, threads = context.candidate.worker, context.settings.threads
        while done < count and (done < _LEAST or time.monotonic() < deadline):
            slot = random.randrange(len(wanted))
            disturbed, before = busy(threads), worker.cpu_seconds()
            nanoseconds = context.candidate.call(slot)
            effort = nanoseconds / 1e9 + worker.late_s, worker.cpu_seconds() - before
            if not (disturbed or busy(threads)):
                efforts[slot].append(effort)
            parts, expected, others = wanted[slot]
            chosen = random.sample(range(len(parts)), min(_CHECKED, len(parts)))
            pieces = context.candidate.fetch_parts(slot, [parts[i] for i in chosen])
            for i, piece in zip(chosen, pieces, strict=True):
                leaf, first, _ = parts[i]
                where = (prepared.outputs[leaf].path, first)
                bound = prepared.bounds[leaf]
                right = settled(piece, expected[i], others[i], latitudes[slot][leaf], first)
                context.comparator.check_part(
                    piece, right, bound, prepared.scales[leaf], where, "after many calls",
                    partial(harder[slot].of, leaf),
                )  # fmt: skip
            context.comparator.calls += 1
            done += 1
        if context.candidate.readable and self.when is When.BEFORE_TIMING:  # else a device does the work
            context.doubts_now += rare_work(levelled(efforts))
        return f"{done} more calls were right"


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

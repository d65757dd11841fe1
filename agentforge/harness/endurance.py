"""Many more calls than timing needs, at an unpredictable number: no answer may depend on the count."""

from __future__ import annotations

import time
from random import SystemRandom

import torch

from .bench import Bench, Course
from .judge import Judge
from .party import Part, Party

_CALLS = (150, 400)
_SECONDS, _LEAST = 1.0, 3
_PARTS, _CHECKED, _ELEMENTS = 8, 2, 1024


def endure(bench: Bench, candidate: Party, course: Course, judge: Judge) -> str:
    """Call the candidate some hundreds of times, or as often as the time allows, and check every answer.

    The slots are filled once: contents that were seen before make these calls cheap, and it is the number
    of calls that is examined here.

    Args:
        bench: gives the right answers.
        candidate: given the course.
        course: workload made ready.
        judge: told of every output.

    Returns:
        What was done, for a person.

    Raises:
        PartyFailure: an answer was wrong, or the candidate failed.
    """
    random = SystemRandom()
    wanted: list[tuple[list[Part], list[torch.Tensor]]] = []
    for slot in range(course.inputs.slots):
        course.inputs.fill(slot)
        leaves = [x.value for x in bench.expect(course, slot)]
        parts = _parts(leaves, random)
        wanted.append(
            (parts, [leaves[n].reshape(-1)[first : first + count].clone() for n, first, count in parts])
        )
        del leaves
    bench.stop()
    count, deadline = random.randrange(*_CALLS), time.monotonic() + _SECONDS
    done = 0
    while done < count and (done < _LEAST or time.monotonic() < deadline):
        slot = random.randrange(len(wanted))
        candidate.call(slot)
        parts, expected = wanted[slot]
        chosen = random.sample(range(len(parts)), min(_CHECKED, len(parts)))
        pieces = candidate.fetch_parts(slot, [parts[i] for i in chosen])
        for i, piece in zip(chosen, pieces, strict=True):
            leaf, first, _ = parts[i]
            where = (course.outputs[leaf].path, first)
            bound = course.bounds[leaf]
            judge.check_part(piece, expected[i], bound, course.scales[leaf], where, "after many calls")
        judge.calls += 1
        done += 1
    return f"{done} more calls were right"


def _parts(leaves: list[object], random: SystemRandom) -> list[Part]:
    """Random flat ranges of the tensors among the leaves."""
    sizes = [(n, x.numel()) for n, x in enumerate(leaves) if isinstance(x, torch.Tensor) and x.numel()]
    parts: list[Part] = []
    for _ in range(_PARTS if sizes else 0):
        leaf, numel = random.choice(sizes)
        count = min(_ELEMENTS, numel)
        parts.append((leaf, random.randrange(numel - count + 1), count))
    return parts

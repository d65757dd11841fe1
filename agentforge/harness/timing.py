"""Interleaved turns of resident workers, timed by the referee's clock, every call checked.

A block gives every party one turn on the same fresh inputs, in random order. A turn is some untimed and
some timed calls; all other workers' process groups are stopped meanwhile, so that no thread of theirs
spins. After each call a random part of the output is read back, chosen before the block and known to
nobody but the referee; candidate and eager baseline must agree on all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import torch

from agentforge.schema import EvaluationStatus

from .bench import Bench, Course
from .judge import Judge
from .leaves import Leaf
from .memory import dtype_name
from .party import Part, Party, PartyFailure
from .tolerance import root_mean_square

_WHOLE_BYTES = 1 << 18
"""Outputs up to this size are read back whole after every call."""
_PARTS, _PART_ELEMENTS = 8, 4096
_MAX_STEAL = 0.05
_LATE_FACTOR, _LATE_MIN_S = 3.0, 1e-3


@dataclass(frozen=True)
class TurnShape:
    """Calls of one turn."""

    untimed: int
    timed: int

    @property
    def calls(self) -> int:
        return self.untimed + self.timed


@dataclass
class GroupTimes:
    """What one process group gave: seconds a call by party, one entry a block."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    put_seconds: dict[str, list[float]] = field(default_factory=dict)
    """Time to read a whole output back: an answer that is only computed then shows here."""
    claimed_ratio: list[float] = field(default_factory=list)
    """What the candidate's process said of its time / what the referee measured."""
    redone: int = 0
    """Blocks thrown away because other machines stole the processor."""
    steal: float = 0.0
    """Share of processor time that was stolen, over all blocks."""

    @property
    def blocks(self) -> int:
        return min((len(v) for v in self.seconds.values()), default=0)


def turn_shape(call_s: float, slots: int) -> TurnShape:
    """How many calls a turn has: short calls need company to warm up threads that were stopped."""
    if call_s < 2e-3:
        shape = TurnShape(2, 5)
    elif call_s < 2e-2:
        shape = TurnShape(1, 3)
    else:
        shape = TurnShape(1, 1)
    timed = max(1, min(shape.timed, slots - shape.untimed))
    return TurnShape(min(shape.untimed, slots - timed), timed)


@contextmanager
def device_lock(cache: Path) -> Iterator[None]:
    """One timing at a time on a device, over all processes that share the cache folder."""
    import fcntl

    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "timing.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """This process at one thread, so that its own pool does not spin beside who is timed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Timer:
    """Times one candidate against a bench on one course.

    Args:
        bench: trusted parties, already given the course.
        candidate: given the course.
        course: workload made ready.
        judge: told of every output.
    """

    def __init__(self, bench: Bench, candidate: Party, course: Course, judge: Judge) -> None:
        self._bench = bench
        self._candidate = candidate
        self._course = course
        self._judge = judge
        self._random = SystemRandom()
        self._parties: dict[str, Party] = {**bench.parties, "candidate": candidate}
        self._sizes = [
            (index, leaf.value.numel(), dtype_name(leaf.value.dtype))
            for index, leaf in enumerate(course.expected)
            if isinstance(leaf.value, torch.Tensor) and leaf.value.numel()
        ]
        self._scales = {
            index: root_mean_square(course.expected[index].value)
            for index, _, dtype in self._sizes
            if course.expected[index].value.is_floating_point()
        }
        nbytes = sum(x.value.nbytes for x in course.expected if isinstance(x.value, torch.Tensor))
        self._small = nbytes <= _WHOLE_BYTES
        self._whole_share = 1.0 if nbytes <= 1 << 24 else 0.25

    def run(self, blocks: int, seconds: float, least: int) -> GroupTimes:
        """Interleave blocks until there are enough or the time is used up.

        Args:
            blocks: at most so many.
            seconds: stop after so long, but not before `least` blocks.
            least: at least so many.

        Raises:
            PartyFailure: a timed call was wrong, or the candidate failed in it.
        """
        times = GroupTimes({n: [] for n in self._parties}, {n: [] for n in self._parties})
        shape = turn_shape(self._estimate(), self._course.inputs.slots)
        deadline = time.monotonic() + seconds
        steals = []
        while times.blocks < blocks and (time.monotonic() < deadline or times.blocks < least):
            before = _processor_time()
            self._block(shape, times)
            steal = _stolen(before, _processor_time())
            steals.append(steal)
            if steal > _MAX_STEAL and times.redone < blocks:
                times.redone += 1
                for series in times.seconds.values():
                    series.pop()
        times.steal = statistics.fmean(steals) if steals else 0.0
        self._look_for_late_work(times)
        return times

    def _estimate(self) -> float:
        """Seconds of one eager call."""
        eager = self._bench.eager
        took = min(eager.call(0) for _ in range(2)) / 1e9
        eager.worker.stop()
        return took

    def _block(self, shape: TurnShape, times: GroupTimes) -> None:
        slots = self._random.sample(range(self._course.inputs.slots), shape.calls)
        for slot in slots:
            self._course.inputs.fill(slot)
        self._bench.stop()
        parts = {slot: self._parts() for slot in slots}
        whole = self._random.choice(slots) if self._random.random() < self._whole_share else None
        order = list(self._parties)
        self._random.shuffle(order)
        seen: dict[str, dict[int, list[Leaf] | list[torch.Tensor]]] = {}
        for name in order:
            seen[name] = self._turn(name, shape, slots, parts, whole, times)
        self._compare(seen, parts)

    def _turn(
        self,
        name: str,
        shape: TurnShape,
        slots: Sequence[int],
        parts: dict[int, list[Part]],
        whole: int | None,
        times: GroupTimes,
    ) -> dict[int, list[Leaf] | list[torch.Tensor]]:
        party = self._parties[name]
        checked = name in ("candidate", "eager")
        took: list[float] = []
        outputs: dict[int, list[Leaf] | list[torch.Tensor]] = {}
        for number, slot in enumerate(slots):
            nanoseconds = party.call(slot)
            if number >= shape.untimed:
                took.append(nanoseconds / 1e9)
                if name == "candidate" and party.claimed_ns:
                    times.claimed_ratio.append(party.claimed_ns / nanoseconds)
            begin = time.perf_counter()
            if self._small or slot == whole:
                leaves, _ = party.fetch(slot)
                times.put_seconds[name].append(time.perf_counter() - begin)
                if checked:
                    outputs[slot] = leaves
            else:
                pieces = party.fetch_parts(slot, parts[slot], [self._dtype(p[0]) for p in parts[slot]])
                if checked:
                    outputs[slot] = pieces
        party.worker.stop()
        times.seconds[name].append(statistics.median(took))
        return outputs

    def _dtype(self, leaf: int) -> str:
        return next(dtype for index, _, dtype in self._sizes if index == leaf)

    def _parts(self) -> list[Part]:
        if not self._sizes:
            return []
        parts = []
        for _ in range(_PARTS):
            index, numel, _ = self._random.choice(self._sizes)
            count = min(_PART_ELEMENTS, numel)
            parts.append((index, self._random.randrange(numel - count + 1), count))
        return parts

    def _compare(
        self, seen: dict[str, dict[int, list[Leaf] | list[torch.Tensor]]], parts: dict[int, list[Part]]
    ) -> None:
        for slot, got in seen["candidate"].items():
            expected = seen["eager"][slot]
            if got and isinstance(got[0], Leaf):
                self._judge.check(got, expected, self._course.bounds, "in a timed call")
                continue
            self._judge.calls += 1
            for part, a, b in zip(parts[slot], got, expected, strict=True):
                leaf = part[0]
                where = (self._course.expected[leaf].path, part[1])
                bound, scale = self._course.bounds[leaf], self._scales.get(leaf, 0.0)
                self._judge.check_part(a, b, bound, scale, where, "in a timed call")

    def _look_for_late_work(self, times: GroupTimes) -> None:
        """An output that takes long to read was not computed when the answer came.

        Raises:
            PartyFailure: CHEATING.
        """
        ours, theirs = times.put_seconds["candidate"], times.put_seconds["eager"]
        if len(ours) < 3 or len(theirs) < 3:
            return
        # The fastest of ours: a loaded machine delays some reads, work that was put off delays all.
        late, usual = min(ours), statistics.median(theirs)
        call = min(times.seconds["candidate"])
        if late > _LATE_FACTOR * usual + _LATE_MIN_S and late - usual > 0.3 * call:
            raise PartyFailure(
                EvaluationStatus.CHEATING,
                f"reading its output takes {late * 1e3:.2f} ms, the reference's {usual * 1e3:.2f} ms: "
                "work is put off until the clock has stopped",
            )


def _processor_time() -> tuple[int, int]:
    """Jiffies stolen and in all."""
    fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields)


def _stolen(before: tuple[int, int], after: tuple[int, int]) -> float:
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total > 0 else 0.0

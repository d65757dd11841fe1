"""Interleaved turns of resident workers, timed by the referee's clock, every call checked.

A block gives every party one turn on the same fresh inputs, in random order. A turn is some untimed and
some timed calls; all other workers' process groups are stopped meanwhile, so that no thread of theirs
spins. A worker whose calls are long runs from the moment its call is sent until its answer has come, and
stands still while the next inputs are written and while its output is read out of its memory: there is no
time to work in that is not measured. Short calls run on within their turn (see `TurnShape`). What is read is
a random part, chosen before the block and known to nobody but the referee; candidate and eager baseline must
agree on all of them.
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

from .bench import Bench, Course, same_bytes
from .inputs import Recipe
from .judge import Judge
from .leaves import Leaf
from .memory import dtype_name
from .party import Part, Party, PartyFailure
from .statistics import ratio_interval, undisturbed
from .tolerance import root_mean_square

_WHOLE_BYTES = 1 << 18
"""Outputs up to this size are compared whole after every call."""
_MEDIUM_BYTES = 1 << 24
"""Of outputs up to this size one of each turn is compared whole, of larger ones one of four turns."""
_PARTS, _PART_ELEMENTS = 8, 4096
_LONG_S = 0.1
"""From here on a worker is stopped between the calls of its turn."""
_SETTLED_BLOCKS, _SETTLED_WIDTH = 10, 0.04
_MAX_STEAL = 0.05
_DISTURBED, _PATIENCE = 1.5, 2
"""A turn so many times slower than usual spoils its block; how often such blocks are made up for."""
_LOOK_FOR_OTHERS = 0.25
_KEEP, _KEEP_MORE = 1, (0.25, 4)
"""Earlier outputs that stay alive during a call; in some blocks more of them."""
_LATE_SHARE, _LATE_MIN_S, _LATE_SAMPLES = 0.25, 1e-4, 4
_SLOWEST_READ = 8e9


@dataclass(frozen=True)
class TurnShape:
    """Calls of one turn."""

    untimed: int
    timed: int
    runs_on: bool = True
    """The worker keeps running between the calls of its turn. Waking the threads of a stopped process takes
    longer than a short call does; a long one starts from a standstill, so that nobody can watch its content
    being written or work on after the answer."""

    @property
    def calls(self) -> int:
        return self.untimed + self.timed


@dataclass
class GroupTimes:
    """What one process group gave: seconds a call by party, one entry a block."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    reads: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Seconds of a call and of having its output put elsewhere, where its memory cannot be read."""
    others: int = 0
    """Most processes beside its own that the candidate was seen to have."""
    claimed: dict[str, float] = field(default_factory=dict)
    """What a worker said of its time / what the referee measured, by party, for the call that agrees
    best: a loaded machine delays some answers, a patched clock lies on all."""
    redone: int = 0
    """Blocks thrown away because something else had the processor."""
    steal: float = 0.0
    """Share of processor time that was stolen, over all blocks."""

    @property
    def blocks(self) -> int:
        return min((len(v) for v in self.seconds.values()), default=0)


def turn_shape(call_s: float) -> TurnShape:
    """How many calls a turn has: short calls need company to warm up threads that were stopped."""
    if call_s < 2e-3:
        return TurnShape(2, 5)
    if call_s < _LONG_S:
        return TurnShape(1, 3)
    return TurnShape(1, 1, runs_on=False)


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


@dataclass(frozen=True)
class _Call:
    """One call of a turn, the same for every party."""

    recipe: Recipe
    slot: int
    parts: list[Part]
    """What to read back of a large output."""
    keep: int
    """Earlier outputs that stay alive."""


@dataclass(frozen=True)
class _Output:
    """What was read back of one call: all of it, or pieces."""

    leaves: list[Leaf] = field(default_factory=list)
    pieces: list[torch.Tensor] = field(default_factory=list)


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
        self._nbytes = nbytes
        self._small = nbytes <= _WHOLE_BYTES
        self._medium = nbytes <= _MEDIUM_BYTES
        self._whole_share = 1.0 if self._medium else 0.25

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
        shape = turn_shape(self._estimate())
        begin = time.monotonic()
        steals = []
        while self._wanted(times, blocks, least, (time.monotonic() - begin) / seconds):
            before = _processor_time()
            self._block(shape, times)
            steal = _stolen(before, _processor_time())
            steals.append(steal)
            if steal > _MAX_STEAL and times.redone < blocks:
                times.redone += 1
                for series in times.seconds.values():
                    series.pop()
        times.steal = statistics.fmean(steals) if steals else 0.0
        calm = undisturbed(times.seconds, _DISTURBED)
        times.redone += times.blocks - len(calm)
        times.seconds = {name: [series[i] for i in calm] for name, series in times.seconds.items()}
        self._look_for_late_work(times)
        return times

    def _wanted(self, times: GroupTimes, blocks: int, least: int, used: float) -> bool:
        """Whether another block is needed.

        Only widths and a party's deviations from its own median are looked at, never the ratios themselves,
        so that stopping favours no outcome.

        Args:
            times: so far.
            blocks: wanted.
            least: before time counts.
            used: time / time allowed.
        """
        done = times.blocks
        if done < least:
            return True
        calm = len(undisturbed(times.seconds, _DISTURBED))
        if calm < least and done < _PATIENCE * least and used < _PATIENCE:
            return True
        enough = calm >= blocks or done >= _PATIENCE * blocks
        return not (enough or used >= 1 or self._settled(times))

    @staticmethod
    def _settled(times: GroupTimes) -> bool:
        """Whether more blocks would hardly narrow any interval."""
        if times.blocks < _SETTLED_BLOCKS or times.blocks % 2:
            return False
        candidate = times.seconds["candidate"]
        intervals = [ratio_interval(s, candidate) for n, s in times.seconds.items() if n != "candidate"]
        return all(i.high / i.low < 1 + _SETTLED_WIDTH for i in intervals)

    def _estimate(self) -> float:
        """Seconds of one eager call."""
        eager = self._bench.eager
        took = min(eager.call(0) for _ in range(2)) / 1e9
        eager.worker.stop()
        return took

    def _block(self, shape: TurnShape, times: GroupTimes) -> None:
        inputs, keep = self._course.inputs, _KEEP
        if self._medium and self._random.random() < _KEEP_MORE[0]:
            keep = min(_KEEP_MORE[1], shape.calls - 1)
        calls = [
            _Call(inputs.prepare(), self._random.randrange(inputs.slots), self._parts(), keep)
            for _ in range(shape.calls)
        ]
        self._bench.stop()
        self._candidate.worker.stop()
        whole = self._random.choice(calls) if self._random.random() < self._whole_share else None
        order = list(self._parties)
        self._random.shuffle(order)
        seen = {name: self._turn(name, shape, calls, whole, times) for name in order}
        for call, got, expected in zip(calls, seen["candidate"], seen["eager"], strict=True):
            self._compare(call, got, expected)

    def _turn(
        self, name: str, shape: TurnShape, calls: Sequence[_Call], whole: _Call | None, times: GroupTimes
    ) -> list[_Output]:
        party = self._parties[name]
        took: list[float] = []
        outputs: list[_Output] = []
        if party is self._candidate:
            # Another party's turn on the same contents may have come before.
            self._course.inputs.scrub()
        party.worker.settle()
        party.pauses = not shape.runs_on
        for number, call in enumerate(calls):
            # Only now, so that nobody can see what the calls to come will ask.
            if not shape.runs_on:
                party.worker.settle()
            self._course.inputs.apply(call.recipe, call.slot)
            nanoseconds, output = self._call(party, call, whole, times)
            outputs.append(output if party in (self._candidate, self._bench.eager) else _Output())
            if number >= shape.untimed:
                took.append(nanoseconds / 1e9)
                ratio = party.claimed_ns / nanoseconds
                times.claimed[name] = max(times.claimed.get(name, 0.0), ratio)
        party.pauses = True
        party.worker.stop()
        times.seconds[name].append(statistics.median(took))
        if party is self._candidate:
            self._look_back(calls, outputs)
            if self._random.random() < _LOOK_FOR_OTHERS:
                times.others = max(times.others, party.worker.stop_others())
        return outputs

    def _look_back(self, calls: Sequence[_Call], outputs: Sequence[_Output]) -> None:
        """The oldest output that is still alive is what it was.

        Raises:
            PartyFailure: CHEATING.
        """
        ago = min(calls[-1].keep, len(calls) - 1)
        if not ago:
            return
        call, before = calls[-1 - ago], outputs[-1 - ago]
        if before.pieces:
            now = self._candidate.fetch_parts(call.slot, call.parts, ago)
        else:
            now = [
                x.value for x in self._candidate.fetch(call.slot, ago) if isinstance(x.value, torch.Tensor)
            ]
        was = before.pieces or [x.value for x in before.leaves if isinstance(x.value, torch.Tensor)]
        if len(now) != len(was) or not all(same_bytes(a, b) for a, b in zip(now, was, strict=True)):
            raise PartyFailure(
                EvaluationStatus.CHEATING,
                "a later call overwrites the output of an earlier one: static buffers",
            )

    def _call(self, party: Party, call: _Call, whole: _Call | None, times: GroupTimes) -> tuple[int, _Output]:
        nanoseconds = party.call(call.slot, call.keep)
        begin = time.perf_counter()
        if self._small or call is whole:
            output = _Output(leaves=party.fetch(call.slot))
        else:
            output = _Output(pieces=party.fetch_parts(call.slot, call.parts))
        if not party.readable:
            times.reads[party.name].append((nanoseconds / 1e9, time.perf_counter() - begin))
        return nanoseconds, output

    def _parts(self) -> list[Part]:
        if not self._sizes:
            return []
        parts = []
        for _ in range(_PARTS):
            index, numel, _ = self._random.choice(self._sizes)
            count = min(_PART_ELEMENTS, numel)
            parts.append((index, self._random.randrange(numel - count + 1), count))
        return parts

    def _compare(self, call: _Call, got: _Output, expected: _Output) -> None:
        bounds = self._course.bounds
        if not got.pieces:
            self._judge.check(got.leaves, expected.leaves, bounds, "in a timed call")
            return
        self._judge.calls += 1
        for (leaf, first, _), a, b in zip(call.parts, got.pieces, expected.pieces, strict=True):
            where = (self._course.expected[leaf].path, first)
            self._judge.check_part(a, b, bounds[leaf], self._scales.get(leaf, 0.0), where, "in a timed call")

    def _look_for_late_work(self, times: GroupTimes) -> None:
        """An output that takes long to read was not computed when the answer came.

        Needed only where a worker has to be asked for its output.

        Raises:
            PartyFailure: CHEATING.
        """
        pairs = list(zip(times.reads["candidate"], times.reads["eager"], strict=True))
        if len(pairs) < _LATE_SAMPLES:
            return
        # Its fastest calls, since work may be put off in some of them only; and of their pairs the lower
        # quartile, since a loaded machine delays some reads and work put off delays all.
        fastest = sorted(pairs)[: max(_LATE_SAMPLES, len(pairs) // 2)]
        excess = sorted(ours[1] - theirs[1] for ours, theirs in fastest)[len(fastest) // 4]
        call = statistics.median(ours[0] for ours, _ in fastest)
        # Streamed stores leave an output out of the caches, where the baseline's is in them.
        allowed = _LATE_SHARE * call + _LATE_MIN_S + self._nbytes / _SLOWEST_READ
        if excess > allowed:
            late = statistics.median(ours[1] for ours, _ in fastest)
            usual = statistics.median(theirs[1] for _, theirs in fastest)
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

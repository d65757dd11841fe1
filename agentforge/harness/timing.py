"""Interleaved turns of resident workers, timed by the referee's clock, every call checked.

A block gives every party one turn on the same fresh inputs, in random order. A turn is some untimed and
some timed calls; all other workers' process groups are stopped meanwhile, so that no thread of theirs
spins. The worker runs on between the calls of its turn, since waking the threads of a stopped process takes
longer than a short call does, and it gains nothing by that: the content of a call is a file that it gets
when the clock has begun, and the clock ends when the referee has read a random sample of the answer out of
the worker's memory (see `Party.call`). More is read afterwards (see `spotcheck`); candidate and eager
baseline must agree on all of it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import psutil
import torch

from agentforge.schema import EvaluationStatus

from .bench import Bench, Course
from .contents import Unusual
from .judge import Judge
from .lateness import Beside, Lateness
from .memory import Block
from .party import Party, PartyFailure
from .placement import Placement
from .recipes import Recipe
from .spotcheck import Look, Seen, SpotChecks
from .statistics import CONTROL_SLACK, holds_one, ratio_interval, undisturbed

_SHORT_S, _LONG_S = 2e-3, 2e-2
_LARGE_OUTPUT = 16 << 20
_SHARED_BYTES, _SHARED_PART = 640 << 20, 8
"""Contents of a block's calls up to this size, or this part of the memory that is free, are made once for all
parties; of larger ones one lives at a time."""
_SETTLED_BLOCKS, _SETTLED_WIDTH = 10, 0.04
_MAX_STEAL = 0.05
_DISTURBED, _PATIENCE = 1.5, 2
"""A turn so many times slower than usual spoils its block; how often such blocks are made up for."""
_LOOK_FOR_OTHERS = 0.25
_KEEP, _KEEP_MORE = 1, (0.25, 4)
"""Earlier outputs that stay alive during a call; in some blocks more of them."""
_UNUSUAL_SHARE, _UNUSUAL_BYTES = 0.4, 64 << 20
"""Blocks that have a call with unusual content more, where contents are no larger than this."""
_reading_clock, _sleep = time.perf_counter, time.sleep
_SLOWEST_READ = 8e9
"""Bytes a second: streamed stores leave an output out of the caches, where the baseline's is in them."""


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
    doubts: list[str] = field(default_factory=list)
    """What may be work that is put off, and may be noise."""
    others: int = 0
    """Most processes beside its own that the candidate was seen to have."""
    claimed: dict[str, float] = field(default_factory=dict)
    """What a worker said of its time / what the referee measured until the answer was here, by party, for the
    call that agrees best: a loaded machine delays some answers, a patched clock lies on all."""
    redone: int = 0
    """Blocks thrown away because something else had the processor."""
    steal: float = 0.0
    """Share of processor time that was stolen, over all blocks."""

    @property
    def blocks(self) -> int:
        return min((len(v) for v in self.seconds.values()), default=0)


def turn_shape(call_s: float, output_bytes: int) -> TurnShape:
    """How many calls a turn has.

    Short calls need company to warm up threads that were stopped; what large outputs cost depends on which
    memory they are given, so that one call says little.
    """
    if call_s < _SHORT_S:
        return TurnShape(2, 5)
    if call_s < _LONG_S or output_bytes > _LARGE_OUTPUT:
        return TurnShape(1, 3)
    return TurnShape(1, 1)


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
    content: Block | None
    """Made by the recipe for all parties; None where each has its own made."""
    slot: int
    look: Look
    keep: int
    """Earlier outputs that stay alive."""
    timed: bool
    unusual: Unusual | None = None
    """What it asks for, where that is not what calls usually do."""


class Timer:
    """Times one candidate against a bench on one course.

    Args:
        bench: trusted parties, already given the course.
        candidate: given the course.
        course: workload made ready.
        judge: told of every output.
        placement: of these parties.
        patience: so many times the seconds may be used while the A/A' control does not hold.
        unusual: contents that some calls ask for; those do not count.
        gap_s: mean of the exponentially distributed pauses before each call, timed or not; 0 for none.
    """

    def __init__(
        self,
        bench: Bench,
        candidate: Party,
        course: Course,
        judge: Judge,
        placement: Placement,
        patience: float = _PATIENCE,
        unusual: Sequence[Unusual] = (),
        gap_s: float = 0.0,
    ) -> None:
        self._gap_s = gap_s
        self._judge = judge
        self._unusual = unusual if course.inputs.slot_bytes <= _UNUSUAL_BYTES else ()
        self._patience = patience
        self._bench = bench
        self._candidate = candidate
        self._inputs = course.inputs
        self._random = SystemRandom()
        self._parties: dict[str, Party] = {**bench.parties, "candidate": candidate}
        self._placement = placement
        self._checks = SpotChecks(course, judge, self._random)
        # Needed only where a worker has to be asked for its output, or a device has a clock of its own.
        self._reads = Beside(
            "reading its output takes {}, the reference's {}: work is put off until the clock has stopped",
            self._checks.nbytes / _SLOWEST_READ,
        )
        self._hidden = Beside(
            "beside its device's clock it takes {}, the reference {}: work is hidden from that clock"
        )

    def run(self, blocks: int, seconds: float, least: int) -> GroupTimes:
        """Interleave blocks until there are enough or the time is used up.

        Args:
            blocks: at most so many.
            seconds: stop after so long, but not before `least` blocks.
            least: at least so many.

        Raises:
            PartyFailure: a timed call was wrong, the candidate failed in it, or puts work off.
        """
        times = GroupTimes({name: [] for name in self._parties})
        shape = turn_shape(self._estimate(), self._checks.nbytes)
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
        done = times.blocks
        times.seconds = _calm(times)
        times.redone += done - times.blocks
        for beside in (self._reads, self._hidden):
            lateness = beside.lateness()
            if lateness is Lateness.CERTAIN:
                raise PartyFailure(EvaluationStatus.CHEATING, beside.found())
            if lateness is Lateness.UNKNOWN:
                times.doubts.append(f"{beside.found()}, or something disturbs it: measure again")
        return times

    def _wanted(self, times: GroupTimes, blocks: int, least: int, used: float) -> bool:
        """Whether another block is needed.

        Only widths, a party's deviations from its own median, the control and what stands beside calls are
        looked at, never the candidate's ratios, so that stopping favours no outcome.

        Args:
            times: so far.
            blocks: wanted.
            least: before time counts.
            used: time / time allowed.
        """
        done = times.blocks
        if done < least or self._reads.undecided or self._hidden.undecided:
            return True
        calm = _calm(times)
        left = len(calm["candidate"])
        if done < _PATIENCE * blocks and used < self._patience and (left < least or not _steady(calm)):
            return True
        enough = left >= blocks or done >= _PATIENCE * blocks
        return not (enough or used >= 1 or (done % 2 == 0 and _settled(calm)))

    def _estimate(self) -> float:
        """Seconds of one eager call; sees whether outputs are views of inputs, which later calls change."""
        eager = self._bench.eager
        took = min(eager.call(0) for _ in range(2)) / 1e9
        self._views = eager.aliases(0)
        eager.worker.stop()
        return took

    def _block(self, shape: TurnShape, times: GroupTimes) -> None:
        calls = self._calls(shape)
        self._bench.stop()
        self._candidate.worker.stop()
        order = list(self._parties)
        self._random.shuffle(order)
        seen = {name: self._turn(name, calls, times) for name in order}
        for call, got, expected in zip(calls, seen["candidate"], seen["eager"], strict=True):
            if call.unusual is None:
                self._checks.compare(call.look, got, expected)
            elif all(bool(torch.isfinite(x).all()) for x in expected.tensors()):
                situation = f"in a call among timed ones with {call.unusual.content.name}"
                self._judge.check(got.leaves, expected.leaves, call.unusual.bounds, situation)

    def _calls(self, shape: TurnShape) -> list[_Call]:
        """Contents that nobody has seen, and what to look at in the answers."""
        inputs, keep, number = self._inputs, _KEEP, shape.calls
        if self._checks.medium and self._random.random() < _KEEP_MORE[0]:
            keep = min(_KEEP_MORE[1], number - 1)
        recipes = [inputs.prepare() for _ in range(number)]
        room = max(_SHARED_BYTES, psutil.virtual_memory().available // _SHARED_PART)
        shared = inputs.slot_bytes * number <= room
        calls = [
            _Call(
                recipe,
                inputs.make(recipe) if shared else None,
                self._random.randrange(inputs.slots),
                look,
                keep,
                n >= shape.untimed,
            )
            for n, (recipe, look) in enumerate(zip(recipes, self._checks.choose(number), strict=True))
        ]
        if self._unusual and self._random.random() < _UNUSUAL_SHARE:
            calls.insert(self._random.randrange(number + 1), self._unusual_call(keep))
        return calls

    def _unusual_call(self, keep: int) -> _Call:
        """Nobody knows it from the others but by looking at all of its content."""
        inputs, unusual = self._inputs, self._random.choice(self._unusual)
        recipe = inputs.prepare()
        made = inputs.make(recipe)
        unusual.content.apply([made.tensor(layout) for layout in inputs.layouts])
        slot, look = self._random.randrange(inputs.slots), Look([], [], whole=True)
        return _Call(recipe, made, slot, look, keep, timed=False, unusual=unusual)

    def _turn(self, name: str, calls: Sequence[_Call], times: GroupTimes) -> list[Seen]:
        party = self._parties[name]
        party.readable = self._candidate.readable  # all are read in the same way, now
        took: list[float] = []
        seen: list[Seen] = []
        reads: list[float] = []
        hidden: list[float] = []
        watched = self._random.randrange(len(calls))
        with party.running_on():
            for number, call in enumerate(calls):
                if self._gap_s:
                    _sleep(self._random.expovariate(1 / self._gap_s))
                nanoseconds, output, reading = self._call(party, call)
                seen.append(output if party in (self._candidate, self._bench.eager) else Seen())
                if number == 0:
                    self._placement.place(party)
                if number == watched and party is self._candidate:
                    self._look_where_it_lies(call)
                if call.timed:
                    took.append(nanoseconds / 1e9)
                    reads.append(reading)
                    hidden.append(party.beside_ns / 1e9)
                    ratio = party.claimed_ns / party.answered_ns
                    times.claimed[name] = max(times.claimed.get(name, 0.0), ratio)
        times.seconds[name].append(statistics.median(took))
        if party in (self._candidate, self._bench.eager) and not party.readable:
            self._reads.add(party is self._candidate, zip(took, reads, strict=True))
            self._hidden.add(party is self._candidate, zip(took, hidden, strict=True))
        if party is self._candidate:
            self._look_back(calls, seen)
            if self._random.random() < _LOOK_FOR_OTHERS:
                times.others = max(times.others, party.worker.stop_others())
        return seen

    def _look_where_it_lies(self, call: _Call) -> None:
        """Its last output is memory of its own, also where nobody would see inputs change."""
        if self._candidate.readable and not self._views and self._candidate.aliases(call.slot):
            raise PartyFailure(
                EvaluationStatus.CHEATING, "the output of a timed call lies in the file of its input"
            )

    def _look_back(self, calls: Sequence[_Call], seen: Sequence[Seen]) -> None:
        """The oldest output that is still alive is what it was."""
        ago = min(calls[-1].keep, len(calls) - 1)
        if ago and not self._views:
            call = calls[-1 - ago]
            self._checks.unchanged(self._candidate, call.slot, call.look, seen[-1 - ago], ago)

    def _call(self, party: Party, call: _Call) -> tuple[int, Seen, float]:
        """One call: its nanoseconds, what was read back, and the seconds that reading took."""
        if call.content is None:
            self._inputs.apply(call.recipe, call.slot)
        else:
            self._inputs.place(call.content, call.slot)
        nanoseconds = party.call(call.slot, call.keep, call.look.sample)
        begin = _reading_clock()
        seen = self._checks.read(party, call.slot, call.look)
        return nanoseconds, seen, _reading_clock() - begin


def _calm(times: GroupTimes) -> dict[str, list[float]]:
    """The blocks that nothing else disturbed."""
    blocks = undisturbed(times.seconds, _DISTURBED)
    return {name: [series[i] for i in blocks] for name, series in times.seconds.items()}


def _steady(seconds: Mapping[str, Sequence[float]]) -> bool:
    """Whether the same baseline in two processes takes the same time."""
    return holds_one([ratio_interval(seconds["eager"], seconds["control"])], CONTROL_SLACK)


def _settled(seconds: Mapping[str, Sequence[float]]) -> bool:
    """Whether more blocks would hardly narrow any interval."""
    candidate = seconds["candidate"]
    if len(candidate) < _SETTLED_BLOCKS:
        return False
    intervals = [ratio_interval(s, candidate) for n, s in seconds.items() if n != "candidate"]
    return all(i.high / i.low < 1 + _SETTLED_WIDTH for i in intervals)


def _processor_time() -> tuple[int, int]:
    """Jiffies stolen and in all."""
    fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields)


def _stolen(before: tuple[int, int], after: tuple[int, int]) -> float:
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total > 0 else 0.0

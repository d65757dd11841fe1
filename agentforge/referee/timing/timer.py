"""Interleaved turns of resident workers, timed by the referee's clock, every call checked.

A block gives every worker one turn on the same fresh inputs, in random order. A worker is stopped around each
call while the content is copied into its memory. The clock starts before it runs on, and ends when a random
sample of the answer was read (`WorkerClient.call`). Candidate and eager must agree on all that is read.
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from random import SystemRandom

from agentforge.limits import free_memory
from agentforge.schema import EvaluationStatus

from ..baselines.baselines import Baselines
from ..baselines.prepared import PreparedWorkload
from ..comparison.comparator import OutputComparator
from ..comparison.draw_bounds import DrawBounds, own_draw
from ..comparison.output_sampling import OutputSampling, Sample, SamplePlan
from ..comparison.tolerance import Bound
from ..inputs.mixing import Recipe
from ..inputs.transforms import ProbeInput
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from ..workers.memory.shared_memory import Block
from ..workers.pytree import Leaf
from .cpu_affinity import CpuAffinity
from .deferred_work import Overheads
from .patience import Patience, processor_jiffies, stolen
from .rare_work import Effort, rare_excess, rare_work
from .state_watch import StateWatch
from .statistics import LOOKS, all_enough, control_steady, undisturbed
from .untouched import Untouched, faults_of_reader
from .unusual_calls import UnusualContents, answers, check_unusual
from .warming import warm

_SHORT_S, _LONG_S, _LARGE_OUTPUT = 2e-3, 2e-2, 16 << 20
_SHARED_BYTES, _SHARED_PART = 640 << 20, 8
"""Contents of a block's calls up to this size, or this part of the memory that is free, are made once for all
workers; of larger ones only one exists at a time."""
_MAX_STEAL = 0.05
_DISTURBED, _MOST_BLOCKS = 1.5, 2
"""Discard a block if a turn is >1.5x its median; measure at most 2x the blocks."""
_PATIENCE_SHARE = 0.5
"""Share of the patience that is left which one timing may spend on more blocks."""
_LOOK_FOR_OTHERS, _LOOK_AT_STATE = 0.25, 0.5
_KEEP, _KEEP_MORE = 1, (0.25, 4)
"""Earlier outputs that stay alive during a call; in some blocks more of them."""
_UNUSUAL_BYTES = 64 << 20
"""Size of inputs up to which blocks have one more call with transformed ones."""
_OF_FILES = "its outputs lie in pages of a file, which can hold parts of answers before they are asked for"
_reading_clock, _sleep = time.perf_counter, time.sleep


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
    """What one process group gave: seconds per call by worker, one entry per block."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    processor_s: dict[str, list[float]] = field(default_factory=dict)
    """Processor time of a turn's calls, by worker, one entry per turn; empty if it means nothing here."""
    doubts: list[str] = field(default_factory=list)
    """Overheads that may be deferred work or noise, in sentences."""
    others: int = 0
    """Most processes beside its own that the candidate was seen to have."""
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


@dataclass(frozen=True)
class _Call:
    """One call of a turn, the same for every worker."""

    recipe: Recipe
    content: Block | None
    """Made by the recipe for all workers; None if it is made for each."""
    slot: int
    look: SamplePlan
    keep: int
    """Earlier outputs that stay alive."""
    timed: bool
    unusual: ProbeInput | None = None
    """The transformation of its inputs, if there is one."""
    views: int = field(default_factory=lambda: secrets.randbelow(2))
    """1 to keep views alone of its output."""


class Timer:
    """Times one candidate against the baselines on one workload.

    Args:
        patience: seconds beyond the plan, for quiet moments and more blocks.
        unusual: transformed inputs of some untimed calls.
        gap_s: mean of exponentially distributed pauses before each call; 0 for none.
    """

    def __init__(
        self,
        baselines: Baselines,
        candidate: WorkerClient,
        prepared: PreparedWorkload,
        comparator: OutputComparator,
        placement: CpuAffinity,
        patience: Patience,
        unusual: UnusualContents | None = None,
        gap_s: float = 0.0,
    ) -> None:
        self._gap_s = gap_s
        self._comparator = comparator
        small = prepared.inputs.slot_bytes <= _UNUSUAL_BYTES
        self._unusual = unusual if unusual and small else UnusualContents()
        self._states = StateWatch(baselines, candidate, prepared, comparator)
        self._patience = patience
        self._baselines = baselines
        self._candidate = candidate
        self._prepared = prepared
        self._inputs = prepared.inputs
        self._random = SystemRandom()
        self._clients: dict[str, WorkerClient] = {**baselines.clients, "candidate": candidate}
        self._placement = placement
        self._checks = OutputSampling(prepared, comparator, self._random)
        self._overheads = Overheads(self._checks.nbytes)
        self._efforts: dict[str, list[Effort]] = {name: [] for name in self._clients}
        self._untouched = Untouched()

    def run(self, blocks: int, seconds: float, least: int, until: float = inf) -> GroupTimes:
        """Interleave blocks until there are enough or the time is used up.

        Args:
            seconds: stop after this time, but not before `least` blocks.
            least: the fewest to measure.
            until: by `time.monotonic()`; a doubt that is left then stays.

        Raises:
            WorkerFailure: a timed call was wrong, the candidate failed in it, or puts work off.
        """
        times = GroupTimes({name: [] for name in self._clients})
        shape = turn_shape(self._estimate(), self._checks.nbytes)
        begin, steals, disturbed = time.monotonic(), list[float](), 0
        self._states.begin()
        waited = self._patience.waited
        share = _PATIENCE_SHARE * self._patience.left

        def elapsed() -> float:
            return time.monotonic() - begin - (self._patience.waited - waited)

        while self._wanted(
            times, blocks, least, elapsed() / seconds, share / seconds, late=time.monotonic() > until
        ):
            self._baselines.stop()
            self._candidate.worker.stop()
            disturbed += self._patience.wait()
            before = processor_jiffies()
            self._block(shape, times)
            if self._random.random() < _LOOK_AT_STATE:
                self._states.look(times.seconds["candidate"][-1])
            steal = stolen(before, processor_jiffies())
            steals.append(steal)
            if steal > _MAX_STEAL and times.redone < blocks and elapsed() < seconds + share:
                times.redone += 1
                for series in times.seconds.values():
                    series.pop()
            share = min(share, self._patience.left)  # waiting spends it too
        self._patience.spend(elapsed() - seconds)
        times.steal = statistics.fmean(steals) if steals else 0.0
        beside_s = self._overheads.excess_s() + self._untouched.excess_s()
        ours, *others = (self._efforts[n] for n in ("candidate", *self._baselines.clients))
        times_as_long = 1 + rare_excess(ours, others)
        times.seconds["candidate"] = [times_as_long * (s + beside_s) for s in times.seconds["candidate"]]
        done = times.blocks
        times.seconds = _calm(times)
        times.redone += done - times.blocks
        times.doubts += self._overheads.doubts(self._states.asked, often_disturbed=4 * disturbed > done)
        times.doubts += rare_work(ours, others, shape.calls)
        return times

    def _wanted(
        self, times: GroupTimes, blocks: int, least: int, used: float, extra: float, *, late: bool = False
    ) -> bool:
        """Whether another block is needed: see `statistics` for what stopping costs the intervals."""
        done = times.blocks
        if done < least or (self._overheads.undecided and not late):
            return True
        calm = _calm(times)
        left = len(calm["candidate"])
        most = _MOST_BLOCKS * blocks
        if done < most and used < 1 + extra and (left < least or not control_steady(calm)):
            return True
        return not (left >= blocks or done >= most or used >= 1 or (left in LOOKS and all_enough(calm)))

    def _estimate(self) -> float:
        """Seconds of one eager call; sees which outputs are views of inputs, or lie in other files' pages."""
        keeps = (_KEEP_MORE[1], _KEEP) if self._checks.medium else (_KEEP,)
        took = {name: warm(client, keeps) for name, client in self._clients.items()}
        self._views = self._baselines.eager.aliases(0)
        self._of_files = self._views | self._baselines.eager.of_files()
        self._baselines.eager.worker.stop()
        return took["eager"]

    def _block(self, shape: TurnShape, times: GroupTimes) -> None:
        calls = self._calls(shape)
        self._baselines.stop()
        self._candidate.worker.stop()
        order = list(self._clients)
        self._random.shuffle(order)
        seen = {}
        for name in order:
            worker = self._clients[name].worker
            before = worker.cpu_seconds()
            seen[name], clock_s = self._turn(name, calls, times)
            if self._candidate.readable:  # otherwise a device does the work
                used = worker.cpu_seconds() - before
                times.processor_s.setdefault(name, []).append(used)
                self._efforts[name].append((clock_s, used))
        for call, got, expected in zip(calls, seen["candidate"], seen["eager"], strict=True):
            own = partial(self._own, call)
            if call.unusual is None:
                harder = DrawBounds(self._prepared, own)
                self._checks.compare(call.look, got, self._settled(call, got, expected), harder)
            else:
                check_unusual(self._comparator, call.unusual, got, expected, own)

    def _own(self, call: _Call) -> tuple[list[Leaf], list[Bound]]:
        """The reference's answer to a call, and bounds by its error in this very draw."""
        self._give(call)
        return own_draw(self._baselines, self._prepared, call.slot)

    def _settled(self, call: _Call, got: Sample, expected: Sample) -> Sample:
        """Float32 eager may overflow when float64 does not, and an integer may be undecided."""
        if not got.needs_another_look(expected):
            return expected
        self._give(call)
        whole = self._baselines.expect(self._prepared, call.slot)
        self._baselines.stop()
        return self._checks.settled(call.look, got, expected, whole)

    def _give(self, call: _Call) -> None:
        if call.content is None:
            self._inputs.apply(call.recipe, call.slot)
        else:
            self._inputs.place(call.content, call.slot)

    def _calls(self, shape: TurnShape) -> list[_Call]:
        """Fresh contents, and the parts of the answers to read."""
        inputs, keep, number = self._inputs, _KEEP, shape.calls
        if self._checks.medium and self._random.random() < _KEEP_MORE[0]:
            keep = min(_KEEP_MORE[1], number - 1)
        recipes = [inputs.prepare() for _ in range(number)]
        room = max(_SHARED_BYTES, free_memory() // _SHARED_PART)
        shared, slot = inputs.slot_bytes * number <= room, partial(self._random.randrange, inputs.slots)
        timed = self._random.sample(range(1, number), shape.timed)  # none but the first can know its role
        calls = [
            _Call(recipe, inputs.make(recipe) if shared else None, slot(), look, keep, n in timed)
            for n, (recipe, look) in enumerate(zip(recipes, self._checks.choose(number), strict=True))
        ]
        for unusual in self._unusual.draw(self._random, most=(number + 1) // 2):
            if (call := self._unusual_call(unusual, keep)) is not None:
                calls.insert(self._random.randrange(1, len(calls) + 1), call)  # the first is known as such
        return calls

    def _unusual_call(self, unusual: ProbeInput, keep: int) -> _Call | None:
        """A call with transformed inputs, which only reading all of its content reveals; None if the
        reference raises."""
        inputs, recipe = self._inputs, self._inputs.prepare()
        made = inputs.make(recipe)
        unusual.content.apply([made.tensor(layout) for layout in inputs.layouts])
        slot, look = self._random.randrange(inputs.slots), SamplePlan([], [], whole=True)
        call = _Call(recipe, made, slot, look, keep, timed=False, unusual=unusual)
        if self._prepared.state:  # which another call would change
            return call
        self._give(call)
        return call if answers(self._baselines.eager, slot, keep) else None

    def _turn(self, name: str, calls: Sequence[_Call], times: GroupTimes) -> tuple[list[Sample], float]:
        """What was read, and the seconds of all calls together."""
        client = self._clients[name]
        client.readable = self._candidate.readable  # all are read in the same way
        seen: list[Sample] = []
        usual, unusual, clock_s = list[float](), list[float](), 0.0
        timed: list[tuple[float, float, float, float]] = []
        watched = self._random.randrange(len(calls))
        for number, call in enumerate(calls):
            if self._gap_s:
                _sleep(self._random.expovariate(1 / self._gap_s))
            nanoseconds, output, reading = self._call(client, call, watched=number == watched)
            late_s = client.worker.late_s
            seen.append(output if client in (self._candidate, self._baselines.eager) else Sample())
            if number == 0:
                self._placement.place(client)
            if number == watched:
                self._look_where_it_lies(client, call, times)
                others = client.worker.stop_others() if self._random.random() < _LOOK_FOR_OTHERS else 0
                if client is self._candidate:
                    times.others = max(times.others, others)
            clock_s += nanoseconds / 1e9 + late_s
            if call.unusual is None:
                usual.append(nanoseconds / 1e9)
            else:
                unusual.append(nanoseconds / 1e9 + late_s)
            if call.timed:
                timed.append((nanoseconds / 1e9, reading, client.overhead_ns / 1e9, late_s))
        times.seconds[name].append(statistics.median(took for took, *_ in timed))
        if client in (self._candidate, self._baselines.eager):
            ours = client is self._candidate
            self._overheads.add_turn(ours, usual, timed, unusual, readable=client.readable)
        if client is self._candidate:
            self._look_back(calls, seen)
        return seen, clock_s

    def _look_where_it_lies(self, client: WorkerClient, call: _Call, times: GroupTimes) -> None:
        """Check that its last output is memory of its own, and that its inputs are as they were.

        Only the candidate is accused. All are looked at, so that none has colder caches in its next call.
        """
        shared = client.shares_pages() - self._views if client.readable else frozenset()
        of_files = client.of_files() - self._of_files
        wrote = client.wrote_to_inputs(call.slot)
        if client is not self._candidate:
            return
        if shared:
            where = "its input's memory" if shared & client.aliases(call.slot) else "shared pages"
            raise WorkerFailure(EvaluationStatus.CHEATING, f"a timed call's output lies in {where}")
        if of_files and _OF_FILES not in times.doubts:
            times.doubts.append(_OF_FILES)
        if wrote:
            raise WorkerFailure(EvaluationStatus.CHEATING, "it writes to its inputs in a timed call")

    def _look_back(self, calls: Sequence[_Call], seen: Sequence[Sample]) -> None:
        """The oldest output that is still alive is what it was, but for views of inputs."""
        ago = min(calls[-1].keep, len(calls) - 1)
        if ago:
            call, before = calls[-1 - ago], seen[-1 - ago]
            self._checks.unchanged(self._candidate, call.slot, call.look, before, ago, self._views)

    def _call(self, client: WorkerClient, call: _Call, *, watched: bool) -> tuple[int, Sample, float]:
        """One call: its nanoseconds, what was read back, and the seconds that reading took."""
        self._give(call)
        nanoseconds = client.call(call.slot, call.keep, call.look.sample, call.views)
        faults = faults_of_reader(client) if watched else 0.0  # before anything else reads its pages
        if watched and client in (self._candidate, self._baselines.eager):
            self._untouched.add(client is self._candidate, faults)
        begin = _reading_clock()
        seen = self._checks.read(client, call.slot, call.look)
        return nanoseconds, seen, _reading_clock() - begin


def _calm(times: GroupTimes) -> dict[str, list[float]]:
    """The blocks that nothing else disturbed."""
    blocks = undisturbed(times.seconds, _DISTURBED)
    return {name: [series[i] for i in blocks] for name, series in times.seconds.items()}

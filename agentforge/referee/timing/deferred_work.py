"""Detects deferred work: work done while the answer is read, or beside a device's clock.

Noise adds time to some turns of both workers; deferred work adds time to every turn of the candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from statistics import fmean, median

from agentforge.schema import EvaluationStatus

from ..workers.failures import WorkerFailure

SHARE, LEAST_S = 0.25, 1e-4
"""Allowed extra overhead: 25 % of the call plus 0.1 ms."""
_HIDDEN_SHARE = 0.15
"""Share of the time beside the reference's device clock by which a candidate's may be longer: most of it is
the copy of the inputs to the device, whose speed differs from process to process."""
TELLING = 12
"""Least number of turns of each worker. If noise hits turns by chance, all but one of
twelve are above all but one of another worker's once in 20,000 times; of eight, once in 200."""
_FEWEST = 4
"""Calls with unusual contents below which these say nothing."""
_EXCEPTIONS = 12
"""One turn in this many may disagree."""
SLOWEST_READ = 8e9
"""Slowest honest read, in bytes per second: streamed stores leave an output out of the caches."""


class Lateness(Enum):
    """What turns say."""

    NONE = auto()
    UNKNOWN = auto()
    """Too few turns, or too noisy ones."""
    CERTAIN = auto()


@dataclass
class Overhead:
    """Overheads of the calls of two workers, turn by turn.

    Args:
        slack_s: seconds that may stand beside any call more than beside the reference's.
        share: of the time beside the reference's usual call, which may come on top.
    """

    claim: str
    slack_s: float = 0.0
    share: float = 0.0
    ours: list[tuple[float, float]] = field(default_factory=list)
    """Of each of the candidate's turns: seconds of a call, seconds beside it."""
    theirs: list[tuple[float, float]] = field(default_factory=list)
    """Of the reference's."""

    def add(self, candidate: bool, calls: Iterable[tuple[float, float]]) -> None:
        """Remember a turn.

        Args:
            calls: seconds of each timed call, and seconds beside it; without any there is nothing to see.
                Less than zero is noise and counts as zero: the reference's noise accuses no candidate.
        """
        # Those that the turn's median rests on, as work may be deferred in some calls only. Of them the
        # least.
        fastest = sorted(calls)
        fastest = fastest[: len(fastest) // 2 + 1]
        if fastest:
            turns = self.ours if candidate else self.theirs
            least = max(0.0, min(beside for _, beside in fastest))
            turns.append((median(call for call, _ in fastest), least))

    def lateness(self) -> Lateness:
        """What all turns say together."""
        if not self.ours or not self.theirs:
            return Lateness.NONE
        ours, theirs = (sorted(beside for _, beside in turns) for turns in (self.ours, self.theirs))
        allowed, least = self.allowed_s(), min(len(ours), len(theirs))
        if max(_differences(ours, theirs)) <= allowed:
            return Lateness.NONE
        exceptions = least // _EXCEPTIONS
        if least >= TELLING and ours[exceptions] - theirs[-1 - exceptions] > allowed:
            return Lateness.CERTAIN
        return Lateness.UNKNOWN

    def allowed_s(self) -> float:
        """Seconds that may stand beside a call more than beside the reference's; there are turns of both."""
        usual = self.share * median(beside for _, beside in self.theirs)
        return SHARE * median(call for call, _ in self.ours) + LEAST_S + self.slack_s + usual

    def excess_s(self) -> float:
        """Seconds that stand beside the candidate's usual call and not beside the reference's, at least."""
        ours, theirs = (sorted(beside for _, beside in turns) for turns in (self.ours, self.theirs))
        return max(0.0, min(_differences(ours, theirs))) if ours and theirs else 0.0

    @property
    def undecided(self) -> bool:
        """Whether more turns would tell."""
        return min(len(self.ours), len(self.theirs)) < TELLING and self.lateness() is not Lateness.NONE

    def found(self) -> str:
        """The claim, with the usual seconds in it."""
        late, usual = (median(beside for _, beside in turns) for turns in (self.ours, self.theirs))
        return self.claim.format(f"{late * 1e3:.2f} ms", f"{usual * 1e3:.2f} ms")


class Overheads:
    """Where work of the candidate may hide in a process group.

    Args:
        output_bytes: size of an output.
    """

    def __init__(self, output_bytes: int) -> None:
        # The first two are needed only if a worker must be asked for its output, or a device has a clock.
        self.reads = Overhead(
            "reading its output takes {}, the reference's {}: work is deferred until the clock has stopped",
            output_bytes / SLOWEST_READ,
        )
        self.hidden = Overhead(
            "beside its device's clock it takes {}, the reference {}: work is hidden from that clock",
            share=_HIDDEN_SHARE,
        )
        self.late = Overhead(
            "until its threads stop after its answer it uses {} of processor time, the reference {}: work is "
            "deferred until the clock has stopped"
        )
        self.uneven = Overhead("its mean call is {} above its median, the reference's {}: few calls do all")
        # Without a claim: a kernel may be slower for unusual contents. Its time counts.
        self._unusual, self._usual_calls = Overhead(""), 0

    def add_turn(
        self,
        candidate: bool,
        usual: Sequence[float],
        timed: Sequence[tuple[float, float, float, float]],
        unusual: Sequence[float] = (),
        *,
        readable: bool,
    ) -> None:
        """Remember a turn of the candidate or of the reference.

        Args:
            usual: seconds of each call with a usual content.
            timed: seconds of each timed call, of reading its output, beside the device's clock, and of
                processor time after its answer.
            unusual: seconds of each call with an unusual content, with processor time after its answer.
            readable: the supervisor reads outputs itself.
        """
        took, reads, hidden, late = zip(*timed, strict=True)
        self.uneven.add(candidate, [(median(took), fmean(usual) - median(took))])
        self._unusual.add(candidate, [(median(took), seconds - median(took)) for seconds in unusual])
        self._usual_calls += len(usual) * candidate
        if readable:
            self.late.add(candidate, zip(took, late, strict=True))
        else:
            self.reads.add(candidate, zip(took, reads, strict=True))
            self.hidden.add(candidate, zip(took, hidden, strict=True))

    def excess_s(self) -> float:
        """Seconds to add to the candidate's usual call: a median hides calls that do the work of others, and
        the clock what follows an answer."""
        return self.uneven.excess_s() + self.late.excess_s() + self._in_unusual_s()

    def _in_unusual_s(self) -> float:
        """Seconds of a usual call that are spent in calls with unusual contents, beyond the reference's.

        Their mean counts, if of most pairs of such calls the candidate's is longer: by chance the share of
        these pairs is above 0.5 + 1 / sqrt(n) once in a hundred times. The longest call is left out, since
        another program may have held it up.
        """
        ours, theirs = (sorted(b for _, b in turns) for turns in (self._unusual.ours, self._unusual.theirs))
        least = min(len(ours), len(theirs))
        if least < _FEWEST:
            return 0.0
        allowed = self._unusual.allowed_s()
        longer = fmean(x - y > allowed for x in ours for y in theirs)
        if longer < 0.5 + 1 / math.sqrt(least):
            return 0.0
        return max(0.0, fmean(ours[:-1]) - fmean(theirs)) * len(ours) / self._usual_calls

    @property
    def undecided(self) -> bool:
        """Whether more turns would tell."""
        return any(x.undecided for x in (self.reads, self.hidden, self.late, self.uneven))

    def doubts(self, asked: Overhead, *, often_disturbed: bool) -> Iterator[str]:
        """What may be deferred work or noise, in sentences.

        Args:
            asked: what looks at the state took.
            often_disturbed: other programs ran before more than a quarter of the blocks.

        Raises:
            WorkerFailure: the candidate puts work off.
        """
        for beside in (self.reads, self.hidden, self.late, self.uneven, asked):
            lateness = beside.lateness()
            # Other programs hold up calls of several threads more often than those of one.
            chance = beside is self.uneven and often_disturbed
            if lateness is Lateness.CERTAIN and not chance:
                raise WorkerFailure(EvaluationStatus.CHEATING, beside.found())
            if lateness is not Lateness.NONE:
                yield f"{beside.found()}, or something disturbs it: measure again"


def _differences(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """Of the lower quartiles and of the medians of sorted seconds.

    Noise hides deferred work in many turns, but not in the shortest ones.
    """
    return ours[len(ours) // 4] - theirs[len(theirs) // 4], median(ours) - median(theirs)

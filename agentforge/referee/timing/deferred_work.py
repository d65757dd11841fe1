"""Detects deferred work: work done while the answer is read, or beside a device's clock.

Noise adds time to some turns of both workers; deferred work adds time to every turn of the candidate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from statistics import median

_SHARE, _LEAST_S = 0.25, 1e-4
"""Allowed extra overhead: 25 % of the call plus 0.1 ms."""
TELLING = 12
"""Least number of turns of each worker. If noise hits turns by chance, all but one of
twelve are above all but one of another worker's once in 20,000 times; of eight, once in 200."""
_EXCEPTIONS = 12
"""One turn in this many may disagree."""


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
    """

    claim: str
    slack_s: float = 0.0
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
        allowed = _SHARE * median(call for call, _ in self.ours) + _LEAST_S + self.slack_s
        least = min(len(ours), len(theirs))
        if max(_differences(ours, theirs)) <= allowed:
            return Lateness.NONE
        exceptions = least // _EXCEPTIONS
        if least >= TELLING and ours[exceptions] - theirs[-1 - exceptions] > allowed:
            return Lateness.CERTAIN
        return Lateness.UNKNOWN

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


def _differences(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """Of the lower quartiles and of the medians of sorted seconds.

    Noise hides deferred work in many turns, but not in the shortest ones.
    """
    return ours[len(ours) // 4] - theirs[len(theirs) // 4], median(ours) - median(theirs)

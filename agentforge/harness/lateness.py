"""Whether work is put off to where its time does not count: until an answer is read, beside a device's clock.

What stands beside a call is one noisy measurement: a loaded machine makes a read several times longer than it
is, and all reads of a turn with it. So nobody is accused of one. Noise only ever adds, to some turns, and to
the reference's as to the candidate's; work that is put off is there in every turn. That is what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from statistics import median

_SHARE, _LEAST_S = 0.25, 1e-4
"""Of a call, and at least so many seconds, may stand beside it more than beside the reference's."""
TELLING = 12
"""Turns of each party without which nobody is accused. Where noise hits turns by chance, all but one of
twelve lie above all but one of another party's once in 20,000 times; of eight, once in 200."""
_EXCEPTIONS = 12
"""One turn of so many may say otherwise."""


class Lateness(Enum):
    """What turns say."""

    NONE = auto()
    UNKNOWN = auto()
    """Too few turns, or too noisy ones."""
    CERTAIN = auto()


@dataclass
class Beside:
    """What stood beside the calls of two parties, turn by turn.

    Args:
        claim: what it means, for a person, with places for what it takes and what it takes the reference.
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
            candidate: whose it is.
            calls: seconds of each timed call, and seconds beside it; without any there is nothing to see.
        """
        # Those that the turn's median rests on, as work may be put off in some calls only. Of them the least.
        fastest = sorted(calls)
        fastest = fastest[: len(fastest) // 2 + 1]
        if fastest:
            turns = self.ours if candidate else self.theirs
            turns.append((median(call for call, _ in fastest), min(beside for _, beside in fastest)))

    def lateness(self) -> Lateness:
        """What all turns say together."""
        if not self.ours or not self.theirs:
            return Lateness.NONE
        ours, theirs = (sorted(beside for _, beside in turns) for turns in (self.ours, self.theirs))
        allowed = _SHARE * median(call for call, _ in self.ours) + _LEAST_S + self.slack_s
        least = min(len(ours), len(theirs))
        # Usually, and where it is quiet: noise hides what is late in many turns, not in the least ones.
        quiet = ours[len(ours) // 4] - theirs[len(theirs) // 4]
        if max(quiet, median(ours) - median(theirs)) <= allowed:
            return Lateness.NONE
        exceptions = least // _EXCEPTIONS
        if least >= TELLING and ours[exceptions] - theirs[-1 - exceptions] > allowed:
            return Lateness.CERTAIN
        return Lateness.UNKNOWN

    @property
    def undecided(self) -> bool:
        """Whether more turns would tell."""
        return min(len(self.ours), len(self.theirs)) < TELLING and self.lateness() is not Lateness.NONE

    def found(self) -> str:
        """The claim, with the usual seconds in it."""
        late, usual = (median(beside for _, beside in turns) for turns in (self.ours, self.theirs))
        return self.claim.format(f"{late * 1e3:.2f} ms", f"{usual * 1e3:.2f} ms")

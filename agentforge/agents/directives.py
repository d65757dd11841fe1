"""Directives: fragments of the coder's prompt that a language model edits while the run goes on.

After ShinkaEvolve's evolving prompts (Lange, Imajuku and Cetin, 2025, arXiv:2509.19349). Which fragment an
attempt gets, and when a new one is due, are pure functions of the finished attempts. The loop draws when it
chooses an attempt, and stores the draw in `Attempt.directive`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from random import Random

from agentforge.schema import Directive

from .bandit import explore

PLAIN = "plain"
"""Identifier of the prompt without a fragment, which the first ones edit."""

EVERY = 10
"""Finished attempts for each new fragment."""

PRIOR = 2.0
"""Attempts with the mean gain of all that a fragment counts for before its own."""

EXPLORATION = 0.15
"""Factor of the bonus for fragments with few attempts: about the standard deviation of a gain in reward."""


@dataclass(frozen=True)
class Use:
    """One attempt that a fragment was drawn for."""

    directive: str
    gain: float | None
    """Its reward less its parent's, or a baseline's; below 0 for a loss. None while it is under way, and
    without a verdict."""


def names(known: Sequence[Directive]) -> list[str]:
    """Identifiers of the fragments that may be drawn; a call that gave no text made none."""
    return [PLAIN, *(one.id for one in known if one.text)]


def fitness(name: str, uses: Sequence[Use]) -> float:
    """Mean gain of a fragment's attempts, shrunk towards the mean of all."""
    every = [use.gain for use in uses if use.gain is not None]
    own = [use.gain for use in uses if use.gain is not None and use.directive == name]
    overall = sum(every) / len(every) if every else 0.0
    return (sum(own) + PRIOR * overall) / (len(own) + PRIOR)


def live(names: Sequence[str], uses: Sequence[Use], most: int) -> list[str]:
    """The fragments that may be drawn: those without an attempt, then the fittest."""
    tried = {use.directive for use in uses}
    return nlargest(most, names, key=lambda name: (name not in tried, fitness(name, uses)))


def draw_directive(names: Sequence[str], uses: Sequence[Use], random: Random, most: int) -> str:
    """The fragment of the next attempt: a pure function of its arguments.

    Drawn by `explore` among the live ones, with the fitness as value and one more than its attempts as tries.

    Args:
        uses: finished attempts, then those under way.
        random: made for this decision.
        most: fragments that are live at once.
    """
    among = live(names, uses, most)
    tries = {name: sum(use.directive == name for use in uses) + 1 for name in among}
    return explore({name: fitness(name, uses) for name in among}, tries, len(uses), EXPLORATION, random)


def is_due(known: Sequence[Directive], uses: Sequence[Use]) -> bool:
    """Whether it is time for another fragment."""
    return len(known) < len(uses) // EVERY


def fittest(names: Sequence[str], uses: Sequence[Use]) -> str:
    """The fragment to edit next, one with attempts; the newest of equals."""
    tried = {use.directive for use in uses}
    return max((n for n in reversed(names) if n in tried), key=lambda name: fitness(name, uses))

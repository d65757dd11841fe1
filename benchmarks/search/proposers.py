"""Simulated proposers: they choose among the recorded points as models of three strengths would.

The rates are assumptions, not measurements of a model. A result of the lab counts if it is the same for all
three. Chance depends on the seed, the landscape, the proposer, the number of the attempt and the kind of
decision, so two policies meet the same luck at the same attempt, whatever each has tried before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from random import Random

from agentforge.schema import EvaluationStatus
from search.landscape import Landscape


@dataclass(frozen=True)
class Proposer:
    """Rates of a simulated planner, coder and judge."""

    name: str
    insight: float
    """Probability that it picks the strategy, or the parameter, with the best recorded point."""
    compile_error: float
    """Probability that what it writes does not build; of the failures it costs the least."""
    wrong: float
    crash: float
    repair: float
    """Probability that a repair gives the code that was meant."""
    seconds: float
    """Of its calls for one attempt."""
    dollars: float
    """Of its calls for one attempt."""

    def failure(self, chance: Random, *, surely: bool = False) -> EvaluationStatus | None:
        """How an attempt fails by its own fault; None if it does not.

        Args:
            surely: it fails, and only the kind of failure is left to chance.
        """
        kinds = {
            EvaluationStatus.COMPILE_ERROR: self.compile_error,
            EvaluationStatus.INCORRECT_NUMERICAL: self.wrong,
            EvaluationStatus.CRASHED: self.crash,
        }
        if surely or chance.random() < sum(kinds.values()):
            return chance.choices(list(kinds), list(kinds.values()))[0]
        return None


PROPOSERS = (
    Proposer("weak", 0.4, 0.20, 0.24, 0.06, 0.4, 20.0, 0.004),
    Proposer("medium", 0.6, 0.10, 0.12, 0.03, 0.6, 40.0, 0.04),
    Proposer("strong", 0.8, 0.05, 0.06, 0.015, 0.8, 80.0, 0.2),
)


def chance_of(*parts: object) -> Random:
    """A generator for one decision; the same for the same parts."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return Random(int.from_bytes(digest))


@dataclass(frozen=True)
class Space:
    """Which solutions of a landscape are next to each other."""

    landscape: Landscape

    @cached_property
    def starts(self) -> Mapping[str, str]:
        """The solution of each strategy's first point that gives one."""
        found: dict[str, str] = {}
        for point in self.landscape.points:
            if point.solution:
                found.setdefault(point.strategy, point.solution)
        return found

    @cached_property
    def neighbours(self) -> Mapping[str, Sequence[tuple[tuple[str, str], str]]]:
        """By solution: those that one change of a parameter gives, each with its strategy and parameter."""
        found: dict[str, dict[tuple[tuple[str, str], str], None]] = {}
        points = [p for p in self.landscape.points if p.solution]
        for one in points:
            own = found.setdefault(one.solution, {})
            for other in points:
                if other.strategy == one.strategy and other.solution != one.solution:
                    changed = [k for k, v in one.parameters.items() if other.parameters.get(k) != v]
                    if len(changed) == 1:
                        own[(one.strategy, changed[0]), other.solution] = None
        return {solution: tuple(near) for solution, near in found.items()}

    def changes(self, solution: str, seen: Collection[str]) -> list[tuple[tuple[str, str], str]]:
        """The neighbours of a solution that were not seen."""
        return [(change, s) for change, s in self.neighbours.get(solution, ()) if s not in seen]

    def start(self, proposer: Proposer, seen: Collection[str], begun: Collection[str], chance: Random) -> str:
        """Strategies that were not begun come first, then any solution; empty if all were seen."""
        open_starts = [s for name, s in self.starts.items() if name not in begun and s not in seen]
        every = open_starts or [s for s in self.landscape.solutions if s not in seen]
        if not every:
            return ""
        if open_starts and chance.random() < proposer.insight:
            return max(every, key=self.landscape.gains.__getitem__)
        return chance.choice(every)

    def change(self, proposer: Proposer, solution: str, seen: Collection[str], chance: Random) -> str:
        """A neighbour: the parameter by insight, its value by chance; empty if all were seen."""
        near = self.changes(solution, seen)
        if not near:
            return ""
        if chance.random() < proposer.insight:
            right = max(near, key=lambda entry: self.landscape.gains[entry[1]])[0]
        else:
            right = chance.choice(list(dict.fromkeys(change for change, _ in near)))
        return chance.choice([s for change, s in near if change == right])

    def strategy(self, solution: str) -> str:
        """The first strategy that gives a solution."""
        return self._strategies[solution]

    @cached_property
    def _strategies(self) -> Mapping[str, str]:
        return {p.solution: p.strategy for p in reversed(self.landscape.points) if p.solution}

"""Where the search of one bottleneck stands: a pure function of its attempts and evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from agentforge.config import SearchSettings
from agentforge.schema import Attempt, AttemptStatus, Bottleneck, Evaluation
from agentforge.search import Node, Tree

FINISHED = frozenset({AttemptStatus.DONE, AttemptStatus.FAILED})

PRIOR_WEIGHT = 2.0
"""Attempts that the knowledge base's probability of success counts for against this run's own."""

WORTH_VERIFYING = 1.05
"""Quick speedup over the incumbent's below which a second full evaluation would mostly measure noise."""

FIRST_COST_S = 15.0
"""Expected seconds of an attempt before any was made in the run."""


COLD = 1.5
"""An attempt at another bottleneck than the last one costs about this much more: the referee starts that
definition's baselines first, and torch.compile compiles."""


def gain_over_eager(evaluation: Evaluation | None) -> float | None:
    """Speedup over eager, the baseline that the profile's times are in; None unless it was measured."""
    if evaluation is None or evaluation.performance is None:
        return None
    interval = evaluation.performance.speedup.get("eager")
    return interval.point if interval else None


def gain_over_best(evaluation: Evaluation | None) -> float | None:
    """Speedup over the fastest baseline; None unless it was measured."""
    if evaluation is None or evaluation.performance is None or not evaluation.performance.speedup:
        return None
    return evaluation.performance.speedup_over_best.point


def faster_than_eager(evaluation: Evaluation) -> bool:
    """Verified, and the whole interval against eager lies above 1."""
    if not evaluation.verified or evaluation.performance is None:
        return False
    interval = evaluation.performance.speedup.get("eager")
    return interval is not None and interval.low > 1.0


@dataclass(frozen=True)
class Standing:
    """One bottleneck, its attempts in the order of their numbers, and the evaluations they point to."""

    bottleneck: Bottleneck
    attempts: tuple[Attempt, ...]
    evaluations: Mapping[str, Evaluation]
    """By attempt id; attempts that were never evaluated are not in it."""

    @cached_property
    def promotions(self) -> tuple[tuple[Attempt, Evaluation], ...]:
        """Each verified attempt that was faster than all before it, in order; the last one holds now."""
        return tuple(self._promotions())

    def _promotions(self) -> Iterator[tuple[Attempt, Evaluation]]:
        best = 1.0
        for attempt in self.attempts:
            evaluation = self.evaluations.get(attempt.id)
            gain = gain_over_eager(evaluation)
            if evaluation is not None and gain is not None and gain > best and faster_than_eager(evaluation):
                best = gain
                yield attempt, evaluation

    @property
    def incumbent(self) -> tuple[Attempt, Evaluation] | None:
        """The fastest verified attempt; None while eager holds."""
        return self.promotions[-1] if self.promotions else None

    @property
    def speedup(self) -> float:
        """Of the incumbent over eager; 1 while eager holds."""
        return (gain_over_eager(self.incumbent[1]) or 1.0) if self.incumbent else 1.0

    @property
    def time_s(self) -> float:
        """Seconds of all call sites in one forward, with the incumbent put in."""
        return self.bottleneck.time_s / self.speedup

    @property
    def reachable_s(self) -> float:
        """Seconds that a good kernel can be expected to reach, not below the speed of light."""
        return max(self.bottleneck.sol_s, self.bottleneck.time_s - self.bottleneck.gain_s)

    @property
    def share_left(self) -> float:
        """Share of the target's time that is still to be had here, 0 to 1."""
        if self.bottleneck.time_s <= 0:
            return 0.0
        return self.bottleneck.share * max(0.0, self.time_s - self.reachable_s) / self.bottleneck.time_s

    def promising(self, quick: Evaluation) -> bool:
        """Whether a quick evaluation looks enough faster than what holds now to be worth a full one."""
        gain = gain_over_eager(quick)
        least = self.speedup * (WORTH_VERIFYING if self.incumbent else 1.0)
        return quick.passed and gain is not None and gain > least

    def since_gain(self) -> tuple[int, int]:
        """Finished attempts since the last promotion: those evaluated, and all of them."""
        last = self.incumbent[0].number if self.incumbent else 0
        later = [a for a in self.attempts if a.number > last and a.status in FINISHED]
        return sum(a.evaluation is not None for a in later), len(later)

    def closed(self, settings: SearchSettings) -> str:
        """Why no further attempt is wanted here; empty while one is."""
        if not self.bottleneck.optimizable:
            return "the vendor's library does it, and nothing here beats that"
        if self.bottleneck.sol_s >= settings.sol_fraction * self.time_s:
            return f"within {settings.sol_fraction:.0%} of the speed of light"
        if self.share_left < settings.min_share:
            return f"less than {settings.min_share:.1%} of the target's time is still to be had"
        evaluated, made = self.since_gain()
        if evaluated >= settings.patience or made >= 3 * settings.patience:
            return f"{made} attempts in a row brought no gain"
        return ""

    def tree(
        self, settings: SearchSettings, *, prior: float, cost_s: float, planless: bool, warm: bool = True
    ) -> Tree:
        """What the search policy sees.

        Args:
            settings: patience, sol_fraction, abandon_ratio.
            prior: the knowledge base's probability that an attempt gains here.
            cost_s: expected seconds of an attempt, used until this bottleneck has its own.
            planless: the planner has nothing left to propose here.
            warm: the referee's baselines for it run already.
        """
        made = [a for a in self.attempts if a.status in FINISHED]
        costs = [a.usage.seconds for a in made if a.usage.seconds > 0]
        return Tree(
            bottleneck=self.bottleneck.definition.hash,
            time_s=self.time_s,
            reachable_s=self.reachable_s,
            success=(PRIOR_WEIGHT * prior + len(self.promotions)) / (PRIOR_WEIGHT + len(made)),
            cost_s=max(0.1, sum(costs) / len(costs) if costs else cost_s) * (1.0 if warm else COLD),
            nodes=tuple(self._nodes(settings.abandon_ratio)),
            exhausted=planless or bool(self.closed(settings)),
        )

    def _nodes(self, abandon_ratio: float) -> Iterator[Node]:
        speedups = {a.id: gain_over_best(self.evaluations.get(a.id)) for a in self.attempts}
        for attempt in self.attempts:
            evaluation = self.evaluations.get(attempt.id)
            verdict = attempt.critique.kind if attempt.critique else ""
            parent, own = speedups.get(attempt.parent or ""), speedups[attempt.id]
            if verdict == "optimize" and parent and own and own < abandon_ratio * parent:
                verdict = "abandon"
            yield Node(
                id=attempt.id,
                parent=attempt.parent,
                passed=evaluation is not None and evaluation.passed,
                finished=attempt.status in FINISHED,
                speedup=own,
                verdict=verdict,
                children=sum(other.parent == attempt.id for other in self.attempts),
            )

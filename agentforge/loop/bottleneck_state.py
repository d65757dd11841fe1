"""State of the search of one bottleneck: a pure function of its attempts and evaluations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from agentforge.agents import Pull, call_failed
from agentforge.agents.directives import Use
from agentforge.config import SearchSettings
from agentforge.schema import (
    Attempt,
    AttemptStatus,
    BestBaseline,
    Bottleneck,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    ReasonCode,
    obstacle,
)
from agentforge.search import BASELINE, Node, Tree, cell_of, gain_of, highest_cell, reward_of

FINISHED = frozenset({AttemptStatus.DONE, AttemptStatus.FAILED})

PRIOR_WEIGHT = 2.0
"""Attempts that the knowledge base's probability of success counts for against this run's own."""

WORTH_VERIFYING = 1.02
"""Quick speedup over the incumbent's from which on a second full evaluation is made (docs/policy-lab.md)."""

CLEARLY_FASTER = 1.05
"""Ratio of two attempts' speedups from which on the slower one's judge does not close the bottleneck."""

FIRST_COST_S = 15.0
"""Expected seconds of an attempt before any was made in the run."""

REMEASUREMENTS = 2
"""Most times that an attempt is measured again because the machine was busy, without minutes to spare."""

LAST_REMEASUREMENTS = 20
"""The same at the end of a search that has minutes left."""

BUSY_MACHINE = frozenset(
    {
        ReasonCode.NOISY_CONTROL,
        ReasonCode.GROUPS_DISAGREE,
        ReasonCode.INTERFERENCE,
        ReasonCode.DEFERRED_WORK,
        ReasonCode.STARVED,
    }
)
"""Doubts about a measurement that a second one on a quieter machine can remove."""

COLD = 1.5
"""An attempt at another bottleneck than the last one costs about this much more: the referee starts that
definition's baselines first, and torch.compile compiles."""


def gain_over_eager(evaluation: Evaluation | None) -> float | None:
    """Speedup over eager, the baseline that the profile's times are in; None unless it was measured."""
    interval = evaluation.speedup.get("eager") if evaluation else None
    return interval.point if interval else None


def faster_than_eager(evaluation: Evaluation) -> bool:
    """Verified, and the whole interval against eager lies above 1."""
    interval = evaluation.speedup.get("eager")
    return evaluation.verified and interval is not None and interval.low > 1.0


def unsteady(evaluation: Evaluation) -> bool:
    """Whether it passed, and nothing but the busy machine keeps its times from being verified."""
    doubts = set(evaluation.codes) - {ReasonCode.QUICK_LEVEL}
    return (
        evaluation.passed
        and evaluation.performance is not None
        and evaluation.evidence is Evidence.UNVERIFIED
        and bool(doubts)
        and doubts <= BUSY_MACHINE
    )


def costs_of(attempts: Iterable[Attempt], evaluations: Mapping[str, Evaluation]) -> list[float]:
    """Seconds of each attempt that took some; those whose verdict is another run's say nothing of the next.

    Args:
        evaluations: by attempt.
    """
    copied = {name for name, evaluation in evaluations.items() if evaluation.reused}
    return [a.usage.seconds for a in attempts if a.usage.seconds > 0 and a.id not in copied]


def twin_of(
    attempt: Attempt, attempts: Iterable[Attempt], evaluations: Mapping[str, Evaluation]
) -> Attempt | None:
    """The earlier attempt of the bottleneck that the referee judged and that runs the same machine code; None
    without one, or if the code is not known.

    Args:
        evaluations: by attempt.
    """
    if not attempt.machine_code:
        return None
    for other in attempts:
        same = other.machine_code == attempt.machine_code and other.solution != attempt.solution
        verdict = evaluations.get(other.id)
        judged = verdict is not None and verdict.status is not EvaluationStatus.HARNESS_ERROR
        if same and judged and other.number < attempt.number:
            return other
    return None


@dataclass(frozen=True)
class BottleneckState:
    """One bottleneck, its attempts in the order of their numbers, and the evaluations they point to."""

    bottleneck: Bottleneck
    attempts: tuple[Attempt, ...]
    evaluations: Mapping[str, Evaluation]
    """By attempt id; attempts that were never evaluated are not in it."""
    faster: float = 1.0
    """Speedup of the whole target over eager with the solutions that were promoted in all bottlenecks."""
    patient: bool = True
    """Attempts that a busy machine spoiled are measured again."""

    @cached_property
    def best_baseline(self) -> BestBaseline:
        """What all attempts are compared over."""
        return BestBaseline.of(self.evaluations.values())

    @cached_property
    def promotions(self) -> tuple[tuple[Attempt, Evaluation], ...]:
        """Each verified attempt that was faster than all before it, in order; the last is the incumbent."""
        best = 1.0
        found: list[tuple[Attempt, Evaluation]] = []
        for attempt in self.attempts:
            evaluation = self.evaluations.get(attempt.id)
            gain = gain_over_eager(evaluation)
            if evaluation is not None and gain is not None and gain > best and faster_than_eager(evaluation):
                best = gain
                found.append((attempt, evaluation))
        return tuple(found)

    @property
    def incumbent(self) -> tuple[Attempt, Evaluation] | None:
        """The fastest verified attempt; None while eager is the fastest."""
        return self.promotions[-1] if self.promotions else None

    @property
    def speedup(self) -> float:
        """Of the incumbent over eager; 1 while eager is the fastest."""
        return (gain_over_eager(self.incumbent[1]) or 1.0) if self.incumbent else 1.0

    @property
    def time_s(self) -> float:
        """Seconds of all call sites in one forward, with the incumbent in place."""
        return self.bottleneck.time_s / self.speedup

    @property
    def reachable_s(self) -> float:
        """Seconds that a good kernel can be expected to reach, not below the speed of light."""
        return max(self.bottleneck.sol_s, self.bottleneck.time_s - self.bottleneck.gain_s)

    @property
    def share_left(self) -> float:
        """Share of the target's time now, with what was promoted, that could still be gained here, 0 to 1."""
        if self.bottleneck.time_s <= 0:
            return 0.0
        share = self.bottleneck.share * self.faster
        return min(1.0, share * max(0.0, self.time_s - self.reachable_s) / self.bottleneck.time_s)

    def promising(self, quick: Evaluation) -> bool:
        """True if the quick result beats the incumbent by enough to justify a full evaluation."""
        gain = gain_over_eager(quick)
        return quick.passed and gain is not None and gain > self._least

    @property
    def _least(self) -> float:
        """Speedup over eager from which on a full evaluation is worth its time."""
        return self.speedup * (WORTH_VERIFYING if self.incumbent else 1.0)

    def contenders(self, most: int = REMEASUREMENTS) -> tuple[Attempt, ...]:
        """Finished attempts that looked faster and need a quieter machine to be verified, fastest first,
        without those that were measured again `most` times; none without patience. A disturbed time alone
        rules out no first winner."""
        if not self.patient:
            return ()
        gains = {a.id: gain_over_eager(self.evaluations.get(a.id)) or 0.0 for a in self.attempts}
        found = [
            a
            for a in self.attempts
            if a.status is AttemptStatus.DONE
            and a.remeasured < most
            and (evaluation := self.evaluations.get(a.id)) is not None
            and evaluation.level is Level.FULL
            and unsteady(evaluation)
            and evaluation.performance is not None
            and (not self.incumbent or evaluation.performance.speedup["eager"].high > self._least)
        ]
        return tuple(sorted(found, key=lambda a: -gains[a.id]))

    def weight(self, attempt: Attempt) -> float:
        """What a finished attempt without a gain says against further ones: 1 if it was timed on a steady
        machine, 0 if it will be measured again, else a third."""
        evaluation = self.evaluations.get(attempt.id)
        if evaluation is not None and evaluation.passed and not unsteady(evaluation):
            return 1.0
        return 0.0 if attempt.id in self._contending else 1 / 3

    @cached_property
    def _contending(self) -> frozenset[str]:
        return frozenset(a.id for a in self.contenders(1))

    def since_gain(self) -> tuple[float, int]:
        """Finished attempts since the last promotion: the sum of their weights, and their number."""
        last = self.incumbent[0].number if self.incumbent else 0
        later = [a for a in self.attempts if a.number > last and a.status in FINISHED]
        return sum(map(self.weight, later)), len(later)

    def closed(self, settings: SearchSettings, *, contenders: bool = False) -> str:
        """Why no further attempt is wanted here; empty while one is.

        Args:
            contenders: count those that will be measured again as attempts without a gain.
        """
        if not self.bottleneck.optimizable:
            return obstacle(self.bottleneck.definition.op_type)
        if self.bottleneck.sol_s >= settings.sol_fraction * self.time_s:
            return f"within {settings.sol_fraction:.0%} of the speed of light"
        if self.share_left < settings.min_share:
            return f"less than {settings.min_share:.1%} of the target's time could still be gained"
        if self._accepted():
            return "its judge says that nothing is left to gain"
        weight, made = self.since_gain()
        weight += len(self._contending) if contenders else 0
        if weight > settings.most_without_gain - 0.1:  # a third has no exact binary form
            return f"{made} attempts in a row brought no gain"
        return ""

    def tree(
        self,
        settings: SearchSettings,
        *,
        prior: float,
        cost_s: float,
        planless: bool,
        warm: bool = True,
        strategies: tuple[tuple[str, float], ...] = (),
        seed: str = "",
        vector_bits: int = 0,
    ) -> Tree:
        """What the search policy sees.

        Args:
            prior: the knowledge base's probability that an attempt gains here.
            cost_s: expected seconds of an attempt, used until this bottleneck has its own.
            strategies, seed: as in `Tree`.
            vector_bits: width of the machine's vectors; 0 if unknown.
        """
        made = [a for a in self.attempts if a.status in FINISHED]
        costs = costs_of(made, self.evaluations)
        return Tree(
            bottleneck=self.bottleneck.definition.hash,
            time_s=self.time_s,
            reachable_s=self.reachable_s,
            success=self._success(prior, made),
            cost_s=max(0.1, sum(costs) / len(costs) if costs else cost_s) * (1.0 if warm else COLD),
            nodes=tuple(self._nodes(settings.abandon_ratio)),
            exhausted=planless or bool(self.closed(settings)),
            seed=seed,
            strategies=strategies,
            highest=highest_cell(vector_bits) if settings.language == "cpp" else (),
        )

    def _accepted(self) -> bool:
        """Whether a judge closed the bottleneck with an attempt that cannot be timed here, or that may be
        faster than both baselines and than which none is clearly faster; doubtful ones decide nothing."""
        doubted = {name for name, e in self.evaluations.items() if e.suspicious}
        judged = ((a.id, self.evaluations.get(a.id)) for a in self.attempts)
        known = {name: self.best_baseline.interval(evaluation) for name, evaluation in judged if evaluation}
        waiting = {a.id for a in self.contenders(LAST_REMEASUREMENTS)}
        surely = max((interval.low for interval in known.values() if interval), default=0.0)
        return any(
            a.critique is not None
            and a.critique.closes
            and ((own := known.get(a.id)) is None or own.point > 1.0 or a.id in waiting)
            and (own is None or own.high * CLEARLY_FASTER > surely)
            for a in self.attempts
            if a.status is AttemptStatus.DONE and a.id not in doubted
        )

    def _success(self, prior: float, made: list[Attempt]) -> float:
        """Probability that one more attempt gains: the prior, moved by this run's attempts."""
        promoted = {attempt.id for attempt, _ in self.promotions}
        against = sum(self.weight(a) for a in made if a.id not in promoted)
        return (PRIOR_WEIGHT * prior + len(promoted)) / (PRIOR_WEIGHT + len(promoted) + against)

    @cached_property
    def _judged_as(self) -> dict[str, str]:
        """The attempt that has the verdict on each one: itself, or the one whose machine code a failed one
        has. Without those that the referee could not judge."""
        found: dict[str, str] = {}
        for attempt in self.attempts:
            if attempt.id in self.evaluations:
                found[attempt.id] = attempt.id
            elif attempt.status is AttemptStatus.FAILED:
                twin = twin_of(attempt, self.attempts, self.evaluations)
                found |= {attempt.id: twin.id} if twin else {}
        return found

    @cached_property
    def rewards(self) -> dict[str, float]:
        """Reward of each attempt, 0 to 1, by its identifier: that of its verdict, which may be the one on an
        attempt with the same machine code; 0 without a verdict."""
        limit = self.bottleneck.time_s / self.reachable_s if self.reachable_s > 0 else math.inf
        of, best = self.evaluations.get, self.best_baseline
        own = {a.id: reward_of(of(a.id), of(a.parent or ""), limit=limit, best=best) for a in self.attempts}
        return {name: own[self._judged_as.get(name, name)] for name in own}

    @property
    def _judged(self) -> Iterator[Attempt]:
        """Finished attempts with a verdict, so that their rewards say something of their proposer."""
        for attempt in self.attempts:
            verdict = self.evaluations.get(self._judged_as.get(attempt.id, ""))
            wrong = verdict is None or verdict.status is EvaluationStatus.HARNESS_ERROR
            if attempt.plan and attempt.status in FINISHED and not wrong:
                yield attempt

    def pulls(self, dollars: Mapping[str, float | None]) -> Iterator[tuple[int, Pull]]:
        """What models gained that a bandit drew, with the attempts' numbers: over the nearest attempt above
        that passed, so a failure earns its repair nothing. An attempt without code gained 0, and so did one
        with the code of an earlier attempt.

        Args:
            dollars: of the coder's calls, by attempt; None if the price is unknown.
        """
        judged, known = {attempt.id for attempt in self._judged}, set[str]()
        passed: dict[str | None, float] = {}  # reward of the nearest attempt that passed, from this one up
        for attempt in self.attempts:
            above = passed.get(attempt.parent, 0.0)
            passed[attempt.id] = self.rewards[attempt.id] if attempt.id in self._passed else above
            silent = bool(attempt.plan) and attempt.status is AttemptStatus.FAILED and not attempt.solution
            own = {attempt.solution or "", attempt.machine_code} - {""}
            if attempt.coder and (silent or attempt.id in judged):
                gain = 0.0 if own & known else gain_of(self.rewards[attempt.id], above)
                yield attempt.number, Pull(attempt.coder, gain, dollars.get(attempt.id, 0.0), not silent)
            if attempt.id in judged:
                known |= own

    @cached_property
    def _passed(self) -> frozenset[str]:
        return frozenset(a.id for a in self.attempts if (e := self.evaluations.get(a.id)) and e.passed)

    def changes(self) -> Iterator[tuple[Attempt, float]]:
        """Each judged attempt with its reward less its parent's, or a baseline's; below 0 for a loss."""
        for attempt in self._judged:
            yield attempt, self.rewards[attempt.id] - self.rewards.get(attempt.parent or "", BASELINE)

    def uses(self) -> Iterator[tuple[Attempt, Use]]:
        """What attempts gained with the directives that were drawn for them, None for those that the referee
        did not judge; repairs are shown none."""
        gains = {attempt.id: gain for attempt, gain in self.changes()}
        for attempt in self.attempts:
            shown = attempt.parent is None or attempt.parent in self._passed
            if attempt.directive and attempt.plan and attempt.status in FINISHED and shown:
                yield attempt, Use(attempt.directive, gains.get(attempt.id))

    def _nodes(self, abandon_ratio: float) -> Iterator[Node]:
        speedups = {a.id: self.best_baseline.speedup(self.evaluations.get(a.id)) for a in self.attempts}
        children = Counter(a.parent for a in self.attempts if not call_failed(a))
        cheated = set[str | None]()
        for attempt in self.attempts:
            evaluation = self.evaluations.get(attempt.id)
            verdict = attempt.critique.kind if attempt.critique else ""
            parent, own = speedups.get(attempt.parent or ""), speedups[attempt.id]
            if verdict == "optimize" and parent and own and own < abandon_ratio * parent:
                verdict = "abandon"
            cheats = evaluation is not None and evaluation.status is EvaluationStatus.CHEATING
            if cheats or attempt.parent in cheated:
                cheated.add(attempt.id)
                verdict = "abandon"
            yield Node(
                id=attempt.id,
                parent=attempt.parent,
                passed=evaluation is not None and evaluation.passed,
                finished=attempt.status in FINISHED,
                speedup=own,
                verdict=verdict,
                children=children[attempt.id],
                reward=self.rewards[attempt.id],
                strategy=attempt.plan.strategy if attempt.plan else "",
                solution=attempt.solution or "",
                cell=cell_of(evaluation),
                target=attempt.target,
            )

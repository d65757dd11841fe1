"""A bandit over the models that write kernels: `bandit(A,B)` draws one for each attempt.

After the ensemble of ShinkaEvolve (Lange, Imajuku and Cetin, 2025, arXiv:2509.19349) and its `AsymmetricUCB`:
UCB1 (Auer, Cesa-Bianchi and Fischer, 2002) over what attempts gained. A failure and a loss count alike,
because one good kernel is worth more than a good average. Two constants differ, because runs here are
shorter: `EXPLORATION` is 1 there, and `EPSILON` 0.2. The loop draws when it chooses an attempt, and stores
the draw in `Attempt.coder`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from agentforge.schema import CannotCode, Plan, UsageError

from ._base import Coder, Draft, Past, Task

EXPLORATION = 0.5
"""Factor of the bonus for models that were drawn seldom."""

EPSILON = 0.1
"""Probability of a draw among all, whatever their scores."""

DECAY = 0.95
"""Weight of a finished attempt for each one that was finished after it, of any model."""

_FORM = "write for example bandit(openai:MODEL,anthropic:MODEL)"


@dataclass(frozen=True)
class Pull:
    """One attempt that a model was drawn for."""

    arm: str
    gain: float | None
    """Its reward less a baseline's, or less that of the nearest attempt above it that passed, if that is
    higher; at least 0. Code of an earlier attempt gains 0. None while it is under way."""
    dollars: float | None = 0.0
    """Of its calls; None if the price is unknown."""
    coded: bool = True
    """Whether it gave code. Dollars of one that did not say nothing of the price: a failed call costs 0."""


def choose(arms: Sequence[str], pulls: Sequence[Pull], random: Random, cost_weight: float) -> str:
    """The model that writes the next attempt: a pure function of its arguments.

    Each model is drawn once first. Then the highest score wins, with equal chance among equal scores:

        (1 - k) (mean gain / largest gain + EXPLORATION sqrt(2 ln t / n)) + k (cheapest / own dollars)

    There are t attempts, n of them the model's. Gains are `exp(gain) - 1` and weigh less with age. Dollars
    are means of the attempts that gave code; the cheapest are the lowest above 0. The quotient is 1 for a
    free model, and 0 for one that never gave code. If a price is unknown, dollars decide nothing. Attempts
    under way count in t, n.

    Args:
        arms: models, without repetition; at least one.
        pulls: attempts in the order of their numbers; those of other models are left out.
        random: made for this decision.
        cost_weight: k, 0 to 1.
    """
    pulls = [pull for pull in pulls if pull.arm in arms]
    count = {arm: sum(pull.arm == arm for pull in pulls) for arm in arms}
    unseen = [arm for arm in arms if not count[arm]]
    if unseen:
        return random.choice(unseen)
    means = _mean_gains(arms, pulls)
    cheap = _cheapness(arms, pulls)
    k = cost_weight if cheap else 0.0
    values = {arm: (1.0 - k) * means[arm] + k * cheap.get(arm, 0.0) for arm in arms}
    return explore(values, count, len(pulls), (1.0 - k) * EXPLORATION, random)


def explore(
    values: Mapping[str, float], tries: Mapping[str, int], total: int, exploration: float, random: Random
) -> str:
    """One name of `values`: with probability `EPSILON` any, else the one with the highest UCB1 score, with
    equal chance among equals:

        value + exploration sqrt(2 ln total / tries)
    """
    if random.random() < EPSILON:
        return random.choice([*values])
    spread = 2.0 * math.log(max(2, total))
    scores = {name: value + exploration * math.sqrt(spread / tries[name]) for name, value in values.items()}
    return random.choice([name for name in values if scores[name] == max(scores.values())])


def _mean_gains(arms: Sequence[str], pulls: Sequence[Pull]) -> dict[str, float]:
    """Mean gain of each model as a share of the largest one; older attempts weigh less."""
    gained = [(pull.arm, pull.gain) for pull in pulls if pull.gain is not None]
    aged = [(arm, DECAY**age, math.expm1(gain)) for age, (arm, gain) in enumerate(reversed(gained))]
    weight = {arm: sum(w for own, w, _ in aged if own == arm) for arm in arms}
    total = {arm: sum(w * gain for own, w, gain in aged if own == arm) for arm in arms}
    means = {arm: total[arm] / weight[arm] if weight[arm] else 0.0 for arm in arms}
    largest = max([*means.values(), *(w * gain for _, w, gain in aged)])
    return {arm: mean / largest if largest > 0 else 0.0 for arm, mean in means.items()}


def _cheapness(arms: Sequence[str], pulls: Sequence[Pull]) -> dict[str, float]:
    """The lowest dollars above 0 over each model's own, 1 for a free one; without those that never gave code.
    Empty if a price is unknown, or a model's first attempt is not finished."""
    means = {}
    for arm in arms:
        finished = [pull for pull in pulls if pull.arm == arm and pull.gain is not None]
        paid = [pull.dollars for pull in finished if pull.coded]
        known = [dollars for dollars in paid if dollars is not None]
        if not finished or len(known) < len(paid):
            return {}
        if known:
            means[arm] = sum(known) / len(known)
    least = min((mean for mean in means.values() if mean > 0), default=0.0)
    return {arm: least / mean if mean > 0 else 1.0 for arm, mean in means.items()}


class BanditCoder:
    """Hands each attempt to the model that was drawn for it.

    Args:
        coders: by the model's specification, in the user's order; at least one.
    """

    def __init__(self, coders: Mapping[str, Coder]) -> None:
        self.arms = tuple(coders)
        self.name = f"bandit({','.join(self.arms)})"
        self._coders = coders

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        """See `Coder.code`. An attempt without a draw goes to the first model."""
        drawn = task.coder or self.arms[0]
        if drawn not in self._coders:
            raise CannotCode(f"{drawn} was drawn for it, and is no longer in {self.name}")
        return self._coders[drawn].code(task, plan, parent)


def arms_of(spec: str) -> tuple[str, ...]:
    """The models of `bandit(A,B)`; empty if `spec` has another form.

    Raises:
        UsageError: the form is not right; the models themselves are not checked.
    """
    if not re.search(r"\bbandit\s*\(", spec):
        return ()
    found = re.fullmatch(r"\s*bandit\s*\((.*)\)\s*", spec, re.DOTALL)
    if found is None:
        raise UsageError(f"{spec!r} has more than bandit(...), or an open bracket: {_FORM}")
    if "bandit" in re.findall(r"(\w+)\s*\(", found[1]):
        raise UsageError(f"{spec!r} has a bandit within a bandit: name its models in one bandit(...)")
    arms = tuple(arm.strip() for arm in found[1].split(","))
    if not all(arms):
        empty = "a model that is empty" if any(arms) else "no model"
        raise UsageError(f"{spec!r} names {empty}: {_FORM}")
    if twice := next((arm for arm in arms if arms.count(arm) > 1), ""):
        raise UsageError(f"{spec!r} names {twice} more than once: name each model once")
    if other := next((arm for arm in arms if ":" not in arm), ""):
        raise UsageError(f"{other!r} in {spec!r} is no language model: {_FORM}")
    return arms

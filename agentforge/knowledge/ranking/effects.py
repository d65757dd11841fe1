"""What techniques and their parameters change, learned across contexts: a hierarchical linear model.

The log speedup of a try in context c is

    y = a_c + s_c[strategy] + sum of e_c[strategy, parameter, value] + noise.

The level a_c says how much can be gained in c at all, so contexts with much to gain do not favour the
strategies that were tried there. A parameter's first value has the effect 0. The effects of a context
scatter around those of all contexts, which scatter around the cards' expectations:

    a_c ~ N(0, LEVEL^2)    s_c ~ N(s, CONTEXT^2)    s ~ N(card, EFFECT^2)    e alike, around 0

(Lindley and Smith, Bayes estimates for the linear model, 1972). A context's likelihood is raised to the power
of its similarity, and a result weighs its freshness (similarity.py). So all experience from other operators
weighs about (NOISE / CONTEXT)^2 results of the context itself. The same operators in another shape have the
context's own effects, at another level (`Context.same_operators`).

A try that passed and was not verified counts with what was measured, but never as more than the best verified
result of its context, and than 0 without one. So it is evidence of slowness only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from agentforge.schema import Strategy
from agentforge.store import Experience

from .similarity import Request, freshness

EFFECT = 0.1
"""Standard deviation of the effects of strategies and values, in log speedup."""
CONTEXT = 0.05
"""Standard deviation between contexts of one effect."""
NOISE = 0.05
"""Standard deviation of one result."""
LEVEL = 1.0
"""Standard deviation of the contexts' levels."""
SURE = 1.645
"""Standard deviations above 0 of a difference that is positive with 95 %."""

Numbers = np.ndarray[Any, np.dtype[np.floating[Any]]]
Feature = tuple[str, ...]
"""A strategy; with the one that it was built on; or with a parameter and the `repr` of its value."""
Row = tuple[list[int], bool, float, float]
"""Positions of its features, whether the context's level is in it, log speedup, number of results."""


class Effects:
    """The effects in one context.

    Args:
        strategies: those in question, by identifier.
        records: experience with them, by identifier, from all contexts that are asked.
    """

    def __init__(
        self,
        strategies: Mapping[str, Strategy],
        records: Mapping[str, Iterable[Experience]],
        request: Request,
    ) -> None:
        self._strategies, self._request = strategies, request
        features = [feature for strategy in strategies.values() for feature in self._features(strategy)]
        self._at = {feature: position for position, feature in enumerate(features)}
        rows = self._rows(records)
        contexts = {r.context.hash: r.context for some in records.values() for r in some}
        likeness = {name: request.alike(context) for name, context in contexts.items()}
        own = rows.pop(request.context.hash, [])
        shapes = [name for name in rows if contexts[name].same_operators(request.context)]
        alike = [name for name in rows if likeness[name] > 0 and name not in shapes]
        precision: Numbers = np.eye(len(features)) / EFFECT**2
        moment: Numbers = np.zeros(len(features))
        for name, strategy in strategies.items():
            moment[self._at[(name,)]] = strategy.prior_log_speedup / EFFECT**2
        if alike:
            weights = [likeness[name] for name in alike]
            _inform(precision, moment, [rows[name] for name in alike], weights, CONTEXT)
        general = np.linalg.inv(precision)
        self._mean: Numbers = general @ moment
        self._covariance: Numbers = general + CONTEXT**2 * np.eye(len(features))
        if shapes:
            weights = [likeness[name] for name in shapes]
            self._mean, self._covariance = self._informed([rows[name] for name in shapes], weights)
        self._here = self._informed([own], [1.0])[0] if own else self._mean
        self._known = bool(own or shapes or alike)

    def expected(self, name: str) -> float:
        """Log speedup of a strategy with its best parameters by the card and other contexts."""
        best = sum(max(gains) for gains in self._gains(name, self._mean).values())
        return float(self._indicator(name) @ self._mean) + best

    def surely_better(self, first: str, second: str) -> bool:
        """Whether other contexts leave no doubt that one strategy is better than another, both with the
        parameters of their cards."""
        difference = self._indicator(first) - self._indicator(second)
        deviation = float(np.sqrt(difference @ self._covariance @ difference))
        return float(difference @ self._mean) > SURE * deviation

    def _informed(self, every: Sequence[Sequence[Row]], weights: Sequence[float]) -> tuple[Numbers, Numbers]:
        """Mean and covariance of the effects with the results of contexts that have the same effects."""
        precision: Numbers = np.linalg.inv(self._covariance)
        moment: Numbers = precision @ self._mean
        _inform(precision, moment, every, weights, 0.0)
        covariance = np.linalg.inv(precision)
        return covariance @ moment, covariance

    def values(self, name: str) -> dict[str, tuple[float, ...]]:
        """Expected gain of each value of a strategy's parameters over the first, in log speedup; empty if
        there is no experience."""
        return self._gains(name, self._here) if self._known else {}

    def _gains(self, name: str, mean: Numbers) -> dict[str, tuple[float, ...]]:
        return {
            parameter: (0.0, *(float(mean[self._at[name, parameter, repr(v)]]) for v in values[1:]))
            for parameter, values in self._strategies[name].parameters.items()
            if values
        }

    def _features(self, strategy: Strategy) -> list[Feature]:
        own = [(strategy.id, n, repr(v)) for n, values in strategy.parameters.items() for v in values[1:]]
        pair = [(self._request.after, strategy.id)] if self._request.after else []
        return [(strategy.id,), *pair, *dict.fromkeys(own)]

    def _indicator(self, name: str) -> Numbers:
        found = np.zeros(len(self._at))
        for feature in ((name,), (self._request.after, name)):
            if feature in self._at:
                found[self._at[feature]] = 1.0
        return found

    def _rows(self, records: Mapping[str, Iterable[Experience]]) -> dict[str, list[Row]]:
        """Results by the context's hash."""
        asked, found = self._request, dict[str, list[Row]]()
        kept = {name: [r for r in records.get(name, ()) if r.n or r.measured] for name in self._strategies}
        best: dict[str, float] = {}
        for record in (r for some in kept.values() for r in some if r.n and not r.after):
            context = record.context.hash
            best[context] = max(record.mean_log_speedup, best.get(context, -np.inf))
        for name, some in kept.items():
            for record in some:
                weight = freshness(record, asked.after, asked.generator, asked.now, asked.weights)
                used = self._used(name, record)
                level = not record.after
                rows = found.setdefault(record.context.hash, [])
                if record.n:
                    rows.append((used, level, record.mean_log_speedup, weight * record.n))
                if record.measured and level:
                    gain = min(record.mean_measured_log_speedup, best.get(record.context.hash, 0.0))
                    rows.append((used, level, gain, weight * record.measured))
        return found

    def _used(self, name: str, record: Experience) -> list[int]:
        features: list[Feature] = [(name,), (record.after, name)]
        features += [(name, parameter, repr(value)) for parameter, value in record.parameters.items()]
        return [self._at[feature] for feature in features if feature in self._at]


def _inform(
    precision: Numbers,
    moment: Numbers,
    every: Sequence[Sequence[Row]],
    weights: Sequence[float],
    spread: float,
) -> None:
    """Add what contexts' results say of the effects, the level of each context integrated out.

    Args:
        precision: of the effects, features x features.
        moment: precision times mean, by feature.
        every: results of each context.
        weights: of each context.
        spread: standard deviation of a context's own effects around them, also integrated out; 0 for none.
    """
    used = [[*dict.fromkeys(position for row in rows for position in row[0])] for rows in every]
    features, most = max(map(len, used)), max(map(len, every))
    design = np.zeros((len(every), most, features + 1))  # of the features that a context's results have
    gains, counts = np.zeros((2, len(every), most))
    for i, rows in enumerate(every):
        column = {position: j for j, position in enumerate(used[i])}
        lines = [line for line, row in enumerate(rows) for _ in row[0]]
        design[i, lines, [column[position] for row in rows for position in row[0]]] = 1.0
        design[i, : len(rows), features] = [row[1] for row in rows]
        gains[i, : len(rows)] = [row[2] for row in rows]
        counts[i, : len(rows)] = [row[3] for row in rows]
    weighted = design.swapaxes(1, 2) * (counts / NOISE**2)[:, None]
    own = weighted @ np.concatenate([design, gains[..., None]], axis=2)  # precision beside moment
    first = 0 if spread else features
    inner = own[:, first:, first:-1] + np.diag(
        [*[spread**-2] * features, LEVEL**-2] if spread else [LEVEL**-2]
    )
    own -= own[:, :, first:-1] @ np.linalg.solve(inner, own[:, first:])
    for positions, weight, added in zip(used, weights, own, strict=True):
        size = len(positions)
        precision[np.ix_(positions, positions)] += weight * added[:size, :size]
        moment[positions] += weight * added[:size, -1]

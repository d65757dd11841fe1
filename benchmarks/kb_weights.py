"""Fit the factors of the knowledge base's similarity to recorded landscapes.

    python benchmarks/kb_weights.py                       # writes benchmarks/results/kb_weights.json
    python benchmarks/kb_weights.py --landscapes a.jsonl.gz b.jsonl.gz --out mine.json

For each landscape, the knowledge base expects a value of each strategy from the other landscapes of other
operators. The loss is that of the wrong order: for each two strategies, log(1 + exp(-d / T)), where d is the
expected value of the better one minus that of the worse one, weighted by what they really differ by
(RankNet: Burges et al., ICML 2005). A factor that the landscapes say nothing about stays as it was guessed,
because the squared distance to the guesses, in log odds, is part of the loss.

The factors are fitted once without each operator class, and judged on that class. They are worth using, in
`agentforge/knowledge/ranking/similarity.py`, if the mean loss of the classes that were left out is smaller
than with the factors that were guessed first, and `kb_transfer.py` is not worse with them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from _provenance import provenance  # noqa: E402
from kb_transfer import context_of, operator, usable  # noqa: E402
from search.lab import LANDSCAPES  # noqa: E402
from search.landscape import SHAPES, Landscape, read, run  # noqa: E402

from agentforge.knowledge import load_folder  # noqa: E402
from agentforge.knowledge.ranking.belief import posterior  # noqa: E402
from agentforge.knowledge.ranking.effects import Effects  # noqa: E402
from agentforge.knowledge.ranking.similarity import Request, Weights  # noqa: E402
from agentforge.resources import resource  # noqa: E402
from agentforge.schema import Strategy  # noqa: E402
from agentforge.store import Experience  # noqa: E402

RESULTS = HERE / "results" / "kb_weights.json"
FITTED = ("operator", "octave", "dtype", "generation", "bound")
"""Factors between contexts; the others are about time. `shape` is left out: it decides what the same operator
in another size says, and here all experience comes from other operators."""
GUESSES = Weights(operator=0.5, octave=0.8, shape=0.7, dtype=0.6, generation=0.4, bound=0.5)
"""Factors that were chosen before there was data."""
TEMPERATURE = 0.05
"""Of the loss, in log speedup."""
STEPS = 50
"""Most iterations of one fit."""
ODDS = (-6.0, 6.0)
"""Bounds of a factor's log odds."""
PULL = 0.001
"""Of the squared distance to the guesses, in log odds."""


@dataclass(frozen=True)
class Case:
    """One landscape: what each strategy really gives, and what the others say of it."""

    family: str
    gains: Mapping[str, float]
    """Mean log speedup of its points."""
    landscape: Landscape
    records: Mapping[str, tuple[Experience, ...]]

    def loss(self, cards: Mapping[str, Strategy], weights: Weights) -> float:
        """Mean over pairs of strategies; 0 without a pair that differs."""
        request = Request(context_of(self.landscape), weights=weights)
        effects = Effects({name: cards[name] for name in self.gains}, self.records, request)
        value = {
            name: posterior(cards[name], self.records[name], request, effects.expected(name)).value
            for name in self.gains
        }
        pairs = [(a, b) for a in self.gains for b in self.gains if self.gains[a] > self.gains[b]]
        total = sum(self.gains[a] - self.gains[b] for a, b in pairs)
        wrong = sum(
            (self.gains[a] - self.gains[b]) * math.log1p(math.exp(-(value[a] - value[b]) / TEMPERATURE))
            for a, b in pairs
        )
        return wrong / total if total else 0.0


def record(landscape: Landscape) -> dict[str, Experience]:
    """What the points of a landscape say about each strategy."""
    found: dict[str, list[float]] = {}
    for point in landscape.points:
        if point.solution:
            found.setdefault(point.strategy, []).append(landscape.gains[point.solution])
    return {
        name: Experience(
            context=context_of(landscape), n=len(gains), mean_log_speedup=fmean(gains),
            var_log_speedup=variance(gains) if len(gains) > 1 else 0.0,
        )
        for name, gains in found.items()
    }  # fmt: skip


def cases(landscapes: Sequence[Landscape], cards: Mapping[str, Strategy]) -> list[Case]:
    """The landscapes with at least two strategies that have a card."""
    records = {one.name: record(one) for one in landscapes}
    found = []
    for one in landscapes:
        others = [records[o.name] for o in landscapes if operator(o) != operator(one)]
        gains = {name: r.mean_log_speedup for name, r in records[one.name].items() if name in cards}
        known = {name: tuple(r[name] for r in others if name in r) for name in gains}
        if len(gains) > 1:
            found.append(Case(one.op_type, gains, one, known))
    return found


def mean_loss(some: Sequence[Case], cards: Mapping[str, Strategy], weights: Weights) -> float:
    """Mean loss of some landscapes."""
    return fmean(case.loss(cards, weights) for case in some)


def fit(some: Sequence[Case], cards: Mapping[str, Strategy]) -> Weights:
    """The factors with the smallest loss, near the defaults."""
    start = logit([getattr(GUESSES, name) for name in FITTED])

    def weights(odds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Weights:
        return GUESSES.model_copy(update=dict(zip(FITTED, map(float, expit(odds)), strict=True)))

    def loss(odds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return mean_loss(some, cards, weights(odds)) + PULL * float(((odds - start) ** 2).sum())

    found = minimize(loss, start, method="L-BFGS-B", bounds=[ODDS] * len(start), options={"maxiter": STEPS})
    return weights(found.x)


def result(landscapes: Sequence[Landscape], cards: Mapping[str, Strategy]) -> dict[str, object]:
    """Fitted factors, and the losses on operator classes that were left out."""
    every = cases(landscapes, cards)
    families = sorted({case.family for case in every})
    if len(families) < 2:
        raise SystemExit("two operator classes are needed: record more with search/record.py")
    left_out = {}
    for family in families:
        own = [case for case in every if case.family == family]
        fitted = fit([case for case in every if case.family != family], cards)
        left_out[family] = {
            "guessed": mean_loss(own, cards, GUESSES),
            "fitted": mean_loss(own, cards, fitted),
        }
        print(f"{family}: {left_out[family]}", flush=True)
    guessed, fitted_ = (fmean(one[which] for one in left_out.values()) for which in ("guessed", "fitted"))
    chosen = fit(every, cards)
    return {
        "landscapes": len(every),
        "left_out": left_out,
        "loss": {"guessed": guessed, "fitted": fitted_},
        "worth_using": fitted_ < guessed,
        "weights": {name: round(getattr(chosen, name), 3) for name in FITTED},
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--landscapes", type=Path, nargs="+", default=[LANDSCAPES, SHAPES])
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    every = [one for path in chosen.landscapes if path.is_file() for one in read(path).values()]
    cards = load_folder(resource("knowledge_base", "playbook")).items()
    techniques = {name: card for name, card in cards if isinstance(card, Strategy)}
    found = result(usable(every), techniques)
    chosen.out.write_text(json.dumps({"provenance": provenance(), **found}, indent=1) + "\n")
    print(json.dumps({key: found[key] for key in ("loss", "worth_using", "weights")}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))

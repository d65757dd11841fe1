"""The arithmetic of the policy lab: progress, intervals, tests, and which policy may become the default.

Runs are arrays of seconds, dollars and progress (last axis) by proposer, landscape, seed and evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

ATTEMPTS, LOOKS = 60, (20, 60)
"""Evaluations of a search, and those at which policies are compared."""
RESAMPLES = 2000
DEFAULT = "best-first"
VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "iterative, 60 rounds": ("iterative", {"rounds": 60}),
    "best-first, for models": ("best-first", {"starts": 1, "restarts": 3}),
}
"""Options that are compared too, and cannot become the default by that. `iterative` ends after 10 rounds.
Runs of language models, with three attempts at a time, use the second one."""
UNITS = ("evaluations", "seconds", "dollars")

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def progress(runs: Numbers, kept: Sequence[int], evaluations: int) -> Numbers:
    """Progress after so many evaluations by proposer, landscape and seed."""
    return runs[:, list(kept)][:, :, :, evaluations - 1, 2]


def interval(by_landscape: Numbers) -> list[float]:
    """Mean and 95 % interval by the bootstrap over landscapes (rows) and seeds (columns)."""
    chance, (rows, columns) = np.random.default_rng(0), by_landscape.shape
    means = [
        by_landscape[chance.integers(0, rows, rows)][:, chance.integers(0, columns, columns)].mean()
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(means, [2.5, 97.5])
    return [round(float(x), 4) for x in (by_landscape.mean(), low, high)]


def chance_of_no_gain(by_landscape: Numbers) -> float:
    """P value of the exact one-sided sign-flip test over landscapes (rows): the mean is not above 0.

    The bootstrap's intervals over eight landscapes are too narrow to decide by.
    """
    means = by_landscape.mean(axis=1)
    signs = np.array([*product((1.0, -1.0), repeat=len(means))])
    return float((signs @ means >= means.sum() - 1e-12).mean())


def friedman(shares: Mapping[str, Numbers]) -> dict[str, Any]:
    """Friedman's test over landscapes, the mean rank of each policy (1 is the best), and the difference of
    ranks that Nemenyi's test asks for (Demsar, 2006)."""
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    table = np.array([by_landscape.mean(axis=1) for by_landscape in shares.values()])
    ranks = rankdata(-table, axis=0).mean(axis=1)
    if len(table) < 3 or table.shape[1] < 2 or np.ptp(table, axis=0).max() == 0:
        return {"p": None, "ranks": dict(zip(shares, map(float, ranks), strict=True))}
    test = friedmanchisquare(*table)
    policies_, landscapes = table.shape
    q = float(studentized_range.ppf(0.95, policies_, math.inf)) / math.sqrt(2.0)
    return {
        "statistic": float(test.statistic),
        "p": float(test.pvalue),
        "critical_difference": q * math.sqrt(policies_ * (policies_ + 1) / (6.0 * landscapes)),
        "ranks": {name: round(float(rank), 2) for name, rank in zip(shares, ranks, strict=True)},
    }


def evaluations_to(runs: Numbers, enough: Sequence[float]) -> Numbers:
    """Evaluations until the progress reaches `enough` of its landscape, by landscape and seed, the mean over
    proposers; one more than all if it does not."""
    reached = runs[..., 2] >= np.reshape(enough, (1, -1, 1, 1)) - 1e-9
    needed = np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, ATTEMPTS + 1)
    return np.asarray(needed.mean(axis=0))


def compared(
    found: Mapping[str, Numbers], kept: Sequence[int], enough: Sequence[float] | None = None
) -> dict[str, Any]:
    """Progress, differences to the default policy and ranks, on the landscapes of these numbers.

    Args:
        enough: progress at which a search counts as done, by landscape; None is 1.
    """
    done = [enough[i] if enough is not None else 1.0 for i in kept]
    result: dict[str, Any] = {
        "landscapes": len(kept),
        "evaluations_to_best": {
            name: interval(evaluations_to(runs[:, list(kept)], done)) for name, runs in found.items()
        },
    }
    for look in LOOKS:
        shares = {name: progress(runs, kept, look).mean(axis=0) for name, runs in found.items()}
        result[str(look)] = {
            "share": {name: interval(share) for name, share in shares.items()},
            "over_default": {
                name: interval(share - shares[DEFAULT]) for name, share in shares.items() if name != DEFAULT
            },
            "friedman": friedman(shares),
        }
    return result


def candidates(found: Mapping[str, Any]) -> list[str]:
    """What may become the default: the policies with their own options."""
    return [name for name in found if name != DEFAULT and name not in VARIANTS]


def least_held_out(found: Mapping[str, Any]) -> int:
    """Landscapes below which no result of `better` could be significant, however clear."""
    return math.ceil(math.log2(len(candidates(found)) / 0.05)) if candidates(found) else 1


def better(found: Mapping[str, Numbers], held_out: Sequence[int]) -> list[str]:
    """Policies that may become the default: above it at each look, with each proposer, and not by chance.

    The error of 5 % is shared by all that are tried (Bonferroni).
    """
    others = candidates(found)

    def above(name: str, look: int) -> bool:
        over = progress(found[name], held_out, look) - progress(found[DEFAULT], held_out, look)
        by_all = bool((over.mean(axis=(1, 2)) > 0).all())
        return by_all and chance_of_no_gain(over.mean(axis=0)) <= 0.05 / len(others)

    return [name for name in others if all(above(name, look) for look in LOOKS)]


def within(runs: Numbers, unit: str, limit: float) -> Numbers:
    """Progress of each search within a limit of seconds or dollars; 0 before its first attempt has ended."""
    done = (runs[..., UNITS.index(unit) - 1] <= limit + 1e-9).sum(axis=-1)
    begun = np.concatenate([np.zeros_like(runs[..., :1, 2]), runs[..., 2]], axis=-1)
    return np.take_along_axis(begun, done[..., None], axis=-1)[..., 0]


def curves(runs: Numbers, limits: Sequence[float]) -> dict[str, Any]:
    """Mean progress of one proposer by evaluations, and by seconds and dollars up to these limits."""
    found: dict[str, Any] = {
        "evaluations": {
            "at": list(range(1, ATTEMPTS + 1)),
            "share": runs[..., 2].reshape(-1, ATTEMPTS).mean(axis=0).round(4).tolist(),
        }
    }
    for unit, limit in zip(UNITS[1:], limits, strict=True):
        at = np.linspace(0.0, limit, ATTEMPTS + 1)[1:]
        share = [round(float(within(runs, unit, x).mean()), 4) for x in at]
        found[unit] = {"at": at.round(4).tolist(), "share": share}
    return found

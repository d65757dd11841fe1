"""Compare search policies on recorded landscapes: progress by evaluations, seconds and dollars.

    python benchmarks/search/lab.py                       # writes benchmarks/results/search_policies.json
    python benchmarks/search/lab.py --figure policies.html
    python benchmarks/search/lab.py --table               # write the table into docs/policy-lab.md

Each policy searches each landscape with three simulated proposers and 30 seeds. Progress is the log speedup
of the fastest attempt with a full verdict, between the mean of the recorded solutions (0) and the best (1).
So no baseline decides which landscapes count. Policies meet the same luck, so differences are paired.
Intervals come from resampling landscapes and seeds. A policy may become the default only by the held-out
landscapes, at 20 and at 60 evaluations: see `better`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from _provenance import provenance  # noqa: E402
from _published import refuse_part  # noqa: E402

from agentforge.schema import UsageError  # noqa: E402
from agentforge.search import policies  # noqa: E402
from search.landscape import Landscape, read, run  # noqa: E402
from search.proposers import PROPOSERS, Space  # noqa: E402
from search.replay import Search, random_search  # noqa: E402
from tools.generated import GeneratedPart  # noqa: E402

LANDSCAPES = HERE.parent / "results" / "landscapes.jsonl.gz"
RESULTS = HERE.parent / "results" / "search_policies.json"
TABLE = GeneratedPart("docs/policy-lab.md", "lab", "benchmarks/search/lab.py --table")

ATTEMPTS, LOOKS = 60, (20, 60)
"""Evaluations of a search, and those at which policies are compared."""
SEEDS, RESAMPLES = 30, 2000
DEFAULT = "best-first"
VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "iterative, 60 rounds": ("iterative", {"rounds": 60}),
    "best-first, for models": ("best-first", {"starts": 1, "restarts": 3}),
}
"""Options that are compared too, and cannot become the default by that. `iterative` ends after 10 rounds.
Runs of language models, with three attempts at a time, use the second one."""
ENOUGH = 0.95
"""Progress at which a search counts as done (`Landscape.enough`)."""
LEAST_GAIN = math.log(1.05)
"""A landscape with less to gain than that says nothing about policies."""

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def searches(
    variant: tuple[str, dict[str, Any]], spaces: Sequence[Space], seeds: int, pool: Executor | None = None
) -> Numbers:
    """Seconds, dollars and progress (last axis) by proposer, landscape, seed and evaluation.

    Args:
        pool: of processes that search a landscape each; without one, this process searches all.
    """
    one = partial(searches_of, variant, seeds)
    return np.stack([*(pool.map(one, spaces) if pool else map(one, spaces))], axis=1)


def searches_of(variant: tuple[str, dict[str, Any]], seeds: int, space: Space) -> Numbers:
    """The same for one landscape: by proposer, seed and evaluation.

    A search that ends early keeps its last values.
    """
    name, options = variant
    found = np.zeros((len(PROPOSERS), seeds, ATTEMPTS, 3))
    for i, proposer in enumerate(PROPOSERS):
        for seed in range(seeds):
            policy = policies.create(name, options=options)
            steps = Search(space, policy, proposer, seed).run(ATTEMPTS)
            steps += steps[-1:] * (ATTEMPTS - len(steps))
            found[i, seed] = steps
    found[..., 2] = (found[..., 2] - space.landscape.mean) / space.landscape.room
    return found


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


def curves(runs: Numbers, limits: tuple[float, float]) -> dict[str, Any]:
    """Mean progress by evaluations, by seconds and by dollars up to these limits."""
    flat = runs.reshape(-1, ATTEMPTS, 3)
    found: dict[str, Any] = {
        "evaluations": {
            "at": list(range(1, ATTEMPTS + 1)),
            "share": flat[..., 2].mean(axis=0).round(4).tolist(),
        }
    }
    for column, (unit, limit) in enumerate(zip(("seconds", "dollars"), limits, strict=True)):
        at = np.linspace(0.0, limit, ATTEMPTS + 1)[1:]
        done = np.array([np.searchsorted(run[:, column], at, side="right") for run in flat])
        begun = np.concatenate([np.zeros((len(flat), 1)), flat[..., 2]], axis=1)
        share = np.take_along_axis(begun, done, axis=1).mean(axis=0)
        found[unit] = {"at": at.round(4).tolist(), "share": share.round(4).tolist()}
    return found


def laboratory(
    landscapes: Mapping[str, Landscape], names: Sequence[str], seeds: int = SEEDS
) -> dict[str, Any]:
    """All figures of the lab.

    Args:
        names: of registered policies; the default one is always there.
    """
    known = [one for one in landscapes.values() if one.complete]
    spaces = [Space(one) for one in known if one.room >= LEAST_GAIN]
    if not spaces:
        raise SystemExit("no complete landscape has anything to gain: record some with record.py")
    variants = {name: (name, dict[str, Any]()) for name in dict.fromkeys([DEFAULT, *names])}
    variants |= {label: one for label, one in VARIANTS.items() if one[0] in variants}
    found = {}
    with ProcessPoolExecutor() as pool:
        for label, variant in variants.items():
            found[label] = searches(variant, spaces, seeds, pool)
            print(f"{label}: {found[label][..., LOOKS[-1] - 1, 2].mean():.3f} after {LOOKS[-1]}", flush=True)
    limits = [float(np.median(found[DEFAULT][..., -1, column])) for column in (0, 1)]
    random = np.mean(
        [
            np.subtract(random_search([*one.gains.values()], ATTEMPTS), one.mean) / one.room
            for one in (space.landscape for space in spaces)
        ],
        axis=0,
    )
    held_out = [i for i, space in enumerate(spaces) if space.landscape.held_out]
    done = [(one.enough(ENOUGH) - one.mean) / one.room for one in (space.landscape for space in spaces)]
    result: dict[str, Any] = {
        "left_out": {
            "incomplete": [name for name, one in landscapes.items() if not one.complete],
            "nothing_to_gain": [one.name for one in known if one.room < LEAST_GAIN],
        },
        "seeds": seeds,
        "proposers": [vars(proposer) for proposer in PROPOSERS],
        "all": compared(found, range(len(spaces)), done),
        "by_proposer": {
            proposer.name: compared(
                {name: runs[i : i + 1] for name, runs in found.items()}, range(len(spaces)), done
            )
            for i, proposer in enumerate(PROPOSERS)
        },
        "curves": {
            **{name: curves(runs, (limits[0], limits[1])) for name, runs in found.items()},
            "random (calculated)": {
                "evaluations": {"at": list(range(1, ATTEMPTS + 1)), "share": random.round(4).tolist()}
            },
        },
    }
    if held_out:
        result["held_out"] = compared(found, held_out, done)
        enough = len(held_out) >= least_held_out(found)
        result["may_become_the_default"] = better(found, held_out) if enough else None
    return result


def table(result: Mapping[str, Any]) -> str:
    """The comparison on the held-out landscapes, for the page."""
    held_out, seeds = result["held_out"], result["seeds"]
    looks = [f"{what} {n}" for n in LOOKS for what in ("progress at", "over best-first at", "rank at")]
    heads = ["evaluations to the best", *looks]
    lines = [f"| policy | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for name in held_out[str(LOOKS[0])]["share"]:
        needed = held_out["evaluations_to_best"][name]
        cells = [f"{needed[0]:.1f} [{needed[1]:.1f}, {needed[2]:.1f}]"]
        for look in (held_out[str(n)] for n in LOOKS):
            over = look["over_default"].get(name)
            cells += [
                _percent(look["share"][name]),
                _percent(over) if over else "",
                f"{look['friedman']['ranks'][name]:.1f}",
            ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    tests = ", ".join(
        f"p = {test['p']:.2g} at {n} (Nemenyi: ranks differ from {test['critical_difference']:.1f} on)"
        if (test := held_out[str(n)]["friedman"])["p"] is not None
        else f"no test at {n}"
        for n in LOOKS
    )
    chosen = result["may_become_the_default"]
    few = f"undecided, {least_held_out(held_out[str(LOOKS[0])]['share'])} landscapes are needed"
    winners = few if chosen is None else ", ".join(chosen) or "none"
    lines += [
        "",
        f"Held-out landscapes: {held_out['landscapes']}; {seeds} seeds, three proposers, 95 % intervals."
        f" Friedman's test: {tests}. Policies that may replace `{DEFAULT}`: {winners}."
        f" {result['provenance']['date'][:10]}, commit {result['provenance']['commit']}.",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _percent(values: Sequence[float]) -> str:
    point, low, high = (f"{100 * x:.1f}" for x in values)
    return f"{point} % [{low}, {high}]"


def figure(result: Mapping[str, Any], path: Path) -> None:
    """Progress of all policies by evaluations, seconds and dollars, as a page."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    units = ("evaluations", "seconds", "dollars")
    shown = make_subplots(rows=1, cols=3, shared_yaxes=True, y_title="progress: 0 is the mean, 1 the best")
    for name, by_unit in result["curves"].items():
        for column, unit in enumerate(units, start=1):
            if unit in by_unit:
                line = Scatter(x=by_unit[unit]["at"], y=by_unit[unit]["share"], name=name,
                               legendgroup=name, showlegend=column == 1)  # fmt: skip
                shown.add_trace(line, row=1, col=column)
    for column, unit in enumerate(units, start=1):
        shown.update_xaxes(title_text=unit, row=1, col=column)
    shown.write_html(path, include_plotlyjs="cdn")


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--landscapes", type=Path, default=LANDSCAPES)
    parser.add_argument("--policies", default=",".join(policies.names()), help="names with commas between")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--figure", type=Path, help="also write the curves as an HTML page")
    parser.add_argument("--table", action="store_true", help="only write the table into docs/policy-lab.md")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args(argv)
    if not chosen.table:
        refuse_part(parser, chosen, "out", ("figure",))
    return chosen


def main() -> int:
    chosen = arguments()
    if chosen.table:
        result = json.loads(chosen.out.read_text())
        if "held_out" not in result:
            raise UsageError(f"{chosen.out} has no held-out landscape, so there is no table of them")
        TABLE.write(table(result))
        return 0
    landscapes = read(chosen.landscapes)
    result = {
        "provenance": provenance(),
        "landscapes_sha256": sha256(chosen.landscapes.read_bytes()).hexdigest(),
        **laboratory(landscapes, chosen.policies.split(","), chosen.seeds),
    }
    chosen.out.write_text(json.dumps(result) + "\n")
    if chosen.figure:
        figure(result, chosen.figure)
    if "held_out" in result:
        print(table(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))

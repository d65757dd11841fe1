"""Compare search policies on recorded landscapes: progress by evaluations, seconds and dollars.

    python benchmarks/search/lab.py                       # writes benchmarks/results/search_policies.json
    python benchmarks/search/lab.py --figure policies.html
    python benchmarks/search/lab.py --table               # write the tables of the documentation

Each policy searches each landscape with three simulated proposers and 30 seeds. Progress is the log speedup
of the fastest attempt with a full verdict, between the mean of the recorded solutions (0) and the best (1).
So no baseline decides which landscapes count. Policies meet the same luck, so differences are paired.
Intervals come from resampling landscapes and seeds. A policy may become the default only by the held-out
landscapes, at 20 and at 60 evaluations: see `better`. All that is printed, all curves and all figures by
proposer are of the others, so options can be chosen by them.
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
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from _provenance import provenance  # noqa: E402
from _published import refuse_part  # noqa: E402

from agentforge.schema import UsageError  # noqa: E402
from agentforge.search import policies  # noqa: E402
from search.comparison import (  # noqa: E402
    ATTEMPTS,
    DEFAULT,
    LOOKS,
    VARIANTS,
    Numbers,
    better,
    compared,
    curves,
    interval,
    least_held_out,
    within,
)
from search.landscape import Landscape, read, run  # noqa: E402
from search.proposers import PROPOSERS, Space  # noqa: E402
from search.replay import Search, random_search  # noqa: E402
from search.report import budgets, choice, figure, table  # noqa: E402
from tools.generated import GeneratedPart  # noqa: E402

LANDSCAPES = HERE.parent / "results" / "landscapes.jsonl.gz"
RESULTS = HERE.parent / "results" / "search_policies.json"
_COMMAND = "benchmarks/search/lab.py --table"
TABLE = GeneratedPart("docs/policy-lab.md", "lab", _COMMAND)
BUDGETS = GeneratedPart("docs/policy-lab.md", "budgets", _COMMAND)
CHOICE = GeneratedPart("docs/search.md", "choice", _COMMAND)

SEEDS = 30
ENOUGH = 0.95
"""Progress at which a search counts as done (`Landscape.enough`)."""
LEAST_GAIN = math.log(1.05)
"""A landscape with less to gain than that says nothing about policies."""
SECONDS = 600.0
"""Of the simulated clock, after which policies are compared too."""


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


def by_proposer(
    found: Mapping[str, Numbers], kept: Sequence[int], enough: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """The comparison on these landscapes with each proposer alone, and the progress after `SECONDS`."""
    result = {}
    for i, proposer in enumerate(PROPOSERS):
        own = {name: runs[i : i + 1] for name, runs in found.items()}
        timed = {
            name: interval(within(runs[0, list(kept)], "seconds", SECONDS)) for name, runs in own.items()
        }
        result[proposer.name] = compared(own, kept, enough)
        result[proposer.name]["seconds"] = {"at": SECONDS, "share": timed}
    return result


def curves_of(
    found: Mapping[str, Numbers], kept: Sequence[int], landscapes: Sequence[Landscape]
) -> dict[str, dict[str, Any]]:
    """Curves on these landscapes by proposer and policy, as far as the default policy's median search comes,
    and what a random search is expected to reach."""
    known = [landscapes[i] for i in kept]
    random = np.mean(
        [np.subtract(random_search([*one.gains.values()], ATTEMPTS), one.mean) / one.room for one in known],
        axis=0,
    )
    calculated = {"at": list(range(1, ATTEMPTS + 1)), "share": random.round(4).tolist()}
    result = {}
    for i, proposer in enumerate(PROPOSERS):
        own = {name: runs[i, list(kept)] for name, runs in found.items()}
        limits = [float(np.median(own[DEFAULT][..., -1, column])) for column in (0, 1)]
        result[proposer.name] = {
            **{name: curves(runs, limits) for name, runs in own.items()},
            "random (calculated)": {"evaluations": calculated},
        }
    return result


def laboratory(
    landscapes: Mapping[str, Landscape], names: Sequence[str], seeds: int = SEEDS
) -> dict[str, Any]:
    """All figures of the lab: on the open landscapes, by which options are chosen, and apart from these on
    the held-out ones.

    Args:
        names: of registered policies; the default one is always there.
    """
    known = [one for one in landscapes.values() if one.complete]
    counted = [one for one in known if one.room >= LEAST_GAIN]
    held_out = [i for i, one in enumerate(counted) if one.held_out]
    free = [i for i, one in enumerate(counted) if not one.held_out]
    if not free:
        raise SystemExit(
            "no complete landscape that is not held out has anything to gain: record some with record.py"
        )
    variants = {name: (name, dict[str, Any]()) for name in dict.fromkeys([DEFAULT, *names])}
    variants |= {label: one for label, one in VARIANTS.items() if one[0] in variants}
    found, spaces = {}, [Space(one) for one in counted]
    with ProcessPoolExecutor() as pool:
        for label, variant in variants.items():
            found[label] = searches(variant, spaces, seeds, pool)
            share = found[label][:, free, :, LOOKS[-1] - 1, 2].mean()
            print(f"{label}: {share:.3f} after {LOOKS[-1]} on the open landscapes", flush=True)
    done = [(one.enough(ENOUGH) - one.mean) / one.room for one in counted]
    result: dict[str, Any] = {
        "left_out": {
            "incomplete": [name for name, one in landscapes.items() if not one.complete],
            "nothing_to_gain": [one.name for one in known if one.room < LEAST_GAIN],
        },
        "seeds": seeds,
        "proposers": [vars(proposer) for proposer in PROPOSERS],
        "open": compared(found, free, done),
        "by_proposer": by_proposer(found, free, done),
        "curves": curves_of(found, free, counted),
    }
    if held_out:
        result["held_out"] = compared(found, held_out, done)
        enough = len(held_out) >= least_held_out(found)
        result["may_become_the_default"] = better(found, held_out) if enough else None
    return result


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--landscapes", type=Path, default=LANDSCAPES)
    parser.add_argument("--policies", default=",".join(policies.names()), help="names with commas between")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--figure", type=Path, help="also write the curves as an HTML page")
    parser.add_argument("--table", action="store_true", help="only write the tables of the documentation")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args(argv)
    if not chosen.table:
        refuse_part(parser, chosen, "out", ("figure",))
    return chosen


def main() -> int:
    chosen = arguments()
    if chosen.table:
        result = json.loads(chosen.out.read_text())
        if missing := {"open", "held_out"} - set(result):
            raise UsageError(f"{chosen.out} has nothing on {' and '.join(sorted(missing))} landscapes")
        TABLE.write(table(result))
        BUDGETS.write(budgets(result))
        CHOICE.write(choice(CHOICE.content, result))
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
    print(budgets(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))

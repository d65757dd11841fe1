"""Write what can be profiled and optimized into docs/models.md, from benchmarks/results/model_coverage.json.

python tools/coverage_table.py            # write the tables
python tools/coverage_table.py --check    # fail if the tables in the file are not current

`benchmarks/model_coverage.py` measures; it continues where it stopped.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from agentforge.schema import baseline_name  # noqa: E402
from tools.generated import ROOT, GeneratedPart  # noqa: E402

TABLE = GeneratedPart("docs/models.md", "coverage", "tools/coverage_table.py")
RESULTS = ROOT / "benchmarks" / "results" / "model_coverage.json"
_KINDS = ("profile", "optimize")
_NARROW = 0.05
"""Width of an interval, as a share of its point, below which a small loss would be seen."""
Record = Mapping[str, Any]


def content(records: Sequence[Record] | None = None) -> str:
    """The tables in Markdown; without records those of the results on file."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))["cases"] if records is None else records
    return "\n".join([*_profiled(found), "", *_optimized(found)]) + "\n"


def _profiled(records: Sequence[Record]) -> Iterator[str]:
    """What works by family, then the reasons of those that do not work as a whole."""
    works: dict[str, list[str]] = {}
    others: list[Record] = []
    for record in records:
        row = works.setdefault(record["family"], [])
        if record["profile"]["outcome"] == "works":
            row.append(f"`{record['name']}`")
        else:
            others.append(record)
    done = sum("attributed" in record["profile"] for record in records)
    yield f"{done} of {len(records)} models can be profiled."
    yield _sources(records, "profile")
    yield ""
    yield "| family | works |"
    yield "|---|---|"
    yield from (f"| {family} | {', '.join(row)} |" for family, row in works.items())
    yield ""
    yield "The others:"
    yield ""
    yield from (f"- `{r['name']}` ({r['profile']['outcome']}): {_why(r)}." for r in others)
    yield ""
    found = [f"`{r['name']}`" for r in records if any(r.get(k, {}).get("internals") for k in _KINDS)]
    yield f"Models with words of torch's internals in a message: {', '.join(found) or 'none'}."


def _sources(records: Sequence[Record], kind: str) -> str:
    """One sentence that names the commits and dates of the results of a kind, oldest first."""
    days: dict[str, list[str]] = {}
    for record in records:
        if kind in record:
            made = record[kind].get("measured", {})
            days.setdefault(made.get("commit", ""), []).append(made.get("date", "")[:10])
    found = sorted((min(dates), max(dates), commit, len(dates)) for commit, dates in days.items())
    return f"Measured at {', '.join(itertools.starmap(_source, found))}."


def _source(first: str, last: str, commit: str, number: int) -> str:
    name = f"commit `{commit}`" if commit else "a commit that is not on record"
    when = f", {first}" + (f" to {last}" if last != first else "") if first else ""
    return f"{name} ({number} model{'' if number == 1 else 's'}{when})"


def _why(record: Record) -> str:
    found = record["profile"]
    in_parts = next((n for n in found.get("notes", ()) if "in parts" in n), "")
    why: str = found.get("error") or in_parts.rpartition("because ")[2]
    return why.removeprefix(f"{record['name']}: ")


def _optimized(records: Sequence[Record]) -> Iterator[str]:
    """What `optimize` made of each model that can be profiled."""
    tried = [record for record in records if "optimize" in record]
    possible = sum("attributed" in record["profile"] for record in records)
    if not tried:
        yield f"`optimize` was not tried yet on the {possible} that can be profiled."
        return
    ended = [r["optimize"] for r in tried if r["optimize"]["outcome"] == "ended"]
    over_best = [found["speedup"][name] for found in ended if (name := _fastest(found))]
    slower = sum(gain["high"] < 1.0 for gain in over_best)
    minutes = " or ".join(f"{m:g}" for m in sorted({r["optimize"]["minutes"] for r in tried}))
    yield (
        f"`optimize` with {minutes} minutes of search: of the {possible} that can be profiled, {len(tried)} "
        "were tried."
    )
    yield _sources(tried, "optimize")
    yield f"{len(ended)} ended with a result."
    if over_best:
        mean = statistics.geometric_mean(gain["point"] for gain in over_best)
        many = f"{len(over_best)} verified speedups over the fastest baseline"
        yield f"The geometric mean of {many} is {mean:.2f}x."
        yield f"In {slower} of them the whole interval lies below 1."
    narrow = sum(gain["high"] - gain["low"] < _NARROW * gain["point"] for gain in over_best)
    yield (
        f"Of the {len(tried)} rows below, {len(over_best)} have a figure over the fastest baseline. "
        f"{narrow} of these intervals {'is' if narrow == 1 else 'are'} narrower than {_NARROW:.0%}; "
        "a wider one can hide a loss of some percent."
    )
    yield ""
    yield "| model | artifact | over eager | over the fastest baseline | seconds |"
    yield "|---|---|---|---|---|"
    for record in tried:
        found = record["optimize"]
        cells = [f"`{record['name']}`", found.get("mode") or found["error"], *_speedups(found)]
        yield f"| {' | '.join(cells)} | {found['seconds']:.0f} |"


def _speedups(found: Record) -> tuple[str, str]:
    """Over eager and over the fastest baseline; empty if the original is kept or nothing was verified."""
    name = _fastest(found)
    if not name:
        return "", ""
    over = {key: "{point:.2f}x [{low:.2f}, {high:.2f}]".format_map(i) for key, i in found["speedup"].items()}
    return over["eager"], f"{over[name]} ({baseline_name(name)})"


def _fastest(found: Record) -> str:
    """The baseline that was the hardest to beat; empty without a verified speedup."""
    speedup = found.get("speedup") if found.get("proven") else None
    return min(speedup, key=lambda name: speedup[name]["point"]) if speedup else ""


if __name__ == "__main__":
    raise SystemExit(TABLE.main(content()))

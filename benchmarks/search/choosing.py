"""How long each policy takes to choose among 10,000 attempts.

    python benchmarks/search/choosing.py --out FILE

Each built-in policy on the trees that the contract suite has. A figure is the processor time of the
fastest and of the slowest of 21 choices, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from _provenance import provenance  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from agentforge.search import policies  # noqa: E402
from agentforge.testing.search import LARGE, SHAPES, large_tree  # noqa: E402

_CHOICES = 21


def choices_ms(name: str, shape: str) -> list[float]:
    """Milliseconds of processor time of each choice."""
    policy, grown, taken = policies.create(name), large_tree(SHAPES[shape]), []
    for _ in range(_CHOICES):
        started = time.thread_time()
        policy.select(grown)
        taken.append(round(1e3 * (time.thread_time() - started), 2))
    return taken


def main() -> None:
    """Measure all of them."""
    parser = argparse.ArgumentParser(description="Time each policy's choice among many attempts.")
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "search_choosing.json")
    options = parser.parse_args()
    rows = []
    table = Table("policy", "shape", "fastest, ms", "slowest, ms", title=f"A choice among {LARGE:,} attempts")
    for name in policies.names():
        for shape in sorted(SHAPES):
            taken = choices_ms(name, shape)
            rows.append({"policy": name, "shape": shape, "least_ms": min(taken), "most_ms": max(taken)})
            table.add_row(name, shape, f"{min(taken):.1f}", f"{max(taken):.1f}")
    options.out.write_text(json.dumps({**provenance(), "attempts": LARGE, "rows": rows}, indent=1) + "\n")
    Console().print(table)


if __name__ == "__main__":
    main()

"""Count how many of each format's own examples the suites read.

    python benchmarks/suite_examples.py kernelbench:KernelBench/KernelBench sol:SOL-ExecBench/examples ...

Each argument is a suite as `campaign start` takes it; its place lies in a clone of the format's repository.
A definition is read if a worker gets at least one of its workloads. The others are counted by the suite's
reason. Nothing is run: whether a task needs a GPU, memory or a model that is not here, the worker finds out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _provenance import commit, provenance  # noqa: E402

from agentforge.campaigns.suites import Selection, open_suite  # noqa: E402

RESULTS = HERE / "results" / "suite_examples.json"


def counted(spec: str) -> dict[str, Any]:
    """Problems of a suite, how many can be read, and why others cannot."""
    name, _, place = spec.partition(":")
    found = open_suite(spec).problems(Selection())
    problems = [one for one in found if "workloads" not in one.native]  # those of single workloads
    read = {one.definition or one.id for one in problems if not one.unsupported}
    every = {one.definition or one.id for one in problems}
    return {
        "suite": name,
        "folder": Path(place).name,
        "commit": commit(Path(place)),
        "problems": len(problems),
        "definitions": len(every),
        "definitions_read": len(read),
        "problems_unsupported": dict(Counter(one.unsupported for one in problems if one.unsupported)),
        "definitions_unsupported": sorted(every - read),
    }


def main() -> None:
    """The file is written when all suites were read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="+", help="NAME:PLACE, as for `agentforge campaign start`")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    found = []
    for spec in chosen.suites:
        found.append(counted(spec))
        last = found[-1]
        print(f"{last['suite']}: {last['definitions_read']} of {last['definitions']} definitions", flush=True)
    chosen.out.write_text(json.dumps({"provenance": provenance(), "suites": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

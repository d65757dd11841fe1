"""Run `agentforge optimize` on one problem with each built-in policy, and record the verdicts.

    python benchmarks/search/each_policy.py

RMSNorm over 2048 rows of 1024 (`benchmarks/problems/rmsnorm.py`), with the playbook and every other setting
as a user has it. Each policy has enough attempts to build on an earlier one. It shows that a whole run works
with each policy. Which policy needs the fewest attempts is the policy lab's question (`lab.py`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from _provenance import provenance  # noqa: E402
from end_to_end import optimize  # noqa: E402

from agentforge.search import policies  # noqa: E402

RESULTS = HERE.parent / "results" / "each_policy.json"
FIELDS = ("headline", "mode", "proven", "attempts", "stopped", "first_verdict_s", "error")
"""What is kept of a run's answer."""
ATTEMPTS, LONGER = 3, {"best-of": 6, "beam": 6}
"""Of a run; the policies that begin with four starts get more."""
SIZE = ("--init-args", "[1024]", "--input-shape", "2048,1024")


def main() -> None:
    """One run for each policy; the file is written after each."""
    results = []
    for name in policies.names():
        attempts = str(LONGER.get(name, ATTEMPTS))
        options = ["--attempts", attempts, "-c", f"search.policy={name}", *SIZE]
        found = optimize(f"{HERE.parent / 'problems' / 'rmsnorm.py'}:Model", options)
        run = found.pop("result")
        kept = {field: run[field] for field in FIELDS if field in run}
        speedup = ((run.get("end_to_end") or {}).get("performance") or {}).get("speedup", {})
        results.append({"policy": name, **found, **kept, "speedup": speedup})
        print(f"{name}: {found['seconds']} s; {run.get('headline', '')}", flush=True)
        RESULTS.write_text(json.dumps({"provenance": provenance(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Run `agentforge optimize` on model files, each in a fresh process, and write what it reached.

    python benchmarks/end_to_end.py examples/*.py --out benchmarks/results/examples.json

The result of each file is the `--json` answer of the command; a failure is kept as a failure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from _provenance import provenance


def optimize(path: str, options: list[str]) -> dict[str, Any]:
    """One run; `seconds` is the wall time of the whole command."""
    command = ["agentforge", "optimize", path, "--json", *options]
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "agentforge.cli", *command[1:]], capture_output=True, text=True, check=False
    )
    seconds = round(time.perf_counter() - started, 1)
    try:
        answer: Any = json.loads(done.stdout)
    except json.JSONDecodeError:
        answer = {"error": (done.stderr or done.stdout)[-2000:]}
    return {
        "file": Path(path).name,
        "command": " ".join([*command[:2], Path(path).name, *command[3:]]),
        "exit_code": done.returncode,
        "seconds": seconds,
        "result": answer,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--option", action="append", default=[], help="passed on to `agentforge optimize`")
    arguments = parser.parse_args()
    results = []
    for path in arguments.files:
        result = optimize(path, arguments.option)
        results.append(result)
        print(f"{result['file']}: exit {result['exit_code']}, {result['seconds']} s", flush=True)
        report = {"provenance": provenance(), "results": results}
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

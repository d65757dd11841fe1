"""Run `agentforge optimize` on model files, each in a fresh process, and record the results.

    python benchmarks/end_to_end.py examples/gpt2.py --out benchmarks/results/gpt2.json

Each run has a home of its own, so that it knows only what a fresh clone knows: no outcomes of earlier runs.
The home is removed afterwards; `--option=--out --option=FOLDER` keeps the artifact. The result of each file
is the command's `--json` answer. A failure is recorded as a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _provenance import provenance


def optimize(path: str, options: list[str]) -> dict[str, Any]:
    """One run: wall time of the whole command and peak resident memory of its process."""
    command = ["agentforge", "optimize", path, "--json", "-c", "search.reuse_verdicts=false", *options]
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="end-to-end-") as home,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
    ):
        own = {"AGENTFORGE_HOME": home, "AGENTFORGE_DATABASE_URL": f"sqlite:///{home}/agentforge.db"}
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "agentforge.cli", *command[1:]],
            stdout=out,
            stderr=errors,
            env={**os.environ, **own},
        )
        peak = 0
        while supervisor.poll() is None:
            peak = max(peak, most_memory(supervisor.pid))
            time.sleep(0.2)
        seconds = round(time.perf_counter() - started, 1)
        out.seek(0)
        errors.seek(0)
        text = out.read()
        try:
            answer: Any = json.loads(text)
        except json.JSONDecodeError:
            answer = {"error": (errors.read() or text)[-2000:]}
    return {
        "file": Path(path).name,
        "command": " ".join([*command[:2], Path(path).name, *command[3:]]),
        "exit_code": supervisor.returncode,
        "seconds": seconds,
        "supervisor_peak_mb": round(peak / 1e6),
        "result": answer,
    }


def most_memory(pid: int) -> int:
    """Peak resident memory of a process in bytes; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


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
        print(
            f"{result['file']}: exit {result['exit_code']}, {result['seconds']} s, "
            f"{result['supervisor_peak_mb']} MB; {result['result'].get('headline', '')}",
            flush=True,
        )
        report = {"provenance": provenance(), "results": results}
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

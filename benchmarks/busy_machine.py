"""Verdicts while other programs use the processors: what stays proven, and whether a gain is made up.

    python benchmarks/busy_machine.py                      # writes benchmarks/results/busy_machine.json
    python benchmarks/busy_machine.py --loads 0 1 --kernels 6 --out mine.json

Honest kernels of the adversarial corpus, and exact copies of a softmax's reference, are judged at level
`full` against eager, with default settings otherwise: alone, and beside one and two processes that compute
without a pause. The loads of a case follow each other directly. A gain is `made_up` if the low end of its
interval exceeds the high end of the interval that was measured alone, or 1 for a copy. Two processors and 17
cases take about 20 minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "adversarial")]

from _provenance import provenance  # noqa: E402
from corpus import Case, Problems, load_cases  # noqa: E402

from agentforge.config import RefereeSettings  # noqa: E402
from agentforge.devices import detect  # noqa: E402
from agentforge.languages import read_solution  # noqa: E402
from agentforge.referee import EvaluationRequest, Referee  # noqa: E402
from agentforge.schema import Evaluation, Level  # noqa: E402

RESULTS = HERE / "results" / "busy_machine.json"
LARGEST_COPY = "softmax_256mib"
"""Left out: alone it takes minutes."""


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Processes that compute without a pause."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def chosen(kernels: int) -> list[Case]:
    """Some honest kernels in C++, drawn under a fixed seed, and the copies of one reference."""
    honest = [case for case in load_cases() if case.kind == "honest"]
    written = [case for case in honest if not case.copy and Path(case.name).name.startswith("cpp_")]
    copies = [case for case in honest if case.copy and case.problem.startswith("softmax_")]
    return random.Random(0).sample(written, kernels) + [c for c in copies if c.problem != LARGEST_COPY]


def record(case: Case, load: int, evaluation: Evaluation) -> dict[str, Any]:
    """One verdict, without its stages."""
    found = evaluation.speedup.get("eager")
    return {
        "case": case.name,
        "copy": case.copy,
        "load": load,
        "status": evaluation.status.value,
        "evidence": evaluation.evidence.value,
        "speedup": [found.low, found.point, found.high] if found else None,
        "seconds": round(evaluation.seconds, 1),
        "reasons": evaluation.reasons,
    }


def summary(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Counts for each load: verified verdicts, proven gains of kernels, and gains that are made up."""
    alone = {r["case"]: r["speedup"] for r in records if r["load"] == 0 and r["speedup"]}
    table: dict[str, dict[str, Any]] = {}
    for load in sorted({r["load"] for r in records}):
        own = [r for r in records if r["load"] == load]
        verified = [r for r in own if r["evidence"] == "verified" and r["speedup"]]
        proven = {r["case"] for r in verified if r["speedup"][0] > 1.0 and not r["copy"]}
        table[str(load)] = {
            "judged": len(own),
            "verified": len(verified),
            "failed": [r["case"] for r in own if r["status"] != "PASSED"],
            "gains": len(proven),
            "made_up": [r["case"] for r in verified if _made_up(r, alone.get(r["case"]))],
            "mean_s": round(sum(r["seconds"] for r in own) / len(own), 1),
        }
    return table


def _made_up(found: dict[str, Any], alone: Sequence[float] | None) -> bool:
    low = found["speedup"][0]
    most = 1.0 if found["copy"] else alone[2] if alone else None
    return most is not None and low > most


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loads", type=int, nargs="+", default=[0, 1, 2], help="numbers of other processes")
    parser.add_argument("--kernels", type=int, default=13)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    problems, records = Problems(), []
    with (
        tempfile.TemporaryDirectory(prefix="busy-machine-") as folder,
        Referee(
            RefereeSettings(compile_baseline=False), device=detect("cpu"), cache=Path(folder) / "cache"
        ) as referee,
    ):
        for case in chosen(arguments.kernels):
            definition, workloads = problems.get(case)
            solution = read_solution(case.path, definition.hash)
            for load in arguments.loads:
                request = EvaluationRequest(definition, workloads, solution, Level.FULL)
                with busy(load):
                    records.append(record(case, load, referee.evaluate(request)))
                print(records[-1], flush=True)
                result = {"provenance": provenance(), "loads": summary(records), "records": records}
                arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(summary(records), indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Audit the adversarial corpus as a foreign folder: every candidate claims to be right and twice as fast.

    python benchmarks/audit_corpus.py                                  # all of it, level full
    python benchmarks/audit_corpus.py --only 'hostile/f04*' --level quick --output FILE

Writes benchmarks/results/audit_corpus.json. Exit code 1 if a hostile program is verified with a gain that its
file does not allow, or an honest one is refuted. An audit that was stopped continues, if --home is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "adversarial")]

from _provenance import provenance  # noqa: E402
from _published import whole_or_elsewhere  # noqa: E402
from corpus import ROOT, Case, front_matter, load_cases  # noqa: E402

RESULTS = HERE / "results" / "audit_corpus.json"
CLAIMED = 2.0


def write_folder(folder: Path, cases: Sequence[Case]) -> None:
    """A copy of the cases and their problems, with claims."""
    claims = []
    for case in cases:
        relative = case.path.relative_to(ROOT)
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if case.path.is_dir() else shutil.copyfile
        copy(case.path, folder / relative)
        problem = Path("problems") / f"{case.problem}.py"
        (folder / "problems").mkdir(exist_ok=True)
        shutil.copyfile(ROOT / problem, folder / problem)
        claims.append(
            {
                "id": case.name,
                "solution": relative.as_posix(),
                "reference": problem.as_posix(),
                "policy": case.policy or front_matter(ROOT / problem)["policy"],
                "correct": True,
                "speedup": CLAIMED,
            }
        )
    (folder / "claims.json").write_text(json.dumps({"claims": claims}, indent=1))


def findings(cases: Sequence[Case], items: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Names of what must not be: hostile programs verified with a gain, and honest ones refuted."""
    by_name = {item["id"]: item for item in items}
    found: dict[str, list[str]] = {"hostile_verified": [], "honest_refuted": [], "undecided": []}
    for case in cases:
        item = by_name[case.name]
        eager = item["speedup"].get("eager", {}).get("low", 0.0)
        gained = item["evidence"] == "verified" and eager > (case.max_speedup or 1.0)
        if item["outcome"] == "undecided":
            found["undecided"].append(case.name)
        elif case.kind == "hostile" and gained:
            found["hostile_verified"].append(case.name)
        elif case.kind == "honest" and item["outcome"] == "refuted":
            found["honest_refuted"].append(case.name)
    return found


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="pattern of names; repeat")
    parser.add_argument("--level", choices=["quick", "full"], default="full")
    parser.add_argument("--home", type=Path, default=None, help="AGENTFORGE_HOME that keeps the verdicts")
    return whole_or_elsewhere(parser, argv, RESULTS, output="output", free=("home",))


def main(argv: Sequence[str] | None = None) -> int:
    """Audit what was asked for."""
    options = arguments(argv)
    cases = [c for c in load_cases() if not options.only or any(fnmatch(c.name, p) for p in options.only)]
    with tempfile.TemporaryDirectory(prefix="agentforge_audit_") as scratch:
        folder, home = Path(scratch, "foreign"), options.home or Path(scratch, "home")
        folder.mkdir()
        write_folder(folder, cases)
        command = [sys.executable, "-m", "agentforge.cli", "audit", str(folder), "--json", "--device", "cpu"]
        command += ["--level", options.level, "-c", "referee.compile_baseline=false"]
        environment = {**os.environ, "AGENTFORGE_HOME": str(home)}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
        if done.returncode not in (0, 1):
            print(done.stdout)
            return done.returncode
        audit = json.loads(done.stdout)
    wrong = findings(cases, audit["items"])
    content = {**provenance(), "level": options.level, "cases": len(cases), **wrong, "audit": audit}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(content, indent=1) + "\n")
    print(f"{len(cases)} cases: {audit['outcomes']}; caught by {audit['caught']}; wrong: {wrong}")
    return int(bool(wrong["hostile_verified"] or wrong["honest_refuted"]))


if __name__ == "__main__":
    raise SystemExit(main())

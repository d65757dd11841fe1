"""The corpus as a foreign folder: a sample of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "audit_corpus.py"


@pytest.mark.slow
def test_hostile_programs_are_refuted_and_honest_ones_are_not(tmp_path: Path) -> None:
    names = (
        "hostile/f03*/zero_weights",
        "hostile/f04_mutate_inputs/answer_in_place",
        "honest/relu/torch_clamp",
    )
    command = [sys.executable, str(SCRIPT), "--level", "quick", "--output", str(tmp_path / "found.json")]
    command += [part for name in names for part in ("--only", name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    outcomes = {item["id"]: item["outcome"] for item in found["audit"]["items"]}
    assert len(outcomes) == found["cases"] >= 3
    assert {o for name, o in outcomes.items() if name.startswith("hostile")} == {"refuted"}
    assert outcomes["honest/relu/torch_clamp"] == "right"
    assert sum(found["audit"]["caught"].values()) == len(outcomes) - 1

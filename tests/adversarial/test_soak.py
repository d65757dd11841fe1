"""Some evaluations in a row with faults among them leave nothing behind and no verdict wrong."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.slow
def test_faults_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import soak

    try:
        options = argparse.Namespace(evaluations=4, seconds=60.0, seed=7)
        result = soak.judge_all(options, tmp_path)
    finally:
        sys.modules.pop("soak", None)
    assert result["evaluations"] >= 3
    assert result["problems"] == []

"""`benchmarks/end_to_end.py`: no run knows what earlier ones found."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_each_run_has_a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text(
        '#!/bin/sh\necho "{\\"home\\": \\"$AGENTFORGE_HOME\\", \\"url\\": \\"$AGENTFORGE_DATABASE_URL\\"}"\n'
    )
    program.chmod(0o755)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    optimize = runpy.run_path(str(BENCHMARKS / "end_to_end.py"))["optimize"]
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("AGENTFORGE_DATABASE_URL", "postgresql+psycopg://somewhere/old")
    results = [optimize("model.py", [])["result"] for _ in range(2)]
    homes = {result["home"] for result in results}
    assert len(homes) == 2 and str(tmp_path / "old") not in homes
    assert all(result["url"].startswith(f"sqlite:///{result['home']}/") for result in results)
    assert not any(Path(home).exists() for home in homes)

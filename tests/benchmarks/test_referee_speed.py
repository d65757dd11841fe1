"""`benchmarks/referee_speed.py`: what a command does not measure stays on record."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "referee_speed.py"
VERDICTS = {"commit": "abc", "median_s": 12.9}
SPEED = {
    "median_s": {"referee": 2.0},
    "trust_split_and_sandbox_s": 0.1,
    "times_faster_than_load_inline": 14.0,
}


def measured(out: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> dict[str, Any]:
    """The results after the command; nothing is measured."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["referee_speed.py", "--out", str(out), *options])
    main = runpy.run_path(str(SCRIPT))["main"]
    replaced = {
        "memory": lambda *_: {"referee_mb": 1.0, "peak_mb": 2.0, "allowed_mb": 3.0},
        "compare": lambda *_: dict(SPEED),
        "provenance": lambda: {"commit": "new"},
    }
    for name, function in replaced.items():
        monkeypatch.setitem(main.__globals__, name, function)
    assert main() == 0
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("options", [(), ("--part", "speed"), ("--part", "memory")])
def test_what_is_not_measured_stays(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "found.json"
    before = {**SPEED, "median_s": {"referee": 9.0}}
    out.write_text(json.dumps({**before, "verdicts": VERDICTS, "verdicts_ordinary_user": VERDICTS}))
    found = measured(out, monkeypatch, *options)
    assert found["verdicts"] == found["verdicts_ordinary_user"] == VERDICTS
    assert found["median_s"]["referee"] == (9.0 if "memory" in options else 2.0)
    assert found["goals"]["median verified verdict in 15 s"]

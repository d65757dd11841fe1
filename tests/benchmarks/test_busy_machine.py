"""`benchmarks/busy_machine.py`: which gains count as made up, and that the load ends."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "busy_machine.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    return runpy.run_path(str(SCRIPT))


def record(case: str, load: int, speedup: list[float] | None, **changes: object) -> dict[str, Any]:
    found = {"case": case, "copy": False, "load": load, "status": "PASSED", "evidence": "verified"}
    return {**found, "speedup": speedup, "seconds": 1.0, "reasons": [], **changes}


def test_a_gain_beyond_what_was_measured_alone_is_made_up(script: dict[str, Any]) -> None:
    records = [
        record("kernel", 0, [1.4, 1.5, 1.6]),
        record("kernel", 1, [1.7, 2.0, 2.2]),
        record("other", 0, [1.4, 1.5, 1.6]),
        record("other", 1, [1.2, 1.6, 3.0]),
        record("copy", 0, [0.9, 1.0, 1.1], copy=True),
        record("copy", 1, [1.05, 1.1, 1.2], copy=True),
        record("noisy", 1, [3.0, 4.0, 5.0], evidence="unverified"),
        record("failed", 1, None, status="TIMEOUT"),
    ]
    found = script["summary"](records)
    assert found["0"]["made_up"] == []
    assert found["1"]["made_up"] == ["kernel", "copy"]
    assert found["1"]["failed"] == ["failed"]
    assert (found["1"]["judged"], found["1"]["verified"], found["1"]["gains"]) == (5, 3, 2)


def test_the_load_is_there_and_ends(script: dict[str, Any]) -> None:
    before = set(psutil.Process().children())
    with script["busy"](2):
        assert len(set(psutil.Process().children()) - before) == 2
    assert set(psutil.Process().children()) == before


def test_copies_are_among_the_cases_and_the_choice_is_always_the_same(script: dict[str, Any]) -> None:
    first, second = script["chosen"](3), script["chosen"](3)
    assert [case.name for case in first] == [case.name for case in second]
    assert [case.copy for case in first].count(False) == 3
    assert sum(case.copy for case in first) == 4

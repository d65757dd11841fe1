"""The comparison of the referee's ratios with a plain loop's: its arithmetic."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agentforge.schema import Interval

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def records() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    from loops import records

    yield records
    sys.path.remove(str(BENCHMARKS))


def ratio(point: float, by: float = 1.01) -> Interval:
    return Interval(point=point, low=point / by, high=point * by)


@pytest.mark.parametrize(
    ("referee", "rotating", "written", "paused", "reason"),
    [
        (ratio(2.0), ratio(2.08), ratio(3.0), ratio(3.0), ""),
        (ratio(2.0, by=1.2), ratio(2.3), ratio(3.0), ratio(3.0), ""),
        (ratio(2.0, by=1.5), ratio(2.9), ratio(3.1), ratio(9.0), "unknown"),
        (ratio(1.5), ratio(2.0), ratio(2.0), ratio(3.0), "handover"),
        (ratio(2.5), ratio(4.5), ratio(2.5), ratio(2.5), "cache"),
        (ratio(1.5), ratio(4.5), ratio(2.0), ratio(3.0), "cache and handover"),
        (ratio(0.8), ratio(0.4), ratio(0.4), ratio(0.81), "pause"),
        (ratio(0.9), ratio(0.3), ratio(0.3), ratio(0.85), "pause and handover"),
    ],
)
def test_a_disagreement_has_its_cause(
    records: ModuleType,
    referee: Interval,
    rotating: Interval,
    written: Interval,
    paused: Interval,
    reason: str,
) -> None:
    """Eager takes 0.2 ms in each loop; the referee takes 0.1 ms longer for each call."""
    ms = {
        "rotating": {"eager": 0.2, "party": 0.2 / rotating.point},
        "written": {"eager": 0.2, "party": 0.2 / written.point},
        "paused": {"eager": 0.2, "party": 0.2 / paused.point},
    }
    plain = {"rotating": rotating, "written": written, "paused": paused}
    found = records.record(referee, plain, ms, {"written": 1e-4, "paused": 1e-4})
    assert (found["agree"], found["reason"]) == (reason == "", reason)

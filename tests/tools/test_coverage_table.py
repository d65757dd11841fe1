"""The tables of docs/models.md are made from the results on file."""

from __future__ import annotations

from typing import Any

from tools import coverage_table


def record(name: str, **optimize: Any) -> dict[str, Any]:
    profile = {"outcome": "works", "attributed": 1.0}
    found = {"outcome": "ended", "minutes": 0.5, "seconds": 90.0, **optimize}
    return {
        "name": name,
        "family": "encoder",
        "profile": profile,
        **({"optimize": found} if optimize else {}),
    }


def over(eager: float, compiled: float, half: float = 0.01) -> dict[str, dict[str, float]]:
    points = {"eager": eager, "compile": compiled}
    return {name: {"point": p, "low": p - half, "high": p + half} for name, p in points.items()}


def test_the_page_has_the_tables_of_the_results() -> None:
    assert coverage_table.TABLE.is_current(coverage_table.content())


def test_each_artifact_has_its_speedup_over_the_fastest_baseline() -> None:
    refused = {"outcome": "refused", "error": "Odd: return a tensor", "internals": ["aten."]}
    text = coverage_table.content(
        [
            record("Fast", mode="kernels", proven=True, speedup=over(2.0, 1.21)),
            record("Slow", mode="kernels", proven=True, speedup=over(1.5, 0.9, 0.04)),
            record("Doubtful", mode="kernels", proven=False, speedup=over(9.0, 9.0)),
            record("Kept", mode="eager", proven=True, speedup={}),
            record("Broken", outcome="failed", error="it did not end within 9 s"),
            record("Untried"),
            {"name": "Odd", "family": "encoder", "profile": refused},
        ]
    )
    lines = text.splitlines()
    assert lines[0] == "6 of 7 models can be profiled."
    assert "- `Odd` (refused): return a tensor." in lines
    assert "Models with words of torch's internals in a message: `Odd`." in lines
    assert "of the 6 that can be profiled, 5 were tried." in text
    assert "4 ended with a result." in lines
    assert "The geometric mean of 2 verified speedups over the fastest baseline is 1.04x." in lines
    assert "In 1 of them the whole interval lies below 1." in lines
    assert "Of the 5 rows below, 2 have a figure over the fastest baseline." in text
    assert "1 of these intervals is narrower than 5%" in text
    shown = "2.00x [1.99, 2.01] | 1.21x [1.20, 1.22] (torch.compile)"
    assert f"| `Fast` | kernels | {shown} | 90 |" in lines
    assert "| `Doubtful` | kernels |  |  | 90 |" in lines
    assert "| `Kept` | eager |  |  | 90 |" in lines
    assert "| `Broken` | it did not end within 9 s |  |  | 90 |" in lines


def test_results_have_their_commits_and_dates() -> None:
    def measured(name: str, commit: str, date: str, **optimize: Any) -> dict[str, Any]:
        found = record(name, **optimize)
        for kind in ("profile", "optimize"):
            if kind in found:
                found[kind]["measured"] = {"commit": commit, "date": f"{date}T02:32:49+00:00"}
        return found

    lines = coverage_table.content(
        [
            measured("First", "abc1234", "2026-02-03"),
            measured("Second", "abc1234", "2026-02-01", mode="eager", proven=True, speedup={}),
            measured("Third", "", "2026-01-01"),
            measured("Fourth", "", "2026-01-01"),
        ]
    ).splitlines()
    unknown = "a commit that is not on record (2 models, 2026-01-01)"
    assert lines[1] == f"Measured at {unknown}, commit `abc1234` (2 models, 2026-02-01 to 2026-02-03)."
    assert "Measured at commit `abc1234` (1 model, 2026-02-01)." in lines

"""The report's table of a range of shapes: times and regret of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentforge.markdown import table
from agentforge.schema import Evaluation, Target, baseline_name

from .select import Selection


def shape_times(target: Target, selection: Selection) -> list[dict[str, Any]]:
    """Seconds of a call by shape or workload: of the baselines and of the artifact; empty if there is one.

    If eager is kept, the artifact has eager's times in the last trial.
    """
    if not target.ranged:
        return []
    trials = [t for t in (selection.trial, *reversed(selection.trials)) if t and t.evaluation.performance]
    kept = selection.trial is not None
    found = _rows(trials[0].evaluation, kept, measured=True) if trials else []
    return [*found, *_rows(selection.probed, kept, measured=False)]


def _rows(evaluation: Evaluation | None, kept: bool, *, measured: bool) -> list[dict[str, Any]]:
    performance = evaluation.performance if evaluation else None
    rows = []
    for name, seconds in (performance.workload_s if performance else {}).items():
        known = dict(seconds)
        own = known.pop("candidate")
        best = min(known, key=known.__getitem__)
        artifact = own if kept else known["eager"]
        rows.append(
            {
                "shape": name,
                "level": "full" if measured else "quick",
                "seconds": {**known, "artifact": artifact},
                "best_baseline": best,
                "regret": artifact / min(artifact, known[best]),
            }
        )
    return rows


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    best, shape = row["best_baseline"], row["shape"] if row["level"] == "full" else f"{row['shape']} *"
    eager, fastest, own = (f"{row['seconds'][name] * 1e3:.3f} ms" for name in ("eager", best, "artifact"))
    return shape, eager, f"{fastest}, {baseline_name(best)}", own, f"{row['regret']:.2f}x"


def shape_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as Markdown."""
    head = "shape", "eager", "best baseline", "artifact", "regret"
    return [
        *table(head, map(_cells, rows), numbers=True),
        "",
        "Regret is the artifact's time over the best that was measured at that shape. A shape with * was "
        "chosen to check the kernels, and measured in one process without the slow modes of torch.compile.",
        "",
    ]

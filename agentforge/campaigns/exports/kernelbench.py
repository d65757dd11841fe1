"""A campaign in KernelBench's run layout; its `benchmark_eval_analysis.py` at commit 423217d reads it.

Its older versions, such as 21fbe5a, read one object in place of a problem's list of samples.

Below the folder: `runs/CAMPAIGN-ARM-levelL/` with `level_L_problem_P_sample_0_kernel.py` for each verified
solution and `eval_results.json`, and `results/timing/DEVICE/BASELINE.json`. Times are milliseconds. They are
medians, also in the field that KernelBench calls `mean`: `metadata` and `statistic` say so. A median rests on
at least `num_trials` calls. The database has no single times, so `std`, `min` and `max` are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentforge.exports import write_texts
from agentforge.languages.solutions.single_file import export_single_file
from agentforge.schema import Evaluation, StitchResult, UsageError
from agentforge.store import Store

from ..report import CampaignReport, ItemReport
from .stitched import stitched_solution

_PROBLEM = re.compile(r"level(\d+)/(\d+)_.*")
_UNKNOWN_MS = -1.0
_STATISTIC = "median"


def export_kernelbench(store: Store, report: CampaignReport, folder: Path) -> list[Path]:
    """Write a campaign's results; files of an earlier export are replaced.

    Returns:
        The files.

    Raises:
        UsageError: its problems are not KernelBench's, or the folder cannot be written.
    """
    if not all(_PROBLEM.fullmatch(item.problem) for item in report.items):
        raise UsageError(
            f"campaign {report.campaign.name} is not over KernelBench, and its suite has no layout of "
            "results: write its artifacts with --format artifacts"
        )
    arms = (arm.name for arm in report.campaign.arms)
    return write_texts({str(path): text for arm in arms for path, text in _arm(store, report, arm)}, folder)


def _arm(store: Store, report: CampaignReport, arm: str) -> Iterator[tuple[Path, str]]:
    results: dict[int, dict[str, list[dict[str, Any]]]] = {}
    baselines: dict[str, dict[str, dict[str, Any]]] = {}
    device = re.sub(r"\W+", "_", " ".join(report.devices)) or "unknown"
    for item in sorted(report.of_arm(arm).values(), key=lambda item: _numbers(item.problem)):
        level, number = _numbers(item.problem)
        stitched = store.get_record(item.run, StitchResult) if item.run else None
        evaluation = store.get_evaluation(stitched.evaluation) if stitched and stitched.evaluation else None
        if solution := stitched_solution(store, item):
            file = f"level_{level}_problem_{number}_sample_0_kernel.py"
            yield Path("runs", _run(report, arm, level), file), export_single_file(solution)
        results.setdefault(level, {})[str(number)] = [_result(item)]
        measured = _baselines(store, item, evaluation)
        for baseline in ("eager", "compile"):
            entries = baselines.setdefault(baseline, {}).setdefault(f"level{level}", {})
            if baseline in measured or not item.verified:
                entries[f"{item.problem.partition('/')[2]}.py"] = _timing(item, measured.get(baseline))
    for level, found in results.items():
        yield Path("runs", _run(report, arm, level), "eval_results.json"), json.dumps(found, indent=1)
    for baseline, times in baselines.items():
        if all(entry["mean"] == _UNKNOWN_MS for level in times.values() for entry in level.values()):
            continue
        path = Path("results", "timing", device, f"{report.campaign.name}-{arm}-{baseline}.json")
        yield path, json.dumps(times, indent=1)


def _run(report: CampaignReport, arm: str, level: int) -> str:
    return f"{report.campaign.name}-{arm}-level{level}"


def _numbers(problem: str) -> tuple[int, int]:
    found = _PROBLEM.fullmatch(problem)
    if found is None:
        raise ValueError(problem)
    return int(found[1]), int(found[2])


def _result(item: ItemReport) -> dict[str, Any]:
    latency_s = item.latency_s if item.verified else None
    return {
        "sample_id": 0,
        "compiled": item.correct,
        "correctness": item.verified,
        "metadata": {
            "statistic": _STATISTIC,
            "hardware": item.device,
            "artifact": item.mode,
            "reason": item.reason,
            "run": item.run,
        },
        "runtime": _UNKNOWN_MS if latency_s is None else latency_s * 1e3,
        "runtime_stats": {},
    }


def _baselines(store: Store, item: ItemReport, evaluation: Evaluation | None) -> dict[str, tuple[float, int]]:
    """Measured baselines: seconds a call, and the calls that they rest on.

    Eager was measured for each problem that was profiled, torch.compile only beside some solutions.
    """
    found: dict[str, tuple[float, int]] = {}
    if (profile := store.get_profile(item.run) if item.run else None) is not None:
        found["eager"] = profile.total_s, profile.traces
    if evaluation and (timed := evaluation.performance) is not None:
        found |= {name: (s, timed.blocks * timed.processes) for name, s in timed.baseline_s.items()}
    return found


def _timing(item: ItemReport, measured: tuple[float, int] | None) -> dict[str, Any]:
    """KernelBench's entry of seconds a call and of the calls that they rest on.

    Its analysis counts only problems that have an entry, and divides by the times of verified ones. So a
    problem without a verified solution has an entry even if nothing was measured.
    """
    if measured is None:
        return {"mean": _UNKNOWN_MS, "statistic": _STATISTIC, "device": item.device}
    seconds, trials = measured
    timing = {"mean": seconds * 1e3, "statistic": _STATISTIC, "num_trials": trials}
    return {**timing, "hardware": item.device, "device": item.device}

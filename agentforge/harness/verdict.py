"""From what the stages and the clock found to an `Evaluation`."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import torch

from agentforge.devices import DeviceSpec
from agentforge.schema import (
    Correctness,
    Definition,
    Diagnostic,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Finding,
    Interval,
    KernelUse,
    Level,
    Metric,
    Performance,
    ResourceUsage,
    Solution,
    StageResult,
    Workload,
)

from .statistics import envelope, minimum_effect, ratio_interval
from .timing import GroupTimes

MAX_STAGE_TEXT = 2000


@dataclass
class Findings:
    """What is known of a solution so far."""

    status: EvaluationStatus = EvaluationStatus.PASSED
    reasons: list[str] = field(default_factory=list)
    """Against the candidate, or against the measurement."""
    suspicions: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    """Why the numbers do not count as verified, though nothing is suspicious."""
    notes: dict[str, str] = field(default_factory=dict)
    stages: list[StageResult] = field(default_factory=list)
    diagnostics: tuple[Diagnostic, ...] = ()
    metrics: tuple[Metric, ...] = ()
    resources: tuple[ResourceUsage, ...] = ()
    remarks: tuple[Finding, ...] = ()
    """What the compiler says about lines."""
    correctness: Correctness | None = None
    performance: Performance | None = None
    kernels: tuple[KernelUse, ...] = ()
    own_share: float | None = None
    log: str = ""


def performance(
    groups: Sequence[Sequence[GroupTimes]], weights: Sequence[float], sol_s: float | None
) -> Performance:
    """Combine process groups into latencies and speedups.

    Args:
        groups: for each fresh process group the times of each workload, in the workloads' order.
        weights: calls of each workload in one run of the target.
        sol_s: speed-of-light seconds of one call, where known.
    """
    combined = [weighted(group, weights) for group in groups]
    names = [n for n in combined[0] if n not in ("candidate", "control") and all(n in g for g in combined)]
    return Performance(
        latency_s=_median(combined, "candidate"),
        baseline_s={name: _median(combined, name) for name in names},
        speedup={name: envelope(group_intervals(combined, name)) for name in names},
        control=envelope([ratio_interval(g["eager"], g["control"]) for g in combined]),
        blocks=min(len(g["eager"]) for g in combined),
        processes=len(groups),
        minimum_effect=minimum_effect(envelope([ratio_interval(g["eager"], g["control"]) for g in combined])),
        sol_s=sol_s,
    )


def group_intervals(combined: Sequence[Mapping[str, Sequence[float]]], baseline: str) -> list[Interval]:
    """Speedup of each process group over one baseline."""
    return [ratio_interval(g[baseline], g["candidate"]) for g in combined]


def weighted(group: Sequence[GroupTimes], weights: Sequence[float]) -> dict[str, list[float]]:
    """Weighted mean seconds a call over the workloads, one entry a block."""
    blocks = min(times.blocks for times in group)
    names = set.intersection(*(set(times.seconds) for times in group))
    total = sum(weights)
    result: dict[str, list[float]] = {}
    for name in sorted(names):
        rows = np.array([times.seconds[name][:blocks] for times in group])
        result[name] = list(np.average(rows, axis=0, weights=np.array(weights) / total))
    return result


def _median(combined: Sequence[Mapping[str, Sequence[float]]], name: str) -> float:
    return statistics.median(second for group in combined for second in group[name])


def disagreement(groups: Sequence[Interval], slack: float) -> str:
    """Why several process groups' intervals do not tell the same story; empty where they do."""
    points = [g.point for g in groups]
    overlap = max(g.low for g in groups) <= min(g.high for g in groups)
    if overlap or max(points) / min(points) <= 1 + slack:
        return ""
    shown = ", ".join(f"{p:.2f}" for p in points)
    return f"the process groups disagree ({shown} times as fast): measure again on a quieter machine"


def evaluation(
    findings: Findings,
    definition: Definition,
    workloads: Sequence[Workload],
    solution: Solution,
    level: Level,
    device: DeviceSpec,
    sandbox: str,
    seconds: float,
) -> Evaluation:
    """The record of all findings."""
    passed = findings.status is EvaluationStatus.PASSED
    return Evaluation(
        definition=definition.hash,
        solution=solution.hash,
        workloads=tuple(w.hash for w in workloads),
        level=level,
        status=findings.status,
        evidence=_evidence(findings),
        reasons=tuple(dict.fromkeys([*findings.reasons, *findings.suspicions, *findings.unproven])),
        stages=tuple(findings.stages),
        diagnostics=findings.diagnostics,
        correctness=findings.correctness,
        performance=findings.performance if passed else None,
        kernels=findings.kernels,
        own_share=findings.own_share,
        metrics=findings.metrics,
        resources=findings.resources,
        findings=findings.remarks,
        environment=Environment(
            device=device.name,
            architecture=device.architecture,
            toolchain={"torch": torch.__version__, "python": platform.python_version(), **device.toolchain},
            sandbox=sandbox,
            notes=findings.notes,
        ),
        log=findings.log[-8000:],
        seconds=seconds,
        timestamp=datetime.now(UTC),
    )


def _evidence(findings: Findings) -> Evidence:
    if findings.status is EvaluationStatus.CHEATING or findings.suspicions:
        return Evidence.SUSPICIOUS
    if findings.status is not EvaluationStatus.PASSED or findings.unproven or findings.performance is None:
        return Evidence.UNVERIFIED
    return Evidence.VERIFIED


def exit_code(verdict: Evaluation) -> int:
    """Exit code of a command that shows a verdict: 0 verified, 1 not verified, 3 the harness failed."""
    if verdict.status is EvaluationStatus.HARNESS_ERROR:
        return 3
    return 0 if verdict.verified else 1

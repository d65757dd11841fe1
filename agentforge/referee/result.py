"""Makes an `Evaluation` of what the checks and the clock found."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import torch

from agentforge.devices import MEANING, DeviceSpec, Fallback
from agentforge.schema import (
    Correctness,
    Diagnostic,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Finding,
    Interval,
    KernelUse,
    Metric,
    Performance,
    ReasonCode,
    ResourceUsage,
    StageResult,
)

from ._base import EvaluationRequest
from .timing.statistics import Logs, deviation, log_ratios, minimum_effect, speedup
from .timing.timer import GroupTimes

MAX_STAGE_TEXT = 2000
"""Characters of a stage's detail."""

Reason = tuple[ReasonCode, str]
"""A code for programs and a sentence for people."""


@dataclass
class Findings:
    """Everything that one evaluation found."""

    status: EvaluationStatus = EvaluationStatus.PASSED
    failures: list[Reason] = field(default_factory=list)
    """Why the status is not PASSED."""
    suspicions: list[Reason] = field(default_factory=list)
    """Why the evidence is `suspicious`."""
    doubts: list[Reason] = field(default_factory=list)
    """Why the numbers are not `verified`, without a suspicion against the candidate."""
    notes: dict[str, str] = field(default_factory=dict)
    stages: list[StageResult] = field(default_factory=list)
    diagnostics: tuple[Diagnostic, ...] = ()
    metrics: tuple[Metric, ...] = ()
    resources: tuple[ResourceUsage, ...] = ()
    remarks: tuple[Finding, ...] = ()
    """The compiler's remarks about source lines."""
    correctness: Correctness | None = None
    performance: Performance | None = None
    kernels: tuple[KernelUse, ...] = ()
    own_share: float | None = None
    log: str = ""

    def fail(self, status: EvaluationStatus, text: str, code: ReasonCode | None = None) -> None:
        """Set the verdict against the candidate; the code defaults to the status's general code."""
        self.status = status
        self.failures.append((code or ReasonCode.of(status), text))

    def suspect(self, code: ReasonCode, text: str) -> None:
        """Add a reason for the evidence `suspicious`."""
        self.suspicions.append((code, text))

    def doubt(self, code: ReasonCode, text: str) -> None:
        """Add a reason for the evidence `unverified`."""
        self.doubts.append((code, text))


def performance(
    groups: Sequence[Sequence[GroupTimes]],
    weights: Sequence[float] | None,
    sol_s: float | None,
    workloads: Sequence[str] = (),
) -> Performance:
    """Combine process groups into latencies and speedups; `workloads` names them if there are several.

    Args:
        weights: see `weighted`.
    """
    combined = [weighted(group, weights) for group in groups]
    names = [n for n in combined[0] if n not in ("candidate", "control") and all(n in g for g in combined)]
    controls = ratios(combined, "eager", "control")
    control = speedup(controls)
    return Performance(
        latency_s=_median(combined, "candidate"),
        baseline_s={name: _median(combined, name) for name in names},
        speedup={name: speedup(ratios(combined, name, "candidate"), controls) for name in names},
        control=control,
        deviation=deviation(controls),
        workload_s=_by_workload(groups, workloads, ["candidate", *names]),
        workload_speedup=_speedups(groups, workloads, names),
        processor_ratio=_processor_ratios(groups, names),
        blocks=min(len(g["eager"]) for g in combined),
        processes=len(groups),
        minimum_effect=minimum_effect(control),
        sol_s=sol_s,
    )


def _by_workload(
    groups: Sequence[Sequence[GroupTimes]], workloads: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Median seconds a call of each workload."""
    if not workloads:
        return {}
    return {
        workload: {
            name: statistics.median(s for times in over for s in times.seconds[name]) for name in names
        }
        for workload, over in zip(workloads, zip(*groups, strict=True), strict=True)
    }


def _speedups(
    groups: Sequence[Sequence[GroupTimes]], workloads: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, Interval]]:
    """See `Performance.workload_speedup`."""
    found = {}
    for workload, over in zip(workloads, zip(*groups, strict=True), strict=bool(workloads)):
        seconds = [weighted([times], None) for times in over]
        controls = ratios(seconds, "eager", "control")
        found[workload] = {name: speedup(ratios(seconds, name, "candidate"), controls) for name in names}
    return found


def ratios(combined: Sequence[Mapping[str, Sequence[float]]], baseline: str, other: str) -> list[Logs]:
    """Log ratios of each process group, one for each block."""
    return [log_ratios(g[baseline], g[other]) for g in combined]


def _processor_ratios(groups: Sequence[Sequence[GroupTimes]], names: Sequence[str]) -> dict[str, float]:
    """Processor time of a baseline's call / of the candidate's; empty without any."""

    def median(name: str) -> float:
        turns = [t for group in groups for times in group for t in times.processor_s.get(name, [])]
        return statistics.median(turns) if turns else 0.0

    ours = median("candidate")
    return {name: median(name) / ours for name in names if ours > 0 and median(name) > 0}


def weighted(group: Sequence[GroupTimes], weights: Sequence[float] | None) -> dict[str, list[float]]:
    """Weighted mean seconds per call over the workloads, one entry per block; geometric without weights."""
    blocks = min(times.blocks for times in group)
    names = set.intersection(*(set(times.seconds) for times in group))
    result: dict[str, list[float]] = {}
    for name in sorted(names):
        rows = np.array([times.seconds[name][:blocks] for times in group])
        if weights is None:
            result[name] = list(np.exp(np.log(rows).mean(axis=0)))
        else:
            result[name] = list(np.average(rows, axis=0, weights=np.array(weights) / sum(weights)))
    return result


def _median(combined: Sequence[Mapping[str, Sequence[float]]], name: str) -> float:
    return statistics.median(second for group in combined for second in group[name])


def evaluation(
    findings: Findings, request: EvaluationRequest, device: DeviceSpec, sandbox: str, seconds: float
) -> Evaluation:
    """The record of all findings."""
    passed = findings.status is EvaluationStatus.PASSED
    # The same sentence is a reason once, with its first code.
    reasons: dict[str, ReasonCode] = {}
    for code, text in [*findings.failures, *findings.suspicions, *findings.doubts]:
        reasons.setdefault(text, code)
    return Evaluation(
        definition=request.definition.hash,
        solution=request.solution.hash,
        workloads=tuple(w.hash for w in request.workloads),
        level=request.level,
        status=findings.status,
        evidence=_evidence(findings),
        reasons=tuple(reasons),
        codes=tuple(reasons.values()),
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
            notes={**findings.notes, **_without(device)},
        ),
        log=findings.log[-8000:],
        seconds=seconds,
        timestamp=datetime.now(UTC),
    )


def _without(device: DeviceSpec) -> dict[str, str]:
    """What the verdict does without on this device, for its evidence."""
    lost = [MEANING[Fallback(name)] for name in device.fallbacks]
    return {"without": "; ".join(lost)} if lost else {}


def _evidence(findings: Findings) -> Evidence:
    """The verdict rule: `suspicious` if CHEATING or suspected, `verified` if it passed, was timed and is not
    in doubt, else `unverified`.
    """
    if findings.status is EvaluationStatus.CHEATING or findings.suspicions:
        return Evidence.SUSPICIOUS
    if findings.status is not EvaluationStatus.PASSED or findings.doubts or findings.performance is None:
        return Evidence.UNVERIFIED
    return Evidence.VERIFIED

"""Measured values by name. Prompts show them, and citations are checked against them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from agentforge.agents._base import Past, Task
from agentforge.agents.playbook.facts import measured_metrics
from agentforge.schema import Citation, Classification, Diagnostic, Evaluation, ReasonCode, Solution

from .history import number_of
from .schemas import Cited

TOLERANCE = 0.01
"""Relative tolerance of a citation: prompts show four digits, and a model may round to three."""

MOST_ATTEMPTS = 6
"""Most attempts (the newest) whose measurements are listed, so that prompts do not grow with the run."""

COMMON_TARGET = "sm_90"
"""Target to show if kernels were compiled for several."""

MOST_KERNELS = 4
"""Most kernels of one solution whose resources are listed."""

_HUGE = 1e30
"""A number from which on a citation means infinity."""

Facts = Mapping[str, float]


def of_task(task: Task, parent: Past | None = None) -> dict[str, float]:
    """Measured values of the bottleneck, the machine and the earlier attempts.

    A name has one meaning in all prompts: `region_*` is for all calls of the region in one forward of the
    model, and a name without it is for one call of an attempt.

    Args:
        parent: the attempt that the next one builds on; all its values are listed.
    """
    b, moved = task.bottleneck, sum(site.bytes for site in task.bottleneck.call_sites)
    values = {"share": b.share, "region_time_s": b.time_s, "region_sol_s": b.sol_s, "region_gain_s": b.gain_s}
    values |= {"region_bytes": moved, "region_flops": sum(site.flops for site in b.call_sites)}
    if b.time_s > 0 and moved > 0:
        values["region_achieved_bandwidth"] = moved / b.time_s
    values["model_speedup_if_free"] = b.speedup_limit
    if task.hardware.bandwidth > 0:
        values["machine_bandwidth"] = task.hardware.bandwidth
    values |= {
        "machine_peak_flops": task.hardware.peak_flops,
        "machine_threads": float(task.hardware.threads),
    }
    for past in [p for p in task.past if p.id != task.attempt][-MOST_ATTEMPTS:]:
        if past.evaluation is not None and past.evaluation.because(ReasonCode.UNTIMED):
            values |= {f"{number_of(past)}.{k}": v for k, v in _resources(past.evaluation).items()}
        elif past.evaluation is not None and past.evaluation.performance is not None:
            values |= {f"{number_of(past)}.{k}": v for k, v in _performance(past.evaluation).items()}
            found = classification(past.evaluation)
            values |= {f"{number_of(past)}.{r.metric}": r.value for r in (found.reasons if found else ())}
    if parent is not None and parent.evaluation is not None:
        values |= {f"{number_of(parent)}.{k}": v for k, v in of_evaluation(parent.evaluation).items()}
    return values


def of_evaluation(evaluation: Evaluation) -> dict[str, float]:
    """The referee's measurements of one solution."""
    values = _performance(evaluation)
    found = evaluation.correctness
    if found is not None:
        values |= {
            "max_absolute_error": found.max_absolute_error,
            "max_relative_error": found.max_relative_error,
            "tolerance": found.tolerance,
            "reference_error": found.reference_error,
        }
    if evaluation.own_share is not None:
        values["own_share"] = evaluation.own_share
    return values | measured_metrics(evaluation) | _resources(evaluation)


def mismatch(evaluation: Evaluation) -> tuple[str, ...]:
    """The wrong elements of an output: how many, where, and their values."""
    found = evaluation.correctness
    return () if found is None else found.mismatch or ((found.worst,) if found.worst else ())


MOST_LOG = 1500
"""Most characters of a log that a prompt shows."""
MOST_ERRORS = 8
MOST_MESSAGE = 600
"""Most characters of one error in a prompt: g++ writes types of templates out."""


def compile_errors(evaluation: Evaluation) -> list[Diagnostic]:
    """The compiler's first errors."""
    errors = [d for d in evaluation.diagnostics if d.severity == "error"][:MOST_ERRORS]
    return [d.model_copy(update={"message": d.message[:MOST_MESSAGE]}) for d in errors]


def of_verdict(solution: Solution, evaluation: Evaluation | None) -> dict[str, Any]:
    """What the coder's prompts show of a verdict: status, reasons, errors with their source lines, values."""
    if evaluation is None:
        return {
            "status": "",
            "reasons": (),
            "suspicious": False,
            "diagnostics": (),
            "mismatch": (),
            "facts": (),
            "log": "",
        }
    errors = compile_errors(evaluation)
    return {
        "status": evaluation.status.value,
        "reasons": evaluation.reasons[:4],
        "suspicious": evaluation.suspicious,
        "diagnostics": [(d, _line(solution, d)) for d in errors],
        "mismatch": mismatch(evaluation),
        "facts": prompt_lines(of_evaluation(evaluation)),
        "log": evaluation.log[-MOST_LOG:],
    }


def _line(solution: Solution, diagnostic: Diagnostic) -> str:
    """The source line that a diagnostic points at; empty if it is not in the solution."""
    name = PurePosixPath(diagnostic.file).name
    text = next((s.content for s in solution.sources if PurePosixPath(s.path).name == name), "")
    lines = text.splitlines()
    return lines[diagnostic.line - 1].strip()[:200] if 0 < diagnostic.line <= len(lines) else ""


_UNSTEADY = (
    ReasonCode.NOISY_CONTROL,
    ReasonCode.GROUPS_DISAGREE,
    ReasonCode.DEFERRED_WORK,
    ReasonCode.INTERFERENCE,
)


def steady(evaluation: Evaluation) -> bool:
    """False if the machine disturbed the measurement, so that nothing about the kernel follows from it."""
    return not any(map(evaluation.because, _UNSTEADY))


def classification(evaluation: Evaluation) -> Classification | None:
    """What limits a solution; None if that was concluded from times that other processes disturbed.

    Hardware counters are the kernel's own, whatever else the machine does.
    """
    found = evaluation.classification
    if found is None or steady(evaluation):
        return found
    counters = {m.name for m in evaluation.metrics if m.source == "ncu"}
    return found if found.reasons[0].metric in counters else None


def prompt_lines(facts: Facts) -> list[str]:
    """Lines for a prompt."""
    return [f"{name} = {value:.4g}" for name, value in facts.items()]


def citation_errors(cited: Iterable[Cited], facts: Facts) -> list[str]:
    """One sentence for each citation that differs from the measured values."""
    problems = []
    for citation in cited:
        value = facts.get(citation.metric.strip())
        if value is None:
            problems.append(f"no value named {citation.metric!r} was measured")
        elif not _near(citation.value, value):
            problems.append(f"{citation.metric} was measured as {value:.4g}, not {citation.value:.4g}")
    return problems


def objection_to(cited: Iterable[Cited], facts: Facts) -> str:
    """Why no citation of an answer is correct; empty if one is, because the others are left out."""
    cited = list(cited)
    problems = citation_errors(cited, facts)
    return "; ".join(problems) if problems and len(problems) == len(cited) else ""


def valid_citations(cited: Iterable[Cited], facts: Facts) -> tuple[Citation, ...]:
    """The citations that are correct, with the values as measured."""
    return tuple(
        Citation(metric=c.metric.strip(), value=facts[c.metric.strip()])
        for c in cited
        if not citation_errors([c], facts) and math.isfinite(facts[c.metric.strip()])  # JSON has no infinity
    )


def _near(said: float, measured_value: float) -> bool:
    if not math.isfinite(
        measured_value
    ):  # JSON has no word for it: any huge number of its sign, or 0 for NaN
        written = 0.0 if math.isnan(measured_value) else math.copysign(_HUGE, measured_value)
        return str(said) == str(measured_value) or (said == 0.0 if written == 0.0 else said / written >= 1.0)
    return abs(said - measured_value) <= TOLERANCE * abs(measured_value) + 1e-15


def _resources(evaluation: Evaluation) -> dict[str, float]:
    """Resources of GPU kernels by the assembler; without a GPU, the only known cost."""
    common = [r for r in evaluation.resources if r.target.startswith(COMMON_TARGET)]
    values: dict[str, float] = {}
    for used in (common or evaluation.resources)[:MOST_KERNELS]:
        own = {
            "registers": used.registers,
            "shared_bytes": used.shared_bytes,
            "spilled_bytes": used.spill_store_bytes + used.spill_load_bytes,
            "occupancy": used.occupancy,
        }
        name = f"{used.kernel}@{used.target}"
        values |= {f"{name}.{k}": float(v) for k, v in own.items() if v is not None}
    return values


def _performance(evaluation: Evaluation) -> dict[str, float]:
    performance = evaluation.performance
    if performance is None:
        return {}
    values = {"latency_s": performance.latency_s}
    values |= {f"baseline_s.{name}": value for name, value in performance.baseline_s.items()}
    values |= {f"speedup.{name}": interval.point for name, interval in performance.speedup.items()}
    if performance.sol_s is not None:
        values["sol_s"] = performance.sol_s
        if performance.latency_s > 0:
            values["sol_fraction"] = performance.sol_s / performance.latency_s
    return values

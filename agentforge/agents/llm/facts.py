"""Measured values by name: what a prompt shows, and what a citation is checked against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentforge.agents._base import Past, Task
from agentforge.agents.playbook.facts import limits, measured, measured_metrics
from agentforge.schema import Citation, Evaluation

from .answers import Cited
from .history import number_of

TOLERANCE = 0.01
"""Relative: prompts show four digits, and a model may round to three."""

MOST_ATTEMPTS = 6
"""Newest attempts whose measurements are listed: prompts must not grow with the run."""

COMMON_TARGET = "sm_90"
"""Target that is shown where kernels were compiled for several."""

MOST_KERNELS = 4
"""Kernels of one solution whose resources are listed."""

Facts = Mapping[str, float]


def of_task(task: Task, parent: Past | None = None) -> dict[str, float]:
    """What profiling measured of the bottleneck and of the machine, and of attempts what limits them.

    Args:
        task: the bottleneck, the machine and the attempts.
        parent: an attempt of which everything is listed, since the next one builds on it.
    """
    b = task.bottleneck
    values = {cited.metric: cited.value for cited in measured(task)}
    values["speedup_limit"] = b.speedup_limit
    values["gain_s"] = b.gain_s
    values["bytes"] = sum(site.bytes for site in b.call_sites)
    values["flops"] = sum(site.flops for site in b.call_sites)
    values["peak_flops"] = task.hardware.peak_flops
    values["threads"] = float(task.hardware.threads)
    for past in task.past[-MOST_ATTEMPTS:]:
        if past.evaluation is not None and past.evaluation.performance is not None:
            values |= {f"{number_of(past)}.{k}": v for k, v in _performance(past.evaluation).items()}
            values |= {f"{number_of(past)}.{c.metric}": c.value for c in limits(past.evaluation)}
    if parent is not None and parent.evaluation is not None:
        values |= {f"{number_of(parent)}.{k}": v for k, v in of_evaluation(parent.evaluation).items()}
    return values


def of_evaluation(evaluation: Evaluation) -> dict[str, float]:
    """What the referee measured of one solution."""
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


def shown(facts: Facts) -> list[str]:
    """Lines for a prompt."""
    return [f"{name} = {value:.4g}" for name, value in facts.items()]


def invented(cited: Iterable[Cited], facts: Facts) -> list[str]:
    """What is wrong with each citation that is not of a measured value."""
    problems = []
    for citation in cited:
        value = facts.get(citation.metric.strip())
        if value is None:
            problems.append(f"no value named {citation.metric!r} was measured")
        elif not _near(citation.value, value):
            problems.append(f"{citation.metric} was measured as {value:.4g}, not {citation.value:.4g}")
    return problems


def true_ones(cited: Iterable[Cited], facts: Facts) -> tuple[Citation, ...]:
    """The citations that hold, with the values as measured."""
    return tuple(
        Citation(metric=c.metric.strip(), value=facts[c.metric.strip()])
        for c in cited
        if not invented([c], facts)
    )


def _near(said: float, measured_value: float) -> bool:
    return abs(said - measured_value) <= TOLERANCE * abs(measured_value) + 1e-15


def _resources(evaluation: Evaluation) -> dict[str, float]:
    """What the assembler says of GPU kernels; it is all that is known of their cost where there is no GPU."""
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

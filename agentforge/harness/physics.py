"""A time below the device's speed of light is no speedup."""

from __future__ import annotations

from agentforge.devices import DeviceSpec
from agentforge.schema import Evaluation, EvaluationStatus, Performance

from .party import PartyFailure

STAGE = "speed of light"
_IMPOSSIBLE = 0.5
"""Fraction of the speed-of-light time below which no honest measurement falls."""


def check(performance: Performance, device: DeviceSpec, nbytes: int) -> str:
    """Compare a latency with the speed of light.

    Args:
        performance: with `sol_s`, seconds for the least bytes and operations at the measured roofline.
        device: for the size of its last cache: a workload that stays in it is not bound by memory.
        nbytes: of inputs and outputs.

    Returns:
        A suspicion, or an empty string.

    Raises:
        PartyFailure: CHEATING, where the time is impossible and the baselines' are not.
    """
    sol = performance.sol_s
    if not sol or performance.latency_s >= sol:
        return ""
    fraction = performance.latency_s / sol
    if min(performance.baseline_s.values(), default=0.0) < sol:
        return "a baseline beats the speed of light too: the given speed-of-light time is wrong"
    cached = bool(device.cache_bytes) and nbytes < 2 * device.cache_bytes[-1]
    latency_ms, sol_ms = performance.latency_s * 1e3, sol * 1e3
    text = f"{latency_ms:.4g} ms is {fraction:.2f} of the speed-of-light time {sol_ms:.4g} ms"
    if fraction < _IMPOSSIBLE and not cached:
        raise PartyFailure(EvaluationStatus.CHEATING, f"{text}: the work cannot have been done")
    return text


def contradicted(evaluation: Evaluation) -> bool:
    """Whether a time was below the given speed of light, which is a doubt about either."""
    return any(stage.name == STAGE and stage.detail for stage in evaluation.stages)

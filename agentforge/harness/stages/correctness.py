"""Stages that compare outputs: smoke, fresh random inputs, numerical stability."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from agentforge.schema import EvaluationStatus, Level

from ..party import PartyFailure
from ..tolerance import derive
from ._base import Context

_BOTH = (Level.QUICK, Level.FULL)


class Smoke:
    """One call: does it run, and is shape, dtype and value right."""

    name = "smoke"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        course, candidate = context.course, context.candidate
        course.inputs.fill(0)
        expected = context.bench.expect(course, 0)
        # A first call may compile (torch.compile, Triton).
        patience = candidate.call_timeout_s
        candidate.call_timeout_s += context.settings.build_timeout_s
        candidate.call(0)
        candidate.call_timeout_s = patience
        got = candidate.fetch(0)
        context.judge.check(got, expected, course.bounds, "on the first call")
        if candidate.aliases(0) and not context.bench.eager.aliases(0):
            raise PartyFailure(
                EvaluationStatus.CHEATING,
                "its output shares memory with an input where the reference's does not",
            )
        return "one call was right"


class RandomInputs:
    """Fresh inputs over several seeds, with bounds from the reference's own error on each."""

    name = "random"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        bench, course, candidate = context.bench, context.course, context.candidate
        for number in range(context.settings.random_seeds):
            slot = number % course.inputs.slots
            course.inputs.fill(slot)
            expected = bench.expect(course, slot)
            candidate.call(slot)
            got = candidate.fetch(slot)
            context.judge.check(got, expected, course.bounds, "on fresh random inputs")
        return f"{context.settings.random_seeds} fresh draws were right"


def _some_nan(tensor: torch.Tensor) -> torch.Tensor:
    """NaN in one element of every thousand, and in at least one."""
    changed = tensor.clone()
    changed.reshape(-1)[:: max(1, min(1009, tensor.numel() - 1))] = math.nan
    return changed


_VARIANTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "inputs 64 times as large": lambda t: t * 64,
    "inputs 64 times as small": lambda t: t / 64,
    "zeros": torch.zeros_like,
    "equal values": lambda t: torch.full_like(t, 0.5),
    "mixed magnitudes": lambda t: t * torch.where(torch.rand(t.shape) < 0.1, 32.0, 0.25).to(t.dtype),
    "shifted by 30": lambda t: t + 30,
    "some NaN": _some_nan,
}
_ILL_CONDITIONED = 1e-2


class Stability:
    """Large, small, mixed, equal and zero inputs, wherever the reference itself is well defined there."""

    name = "stability"
    levels: tuple[Level, ...] = (Level.FULL,)

    def run(self, context: Context) -> str:
        course = context.course
        done: list[str] = []
        skipped: list[str] = []
        if all(not t.is_floating_point() for t in course.inputs.tensors(0)):
            return "no floating-point inputs"
        for name, change in _VARIANTS.items():
            course.inputs.fill(0)
            course.inputs.transform(0, change)
            (done if self._try(context, name) else skipped).append(name)
        text = f"right for: {', '.join(done) or 'none'}"
        return text + (f"; the reference itself is not exact for: {', '.join(skipped)}" if skipped else "")

    def _try(self, context: Context, name: str) -> bool:
        bench, course, candidate = context.bench, context.course, context.candidate
        expected = bench.expect(course, 0)
        exact = bench.exact(course, 0)
        if exact is None:
            return False
        bounds = []
        for ours, better, usual in zip(expected, exact, course.bounds, strict=True):
            if not isinstance(ours.value, torch.Tensor) or not ours.value.is_floating_point():
                bounds.append(usual)
                continue
            bound = derive(ours.value, better.value, context.definition.tolerance, course.reduction)
            defined = torch.equal(torch.isfinite(ours.value), torch.isfinite(better.value))
            defined &= name == "some NaN" or bool(torch.isfinite(ours.value).all())
            if not defined or not math.isfinite(bound.relative) or bound.reference_error > _ILL_CONDITIONED:
                return False
            bounds.append(bound)
        candidate.call(0)
        got = candidate.fetch(0)
        context.judge.check(got, expected, bounds, f"with {name}")
        return True

"""Fresh random inputs."""

from __future__ import annotations

from .._base import BOTH_LEVELS, Check, CheckContext, When


class RandomInputs(Check):
    """Compares outputs for fresh inputs from several seeds, with bounds from the reference's own error."""

    name = "random"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = "wrong values on fresh inputs from several seeds"

    def run(self, context: CheckContext) -> str:
        baselines, prepared, candidate = context.baselines, context.prepared, context.candidate
        for number in range(context.settings.random_seeds):
            slot = number % prepared.inputs.slots
            prepared.inputs.fill(slot)
            expected = baselines.expect(prepared, slot)
            candidate.call(slot)
            context.compare(slot, expected, "on fresh random inputs")
        return f"{context.settings.random_seeds} fresh draws were right"

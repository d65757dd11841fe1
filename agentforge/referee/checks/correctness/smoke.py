"""The first call."""

from __future__ import annotations

from .._base import ALL_LEVELS, Check, CheckContext, When
from .probes import refuse_aliases


class Smoke(Check):
    """Calls the candidate once and compares the whole output."""

    name = "smoke"
    levels = ALL_LEVELS
    when = When.EXAMINATION
    catches = "a failing first call, a wrong shape, dtype or value, an output that is a view of an input"
    every_group = True

    def run(self, context: CheckContext) -> str:
        prepared, candidate = context.prepared, context.candidate
        prepared.inputs.fill(0)
        expected = context.baselines.expect(prepared, 0)
        # A first call may compile (torch.compile, Triton).
        usual_timeout = candidate.call_timeout_s
        candidate.call_timeout_s += context.settings.build_timeout_s
        candidate.call(0)
        candidate.call_timeout_s = usual_timeout
        context.compare(0, expected, "on the first call")
        refuse_aliases(context)
        return "one call was right"

"""Inputs of other floating-point types."""

from __future__ import annotations

from agentforge.referee.baselines.prepared import laid_out
from agentforge.referee.inputs.transforms import UP_TO_1024
from agentforge.referee.workers.memory.shared_memory import DTYPES

from .._base import BOTH_LEVELS, Check, CheckContext, When
from .variants import VariantComparison


class DTypes(Check):
    """Compares outputs for inputs of the types in `Definition.dtypes`, if the reference accepts them."""

    name = "types"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = (
        "wrong answers, or a refusal, for the other types that the definition lists; with usual inputs, and "
        "with values up to 1024"
    )

    def run(self, context: CheckContext) -> str:
        wanted = context.definition.dtypes
        if not wanted:
            return "the definition asks for no other types"
        context.prepared.inputs.fill(0)
        inputs = context.prepared.inputs.copies(0)
        with VariantComparison(context, may_refuse=False) as comparison:
            for dtype in wanted:
                content = [t.to(DTYPES[dtype.value]) if t.is_floating_point() else t for t in inputs]
                variant = laid_out(context.prepared, content)
                comparison.compare(variant, dtype.value, f"with {dtype.value} inputs")
                variant = laid_out(context.prepared, content)
                UP_TO_1024.apply(variant.inputs.tensors(0))
                name = f"large {dtype.value}"
                comparison.compare(variant, name, f"with {dtype.value} {UP_TO_1024.name}", content=UP_TO_1024)
        return comparison.summary()

"""The same operator on inputs with other layouts and sizes, and with other numbers."""

from __future__ import annotations

from agentforge.referee.baselines.prepared import guarded, laid_out
from agentforge.referee.inputs.layouts import became_one, changed, changes, other_numbers

from .._base import FULL_LEVEL, Check, CheckContext, When
from .variants import VariantComparison


class Layouts(Check):
    """Tries variants that the reference accepts. A candidate may refuse one by raising; it may not be
    wrong."""

    name = "variants"
    levels = FULL_LEVEL
    when = When.EXAMINATION
    catches = (
        "wrong answers and crashes with other strides, in slices, with 0, 1, 7, one fewer and one more rows, "
        "1 and a prime number of columns, other numbers as arguments, and inputs between inaccessible pages; "
        "raising is allowed"
    )

    def run(self, context: CheckContext) -> str:
        prepared = context.prepared
        prepared.inputs.fill(0)
        tensors = prepared.inputs.copies(0)
        with VariantComparison(context, may_refuse=True) as comparison:
            for name, change in changes(tensors).items():
                content = changed(tensors, change)
                if content is not None:
                    variant, broadcast = laid_out(prepared, content), became_one(tensors, content)
                    how = f"with {name} (as the reference accepts)"
                    comparison.compare(variant, name, how, broadcast)
            comparison.compare(
                laid_out(prepared, tensors, shifted=True),
                "slices",
                "with inputs that begin anywhere in memory, as slices do",
            )
            for name, encoded in other_numbers(prepared.inputs.arguments.encoded):
                comparison.compare(
                    laid_out(prepared, tensors, encoded), name, f"with {name} (as the reference accepts)"
                )
            how = "with forbidden pages around its inputs (as the reference accepts)"
            comparison.compare(guarded(prepared, tensors), "forbidden pages", how)
        return comparison.summary()

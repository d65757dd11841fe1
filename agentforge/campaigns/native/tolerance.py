"""SOL-ExecBench's own criterion, with the defaults and the comparison of its `core/` at 8d2237d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentforge.schema import FrozenModel

if TYPE_CHECKING:
    from torch import Tensor

CRITERION = "the suite's own tolerance"


class SuiteTolerance(FrozenModel, extra="ignore"):
    """The tolerance of one workload."""

    max_atol: float = 1e-2
    max_rtol: float = 1e-2
    """An element matches if its error is at most `max_atol + max_rtol * |reference|`."""
    required_matched_ratio: float = 0.99
    """Least share of an output's elements that match."""
    max_error_cap: float | None = None
    """Most absolute error of any element."""
    allow_negative_inf: bool = False
    """-inf in both is equal; any other infinity, and NaN, is wrong."""

    def judge(self, outputs: Sequence[Tensor], references: Sequence[Tensor]) -> tuple[bool, str]:
        """Whether all outputs are right, and in words why not, or how far the last one is."""
        right, words = len(outputs) == len(references), "another number of outputs"
        for output, reference in zip(outputs, references, strict=False):
            right, words = self._judge(output, reference) if right else (right, words)
        return right, f"by {CRITERION} {'right' if right else 'wrong'}: {words}"

    def _judge(self, output: Tensor, reference: Tensor) -> tuple[bool, str]:
        if (output.shape, output.dtype) != (reference.shape, reference.dtype):
            return False, "another shape or type"
        x, y = output.float(), reference.float()
        compared = ~((x == y) & (y == -float("inf")) & self.allow_negative_inf)
        x, y = x[compared], y[compared]
        if not bool(x.isfinite().all() & y.isfinite().all()):
            return False, "it is infinite or NaN somewhere"
        if bool(y.any()) and not bool(x.any()):
            return False, "it is 0 everywhere"
        if not x.numel():
            return True, "it has no element to compare"
        errors = (x - y).abs()
        exceeding = int((errors > self.max_atol + self.max_rtol * y.abs()).sum())
        share, largest, cap = 1.0 - exceeding / errors.numel(), float(errors.max()), self.max_error_cap
        words = f"{share:.4%} of the elements match, {self.required_matched_ratio:.4%} must"
        words += f"; the largest error is {largest:.3g}" + ("" if cap is None else f", at most {cap:g}")
        return share >= self.required_matched_ratio and (cap is None or largest <= cap), words

"""The same inputs twice, and outputs that stay alive."""

from __future__ import annotations

import hashlib

import torch

from agentforge.referee.comparison.tolerance import settled
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import EvaluationStatus

from .._base import BOTH_LEVELS, Check, CheckContext, When

_KEPT = ((64 << 20, 3), (1 << 20, 6), (0, 24))
"""Number of outputs kept alive, by output size in bytes; detects ring buffers up to that length."""


class Determinism(Check):
    """Calls with the same inputs twice, with other calls between them; all outputs stay alive."""

    name = "determinism"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = (
        "answers that change from call to call, and static output buffers: up to 24 outputs stay alive (3 if "
        "they are large), and the oldest must not change"
    )

    def run(self, context: CheckContext) -> str:
        prepared, candidate, baselines = context.prepared, context.candidate, context.baselines
        prepared.inputs.fill(0)
        prepared.inputs.fill(1)
        for slot in (1, 0):
            expected = baselines.expect(prepared, slot)
            candidate.call(slot)
            first, harder = candidate.fetch(slot), context.harder(slot, expected)
            context.comparator.check(first, expected, prepared.bounds, "on fresh random inputs", harder.all)
        # Keep only its digest: outputs may be as large as memory allows.
        digest = _digest(first)
        del first
        self._keep_alive(context, digest)
        candidate.call(0)
        again = candidate.fetch(0)
        if _digest(again) == digest:
            return "bitwise the same on the same inputs"
        for a, b, allowed in zip(again, expected, harder.all(), strict=True):
            if isinstance(b.value, torch.Tensor) and (
                not isinstance(a.value, torch.Tensor)
                or a.value.shape != b.value.shape
                or not allowed.measure(a.value, settled(a.value, b.value, b.alternative, b.latitude)).within(
                    allowed.bound
                )
            ):
                raise WorkerFailure(
                    EvaluationStatus.NONDETERMINISTIC,
                    "its answer to the same inputs was right once and wrong the next time",
                )
        context.findings.notes["output"] = "its outputs differ in the last bits from call to call"
        return "differs in the last bits on the same inputs"

    def _keep_alive(self, context: CheckContext, digest: bytes) -> None:
        """Make more calls and keep all outputs alive. The first output must not change."""
        candidate, limit = context.candidate, context.prepared.outputs_bytes
        most = next(count for nbytes, count in _KEPT if limit >= nbytes)
        for number in range(1, most):
            candidate.call(1, keep=number)
        if _digest(candidate.fetch(0, ago=most - 1)) != digest:
            raise WorkerFailure(
                EvaluationStatus.CHEATING,
                "a later call overwrites the output of an earlier one: static buffers",
            )


def _digest(leaves: list[Leaf]) -> bytes:
    """Hash of an output's form and bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in leaves:
        value = leaf.value
        if isinstance(value, torch.Tensor):
            digest.update(repr((tuple(value.shape), value.dtype)).encode())
            digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy())
        else:
            digest.update(repr(value).encode())
    return digest.digest()

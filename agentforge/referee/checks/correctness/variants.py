"""Compare answers to variants of a workload: other layouts, sizes or types of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from types import TracebackType
from typing import Self

import torch

from agentforge.referee.baselines.answers import right_answer
from agentforge.referee.baselines.nearby import NotDefined, bounds_nearby
from agentforge.referee.baselines.prepared import PreparedWorkload
from agentforge.referee.comparison.allowance import Allowance
from agentforge.referee.comparison.tolerance import Bound
from agentforge.referee.inputs.transforms import Content
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf

from .._base import CheckContext, raised


def allowed_nearby(
    context: CheckContext,
    prepared: PreparedWorkload,
    answer: Sequence[Leaf],
    bounds: Sequence[Bound],
    *,
    every: bool,
) -> list[Allowance]:
    """What an answer to slot 0 is allowed beyond its bounds: see `bounds_nearby`."""
    wider = bounds_nearby(context.baselines, prepared, 0, bounds, every=every)
    return [Allowance.of(leaf, bound) for leaf, bound in zip(answer, wider, strict=True)]


class VariantComparison:
    """Gives reference and candidate one variant after the other; as a context manager it restores the
    workload.

    Args:
        may_refuse: the candidate may raise instead of answering.
    """

    def __init__(self, context: CheckContext, *, may_refuse: bool) -> None:
        self._context, self._may_refuse = context, may_refuse
        self._outcomes: dict[str, list[str]] = {"right": [], "refused": []}

    def __enter__(self) -> Self:
        self._context.baselines.disturbed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:  # else the next `enter` gives it to the baselines, and the candidate ends
            prepared = self._context.prepared
            self._context.baselines.enter(prepared)
            self._context.candidate.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)

    def compare(
        self,
        variant: PreparedWorkload,
        name: str,
        how: str,
        broadcast: frozenset[int] = frozenset(),
        content: Content | None = None,
    ) -> None:
        """Compare the answers, and close the variant's inputs.

        Args:
            broadcast: sizes that became 1.
            content: what the inputs were changed to; the reference must be well defined for it.

        Raises:
            WorkerFailure: the answer is wrong, or the candidate failed.
        """
        try:
            self._outcomes.setdefault(self._outcome(variant, how, broadcast, content), []).append(name)
        finally:
            variant.inputs.close()

    def summary(self) -> str:
        """Each outcome with the names of its variants."""
        return "; ".join(f"{key}: {', '.join(names)}" for key, names in self._outcomes.items() if names)

    def _outcome(
        self, variant: PreparedWorkload, how: str, broadcast: frozenset[int], content: Content | None
    ) -> str:
        baselines, candidate = self._context.baselines, self._context.candidate
        try:
            baselines.eager.configure(variant.body(), variant.inputs, variant.outputs_bytes)
            given = self._given(variant, content)
        except WorkerFailure:
            if not baselines.eager.worker.running:
                raise
            given = None
        if given is None:
            return "not defined by the reference"
        expected, bounds = given
        if any(isinstance(x.value, torch.Tensor) and broadcast & {*x.value.shape} for x in expected):
            return "broadcast by the reference"
        candidate.configure(variant.body(), variant.inputs, variant.outputs_bytes)
        try:
            candidate.call(0)
        except WorkerFailure as failure:
            if self._may_refuse and raised(candidate, failure):
                return "refused"
            raise
        wider = cache(partial(allowed_nearby, self._context, variant, expected, bounds, every=False))
        try:
            self._context.comparator.check(candidate.fetch(0), expected, bounds, how, wider)
        except NotDefined:
            return "not defined by the reference"
        return "right"

    def _given(
        self, variant: PreparedWorkload, content: Content | None
    ) -> tuple[Sequence[Leaf], Sequence[Bound]] | None:
        """The reference's answer and its bounds; None if the answer is not well defined for the content."""
        baselines = self._context.baselines
        if content is None:
            expected = baselines.expect(variant, 0)
            return expected, baselines.error_bounds(variant, 0)
        answer = right_answer(baselines, variant, content)
        return None if answer is None else (answer.outputs, answer.bounds)

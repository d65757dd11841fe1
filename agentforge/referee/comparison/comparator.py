"""Compares a candidate's outputs with the reference's and remembers the worst."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from agentforge.schema import Correctness, EvaluationStatus

from ..workers.failures import WorkerFailure
from ..workers.memory.shared_memory import dtype_name
from ..workers.pytree import Leaf
from .allowance import Allowance
from .mismatch import describe_mismatch
from .tolerance import Bound, Distance, explain, measure, settled


def accepts(got: Sequence[Leaf], expected: Sequence[Leaf], bounds: Sequence[Bound]) -> bool:
    """Whether every tensor and scalar of an answer is within its bound."""
    if [x.path for x in got] != [x.path for x in expected]:
        return False
    for ours, theirs, bound in zip(got, expected, bounds, strict=True):
        if not isinstance(theirs.value, torch.Tensor):
            if ours.value != theirs.value:
                return False
        elif (
            not isinstance(ours.value, torch.Tensor)
            or ours.value.shape != theirs.value.shape
            or ours.value.dtype != theirs.value.dtype
            or not measure(ours.value, settled(ours.value, theirs.value, theirs.alternative), bound).within(
                bound
            )
        ):
            return False
    return True


class OutputComparator:
    """Compares a candidate's outputs and keeps the worst error; raises `WorkerFailure` at the first wrong
    one."""

    def __init__(self) -> None:
        self.calls = 0
        self._absolute = 0.0
        self._severity = -1.0
        self._worst: tuple[Distance, Bound, str] | None = None
        self._mismatch: tuple[str, ...] = ()

    def check(
        self,
        got: Sequence[Leaf],
        expected: Sequence[Leaf],
        bounds: Sequence[Bound],
        situation: str,
        wider: Callable[[], Sequence[Allowance]] | None = None,
    ) -> None:
        """Compare a whole output.

        Args:
            wider: gives the allowance if an output is outside of its own bound.

        Raises:
            WorkerFailure: INCORRECT_SHAPE, INCORRECT_DTYPE or INCORRECT_NUMERICAL.
        """
        self.calls += 1
        if [x.path for x in got] != [x.path for x in expected]:
            raise WorkerFailure(
                EvaluationStatus.INCORRECT_SHAPE,
                f"{situation} it returns {_names(got)}, and the reference returns {_names(expected)}",
            )
        for n, (ours, theirs, bound) in enumerate(zip(got, expected, bounds, strict=True)):
            if isinstance(theirs.value, torch.Tensor):
                self._check_form(ours, theirs.value, situation)
                others = [partial(Allowance.of, theirs, bound)]
                others += [] if wider is None else [partial(_nth, wider, n)]
                self.check_values(ours.value, _expected(ours, theirs), bound, ours.path, situation, others)
            elif type(ours.value) is not type(theirs.value) or ours.value != theirs.value:
                raise WorkerFailure(
                    EvaluationStatus.INCORRECT_NUMERICAL,
                    f"{situation} {ours.path} is {_shown(ours.value)}, expected {_shown(theirs.value)}",
                )

    def _check_form(self, ours: Leaf, theirs: torch.Tensor, situation: str) -> None:
        if not isinstance(ours.value, torch.Tensor) or ours.value.shape != theirs.shape:
            raise WorkerFailure(
                EvaluationStatus.INCORRECT_SHAPE,
                f"{situation} {ours.path} is {_shown(ours.value)}, expected {_shown(theirs)}",
            )
        if ours.value.dtype != theirs.dtype:
            raise WorkerFailure(
                EvaluationStatus.INCORRECT_DTYPE,
                f"{situation} {ours.path} is {dtype_name(ours.value.dtype)}, "
                f"expected {dtype_name(theirs.dtype)}",
            )

    def check_values(
        self,
        got: torch.Tensor,
        expected: torch.Tensor,
        bound: Bound,
        path: str,
        situation: str,
        wider: Sequence[Callable[[], Allowance]] = (),
    ) -> None:
        """Compare the values of a whole tensor.

        Args:
            wider: gives the allowances if it is outside of its bound, one after the other.

        Raises:
            WorkerFailure: INCORRECT_NUMERICAL.
        """
        distance = measure(got, expected, bound)
        for allowed in wider:
            if distance.within(bound):
                break
            allowance = allowed()
            bound, distance = allowance.bound, allowance.measure(got, expected)
        where = explain(path, tuple(got.shape), distance, got.dtype)
        self._remember(distance, bound, where)
        if not distance.within(bound):
            self._mismatch = describe_mismatch(path, got, expected, bound)
            raise _wrong(situation, where, distance, bound)

    def check_part(
        self,
        got: torch.Tensor,
        expected: torch.Tensor,
        bound: Bound,
        scale: float,
        where: tuple[str, int],
        situation: str,
        wider: Callable[[], Allowance] | None = None,
    ) -> None:
        """Compare a flat range of a tensor by element; a part's own norm may be small by chance.

        Args:
            where: path of the output and flat index that the part begins at.
            wider: gives the allowance if the part is outside of its bound.

        Raises:
            WorkerFailure: INCORRECT_NUMERICAL.
        """
        if got.shape != expected.shape or got.dtype != expected.dtype:
            raise WorkerFailure(
                EvaluationStatus.INCORRECT_SHAPE,
                f"{situation} {where[0]} has another shape or type than before",
            )
        distance = measure(got, expected, bound, scale)
        if wider is not None and distance.excess > 1:
            allowance = wider()
            bound, distance = allowance.bound, allowance.measure(got, expected, where[1])
        if distance.excess > 1:
            at = f"{where[0]} (flat index {where[1] + distance.index})"
            raise _wrong(situation, explain(at, (), distance, got.dtype), distance, bound)

    def _remember(self, distance: Distance, bound: Bound, where: str) -> None:
        severity = max(distance.relative / bound.relative if bound.relative else 0.0, distance.excess)
        self._absolute = max(self._absolute, distance.absolute)
        if severity > self._severity:
            self._severity = severity
            self._worst = (distance, bound, where)

    def correctness(self) -> Correctness | None:
        """The worst output so far; None if nothing was compared."""
        if self._worst is None:
            return None
        distance, bound, where = self._worst
        return Correctness(
            max_absolute_error=self._absolute,
            max_relative_error=distance.relative,
            tolerance=bound.relative,
            reference_error=bound.reference_error,
            checked_calls=self.calls,
            worst=where,
            mismatch=self._mismatch,
        )


def _nth(allowances: Callable[[], Sequence[Allowance]], n: int) -> Allowance:
    return allowances()[n]


def _expected(ours: Leaf, theirs: Leaf) -> torch.Tensor:
    return settled(ours.value, theirs.value, theirs.alternative, theirs.latitude)


def _wrong(situation: str, where: str, distance: Distance, bound: Bound) -> WorkerFailure:
    return WorkerFailure(
        EvaluationStatus.INCORRECT_NUMERICAL,
        f"{situation} {where}; relative error {distance.relative:.3g} (allowed {bound.relative:.3g}), "
        f"worst element {distance.excess:.3g} times its allowance",
    )


def _shown(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {list(value.shape)}"
    return repr(value)[:80]


def _names(leaves: Sequence[Leaf]) -> str:
    return ", ".join(x.path for x in leaves[:6]) or "nothing"

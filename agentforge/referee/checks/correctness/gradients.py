"""The backward pass."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from agentforge.referee.comparison.tolerance import (
    Bound,
    all_finite,
    derive,
    measure,
    root_mean_square,
    widest,
)
from agentforge.referee.inputs.discrete import repeated
from agentforge.referee.inputs.transforms import MIXED, Content
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf
from agentforge.referee.workers.runner import Way
from agentforge.schema import EvaluationStatus, TargetError

from .._base import BOTH_LEVELS, Check, CheckContext, When, raised

_ANY = Bound(math.inf, 1.0, 0.0, 0.0)
_NOISE = 1e-2
"""Relative error of the reference's gradient against float64 above which that gradient is noise."""
_VANISHES = 2.0**-22
"""Share of the largest gradient below which a gradient is noise too, even if both are exactly zero by chance:
about the rounding of float32 in what was summed up."""


@dataclass(frozen=True)
class _Case:
    """One backward pass through the answer to a draw.

    A reference need not have those with a name, and a candidate may refuse those of an unusual way.
    """

    name: str = ""
    """Reads after "in the backward pass"."""
    way: Way = field(default_factory=Way)
    content: Content | None = None
    another_call: bool = False
    """The model runs on other inputs before the backward pass."""


_AFTER_ANOTHER_CALL = _Case("after another call", another_call=True)
_WAYS = (
    _Case("from an expanded gradient", Way(arrives="expanded")),
    _Case("from a transposed gradient", Way(arrives="transposed")),
    _Case("that is the second through one answer", Way(twice=True)),
    _Case("with frozen parameters", Way(frozen=True)),
)
"""As `out.sum()`, `out.T @ w`, two losses, and training of other layers have it."""


class Gradients(Check):
    """Compares gradients of inputs and parameters with the reference's autograd, if the definition asks.

    The bounds come from the error of the reference's gradients against float64.
    """

    name = "gradients"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = (
        "wrong or missing gradients, if the definition is `differentiable`, with usual inputs, mixed "
        "magnitudes and repeated places, also after another call, from gradients that are expanded or "
        "transposed, in a second pass, and with frozen parameters; noise is skipped; and writes of the "
        "backward pass to the gradient that it gets, to inputs and to outputs"
    )

    def run(self, context: CheckContext) -> str:
        if not context.definition.differentiable:
            return "the definition asks for no backward pass"
        told, usual = _compare(context, _Case(), {})
        found = [f"right: {told}"]
        if context.prepared.state or not _compare(context, _AFTER_ANOTHER_CALL, {})[1]:
            _compare(context, _Case(), {})
        for case in _more(context):
            found.append(f"{case.name}: {_compare(context, case, usual)[0]}")
        return "; ".join(found)


def _more(context: CheckContext) -> list[_Case]:
    """Further cases; those of another way only if calls change nothing."""
    inputs = context.prepared.inputs
    inputs.fill(0)
    contents = [MIXED, *repeated(inputs.structures, inputs.tensors(0), context.prepared.places)]
    cases = [_Case(f"with {c.name}", content=inputs.fitted(c)) for c in contents]
    trained = bool(context.baselines.weights.trained)
    ways = [] if context.prepared.state else [case for case in _WAYS if trained or not case.way.frozen]
    return [*cases, *ways]


def _compare(context: CheckContext, case: _Case, usual: Mapping[str, Bound]) -> tuple[str, dict[str, Bound]]:
    """Compare the gradients of one draw, where the reference is well defined.

    Args:
        usual: bounds of a usual draw, by path; those of other cases are at least as wide.

    Returns:
        Words of the outcome, and the bounds of all gradients by path; no bounds if the reference has none.
    """
    _fill(context, case)
    between = 1 if case.another_call else None
    body = {"op": "gradients", "slot": 0, "seed": secrets.randbits(60), "between": between}
    body |= {"way": asdict(case.way)}
    try:
        expected, exact, bounds, allowed = _gradients(context, body)
    except TargetError:
        if not context.baselines.eager.worker.running or not case.name:
            raise
        return "not defined by the reference", {}
    bounds = [widest([b, usual.get(x.path, b)]) for x, b in zip(expected, bounds, strict=True)]
    by_path = {x.path: b for x, b in zip(expected, bounds, strict=True)}
    # The gradient of a bias before a normalisation is noise: no value is wrong.
    sizes = [root_mean_square(x.value) for x in exact]
    least = _VANISHES * max(sizes, default=0.0)
    defined = [
        (x, bound)
        for x, better, bound, size in zip(expected, exact, bounds, sizes, strict=True)
        if size >= least
        and measure(x.value, better.value, _ANY).relative < _NOISE
        and (case.content is None or (all_finite(x.value) and all_finite(better.value)))
    ]
    if case.name and not defined:
        return "not defined by the reference", by_path
    how = f"in the backward pass {case.name}".strip()
    try:
        reply = context.candidate.request(body)
    except WorkerFailure as failure:
        if case.way == Way() or not raised(context.candidate, failure):
            raise replace(failure, reason=f"{how}: {failure.reason}") from failure
        return "refused", by_path
    _judge_writes(reply.get("written"), allowed)
    got = {x.path: x for x in context.candidate.leaves(reply)}
    missing = [x.path for x in expected if x.path not in got]
    if missing:
        raise WorkerFailure(
            EvaluationStatus.INCORRECT_SHAPE,
            f"its backward pass lacks {', '.join(missing[:6])}, which the reference's has",
        )
    paths = [x.path for x, _ in defined]
    context.comparator.check(
        [got[path] for path in paths], [x for x, _ in defined], [b for _, b in defined], how
    )
    return ", ".join(paths[:6]), by_path


def _fill(context: CheckContext, case: _Case) -> None:
    """Give slot 0 the content of a case; with another call, slot 1 too."""
    inputs = context.prepared.inputs
    inputs.fill(0)
    if case.content is not None:
        case.content.apply(inputs.tensors(0))
    if case.another_call:
        inputs.fill(1)
        for client in (context.baselines.eager, context.candidate):
            client.call(1)  # this gives the slot its content


def _judge_writes(written: object, allowed: list[str]) -> None:
    """A gradient that a backward pass gets also goes to what else depends on its output.

    Args:
        written: what the candidate's backward pass writes to, as its process says.
        allowed: what the reference's does.

    Raises:
        WorkerFailure: it writes to more than the reference's.
    """
    if not isinstance(written, list) or not all(type(path) is str for path in written):
        raise WorkerFailure(EvaluationStatus.CHEATING, "it answered with a false list of what it writes to")
    more = [path[:120] for path in written if path not in allowed]
    if more:
        raise WorkerFailure(
            EvaluationStatus.CHEATING, f"its backward pass writes to {more[0]}, and the reference's does not"
        )


def _gradients(
    context: CheckContext, body: dict[str, Any]
) -> tuple[list[Leaf], list[Leaf], list[Bound], list[str]]:
    """The reference's gradients for slot 0, the same in float64, bounds from their error, and writes.

    Args:
        body: the request for them.

    Raises:
        TargetError: it has none.
    """
    eager = context.baselines.eager
    try:
        reply = eager.request(body)
        found = eager.leaves(reply)
        exact = eager.leaves(eager.request({**body, "op": "exact_gradients"}))
    except WorkerFailure as failure:
        raise TargetError(
            f"{context.definition.name} asks for gradients, and its reference has none "
            f"({failure.reason.splitlines()[0][:200]}); fix it, or ask for the forward pass only"
        ) from failure
    how = context.definition.tolerance, context.prepared.reduction
    bounds = [derive(a.value, b.value, *how) for a, b in zip(found, exact, strict=True)]
    return found, exact, bounds, reply["written"]

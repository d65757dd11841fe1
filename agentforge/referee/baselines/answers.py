"""The reference's answer to transformed inputs, if the reference is well defined for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from ..comparison.exactness import Exactness
from ..comparison.tolerance import kinds
from ..inputs.transforms import Answer, Content
from ..workers.failures import WorkerFailure, trusted
from ..workers.pytree import Leaf
from .baselines import Baselines
from .nearby import exact_enough
from .prepared import PreparedWorkload

_GROSS, _WORST_OF_MANY = 1e-3, 4.0
"""Relative error that shows in an unusual answer if nothing more exact than the reference exists; the worst
element's is as many times as large."""
_INSTEAD_OF_NAN = (0.0, 1.0, 4.0, -4.0)
"""What NaN is replaced with; the last two in units of the largest of an input's other values."""


def right_answer(baselines: Baselines, prepared: PreparedWorkload, content: Content) -> Answer | None:
    """The reference's answer to the content of slot 0; None if it is not well defined there.

    Raises:
        HarnessError: the reference's process is gone.
    """
    if content.ties and prepared.open_order and any(form.integer for form in prepared.outputs):
        return None
    usually_exact, notes = prepared.exact_ok, len(baselines.notes)
    try:
        outputs = baselines.expect(prepared, 0)
        found = baselines.exactness(prepared, 0)
        if found is None:
            found = baselines.conditioning(prepared, 0)
            if content.takes == "floats":
                found = [_rough(x) for x in found]
        if prepared.open_order and _order_decides(baselines, prepared, found):
            return None
    except WorkerFailure as failure:
        if not baselines.eager.worker.running:
            raise trusted(failure, f"the reference died with {content.name}") from failure
        return None
    finally:
        if usually_exact and not prepared.exact_ok:  # with this content alone
            prepared.exact_ok = True
            del baselines.notes[notes:]
    if not all(_defined(x, content) for x in found):
        return None
    if content.defined == "nan":
        outputs = _with_masked(outputs, baselines, prepared)
    return Answer(outputs, [x.bound for x in found], [x.equal for x in found])


def _with_masked(outputs: list[Leaf], baselines: Baselines, prepared: PreparedWorkload) -> list[Leaf]:
    """Outputs whose elements may also be finite if no value in NaN's place changes them to the last bit.

    A reference that multiplies what its mask hides by zero gives NaN; a kernel that skips it is right too.
    """
    floats = [n for n, x in enumerate(outputs) if isinstance(x.value, torch.Tensor) and _has_nan(x.value)]
    if not floats:
        return outputs
    contents, tensors = prepared.inputs.copies(0), prepared.inputs.tensors(0)
    try:
        answers = [_instead(value, contents, tensors, baselines, prepared) for value in _INSTEAD_OF_NAN]
    except WorkerFailure:
        if not baselines.eager.worker.running:
            raise
        return outputs
    finally:
        for tensor, content in zip(tensors, contents, strict=True):
            tensor.copy_(content)
    return [
        _either(x, [answer[n].value for answer in answers]) if n in floats else x
        for n, x in enumerate(outputs)
    ]


def _instead(
    value: float,
    contents: Sequence[torch.Tensor],
    tensors: Sequence[torch.Tensor],
    baselines: Baselines,
    prepared: PreparedWorkload,
) -> list[Leaf]:
    """The reference's answer if another value takes the place of each NaN."""
    for content, tensor in zip(contents, tensors, strict=True):
        if content.is_floating_point() and content.numel() and _has_nan(content):
            wide = content.double()
            largest = max(1.0, float(wide.nan_to_num(0.0, 0.0, 0.0).abs().max()))
            tensor.copy_(wide.nan_to_num(value * largest if abs(value) > 1 else value, math.inf, -math.inf))
    return baselines.expect(prepared, 0)


def _either(leaf: Leaf, answers: Sequence[object]) -> Leaf:
    """The leaf, with the answers as its alternative at each element where all of them are the same."""
    first, *others = [x for x in answers if isinstance(x, torch.Tensor) and x.shape == leaf.value.shape]
    if len(others) < len(answers) - 1:
        return leaf
    same = kinds(first) == 0
    for other in others:
        same &= first == other
    usual = leaf.value if leaf.alternative is None else leaf.alternative
    return replace(leaf, alternative=torch.where(same, first, usual))


def _has_nan(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and bool((kinds(tensor) == 1).any())


def _rough(found: Exactness) -> Exactness:
    """For a reference that float64 says nothing of: it shows gross errors, and none of its own rounding."""
    bound = found.bound
    if not bound.relative:
        return found
    wider = replace(
        bound, relative=max(bound.relative, _GROSS), element=max(bound.element, _WORST_OF_MANY * _GROSS)
    )
    return replace(found, bound=wider, equal=False)


def _order_decides(baselines: Baselines, prepared: PreparedWorkload, found: Sequence[Exactness]) -> bool:
    """Whether an output that is no integer depends on an order among equal values that torch leaves open.

    Contents that are not for ties have some too: sums with a large number are rounded to few values.
    """
    others = baselines.held_against(prepared, 0, "reordered")
    return any(
        not form.integer and (not other.agrees or other.bound.reference_error > own.bound.relative)
        for form, own, other in zip(prepared.outputs, found, others, strict=True)
    )


def _defined(found: Exactness, content: Content) -> bool:
    """Whether the reference's answer is determined by its inputs, and not by rounding as an argmax of equal
    values is."""
    if content.defined == "finite" and not found.finite:
        return False
    if content.defined == "infinite" and found.nan:
        return False
    return exact_enough(found)

"""Can the task tell right from wrong? Mutants of the reference's output that must not pass.

A task whose output is the same whatever goes in, or is zero, or is its own input, cannot tell a kernel from
a constant or a copy: nothing that passes there proves anything. (KernelBench's level 2 has such tasks: a
maximum over one element minus its mean.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .leaves import Leaf
from .tolerance import Bound, measure

Mutant = Callable[[Leaf], torch.Tensor | None]


def weaknesses(
    outputs: Sequence[Leaf], others: Sequence[Leaf], inputs: Sequence[torch.Tensor], bounds: Sequence[Bound]
) -> list[str]:
    """Wrong answers that the comparison would accept, one sentence each.

    Args:
        outputs: of the reference on one draw.
        others: of the reference on another draw.
        inputs: of the first draw.
        bounds: one for each leaf.
    """
    stale = {leaf.path: leaf.value for leaf in others}
    mutants: dict[str, Mutant] = {
        "zeros": lambda leaf: torch.zeros_like(leaf.value),
        "its own mean": _mean,
        "one wrong row": _one_row,
        "the answer to other inputs": lambda leaf: _fitting(stale.get(leaf.path), leaf),
    }
    for number, tensor in enumerate(inputs):
        mutants[f"a copy of input {number}"] = lambda leaf, tensor=tensor: _fitting(tensor, leaf)  # type: ignore[misc]
    return [
        f"the task cannot tell {name} from the right answer: nothing that passes it is proven"
        for name, mutant in mutants.items()
        if _passes(mutant, outputs, bounds)
    ]


def _passes(mutant: Mutant, outputs: Sequence[Leaf], bounds: Sequence[Bound]) -> bool:
    """Whether a mutant of every tensor is within its bound; at least one tensor must have been changed."""
    tried = False
    for leaf, bound in zip(outputs, bounds, strict=True):
        if not isinstance(leaf.value, torch.Tensor) or not leaf.value.numel():
            continue
        wrong = mutant(leaf)
        if wrong is None or not measure(wrong, leaf.value, bound).within(bound):
            return False
        tried = True
    return tried


def _mean(leaf: Leaf) -> torch.Tensor | None:
    if leaf.value.numel() < 2 or not leaf.value.is_floating_point():
        return None
    return torch.full_like(leaf.value, float(leaf.value.double().mean()))


def _one_row(leaf: Leaf) -> torch.Tensor | None:
    """The last row replaced by its neighbour, or by zeros where there is none."""
    if leaf.value.dim() == 0:
        return None
    wrong = leaf.value.clone()
    wrong[-1] = wrong[-2] if wrong.shape[0] > 1 else 0
    # Rows that are alike anyway (a broadcast) make no mutant.
    return None if torch.equal(wrong, leaf.value) else wrong


def _fitting(value: object, leaf: Leaf) -> torch.Tensor | None:
    if (
        isinstance(value, torch.Tensor)
        and value.shape == leaf.value.shape
        and value.dtype == leaf.value.dtype
    ):
        return value
    return None

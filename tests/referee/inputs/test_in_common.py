"""Contents for several inputs together: each shows what they have in common, and changes nothing else."""

from __future__ import annotations

import pytest
import torch

from agentforge.referee.inputs.in_common import in_common
from agentforge.referee.inputs.structure import structure_of


def changed(*tensors):
    """By name: all tensors with each content that there is for them."""
    found = {}
    for content in in_common([structure_of(t) for t in tensors], tensors):
        others = [t.clone() for t in tensors]
        content.apply(others)
        found[content.name] = others
    return found


def test_two_inputs_have_rows_in_common():
    x, y = torch.randn(40, 8), torch.randn(30, 8)
    first, second = changed(x, y)["rows of input 0 in input 1"]
    assert torch.equal(first, x)
    from_first = (second[:, None] == x).all(-1).any(1)
    own = (second == y).all(1)
    assert bool((from_first | own).all())
    assert bool(from_first.any())
    assert not changed(x, y.double())
    assert not changed(x, torch.randn(8))
    assert len([name for name in changed(x, y, y.clone()) if name.startswith("rows")]) == 2


@pytest.mark.parametrize("base", [256, 1 << 32, 10, 1000])
def test_a_carry_runs_through_all_digits(base):
    a, b = torch.randint(0, base, (64, 48)), torch.randint(0, base, (64, 48))
    (others,) = changed(a, b).values()
    assert torch.equal(others[0], a)
    sums, longest, run = others[0] + others[1], 0, torch.zeros(64, dtype=torch.int64)
    carry = torch.zeros(64, dtype=torch.int64)
    for n in range(48):
        carry = (sums[:, n] + carry) // base
        run = torch.where(carry > 0, run + 1, 0)
        longest = max(longest, int(run.max()))
    assert longest > 32
    assert int(others[1].min()) >= int(b.min()) and int(others[1].max()) <= int(b.max())


@pytest.mark.parametrize(
    "other",
    [
        torch.randint(0, 777, (64, 48)),
        torch.randint(5, 256, (64, 48)),
        torch.randint(0, 256, (64, 48)).sort().values,
        torch.randint(0, 256, (64, 48), dtype=torch.int32),
        torch.randint(0, 256, (48, 64)),
        torch.rand(64, 48),
    ],
)
def test_integers_of_another_kind_are_no_digits(other):
    digits = torch.randint(0, 256, (64, 48))
    assert not changed(digits, other)

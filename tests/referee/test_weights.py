"""Initial values that a kernel could ignore are varied, in the reference and in a solution alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from agentforge.referee.baselines.weights import varied_construction

from .judging import judge, problem


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.turn = nn.Parameter(torch.eye(8))
        self.signs = nn.Parameter(torch.ones(8) - 2 * (torch.arange(8) % 2))
        self.conv = nn.Conv1d(4, 4, 3)
        nn.init.dirac_(self.conv.weight)
        self.rotation = nn.Linear(8, 8, bias=False)
        nn.init.orthogonal_(self.rotation.weight)
        self.norm = nn.LayerNorm(8)


def built(seed):
    torch.manual_seed(seed)
    with varied_construction(seed):
        return Adapter().state_dict()


@pytest.mark.parametrize(
    "name",
    ["linear.weight", "linear.bias", "turn", "signs", "conv.weight", "rotation.weight", "norm.weight"],
)
def test_simple_values_are_varied_by_the_seed(name):
    plain, first, again, other = Adapter().state_dict(), built(3), built(3), built(4)
    assert torch.equal(first[name], again[name])
    assert not torch.equal(first[name], other[name])
    assert len(first[name].unique()) > 2
    if not name.startswith("rotation"):
        assert (first[name].abs() - plain[name].abs()).abs().max() <= 0.2


def test_masks_and_small_parameters_keep_their_values():
    mask, pair = torch.tril(torch.ones(8, 8)), torch.randn(2)
    with varied_construction(1):
        assert torch.equal(nn.Parameter(mask, requires_grad=False), mask)
        assert torch.equal(nn.Parameter(pair), pair)


def test_a_copy_of_varied_values_is_not_varied_again():
    with varied_construction(1):
        first = nn.Parameter(torch.eye(8))
        assert torch.equal(nn.Parameter(first.detach().t().contiguous()), first.t())


@pytest.mark.parametrize("size", [2, 3, 64])
@pytest.mark.parametrize("make", [nn.BatchNorm1d, nn.LayerNorm, lambda n: nn.GroupNorm(1, n), nn.RMSNorm])
def test_some_weights_of_norms_are_negative(make, size):
    for seed in range(4):
        with varied_construction(seed):
            norm = make(size)
            assert 1 <= int((norm.weight < 0).sum()) <= size / 2
            nn.init.constant_(norm.weight, 1.0)  # as many models initialise them again
            assert 1 <= int((norm.weight < 0).sum()) <= size / 2
            assert bool((norm.weight.abs() >= 0.9).all())
            assert getattr(norm, "running_var", None) is None or bool((norm.running_var > 0).all())
    assert bool((make(size).weight == 1).all())


def test_slopes_are_also_above_one_and_below_zero():
    with varied_construction(1):
        slopes = nn.PReLU(8).weight
    assert {int((slopes > 1).sum()), int((slopes < 0).sum())} == {2}
    single = []
    for seed in (1, 2):
        with varied_construction(seed):
            single.append(nn.PReLU().weight.item())
    assert max(single) > 1 and min(single) < 0


def test_no_other_value_changes_its_sign():
    """A reference may take the root or the logarithm of a parameter."""
    for seed in range(8):
        with varied_construction(seed):
            for value in (1.0, 0.05, -0.05, -1.0):
                assert bool((nn.Parameter(torch.full((99,), value)) * value > 0).all())
            assert bool((nn.Parameter(torch.zeros(99), requires_grad=False) > 0).all())
            assert nn.Parameter(torch.zeros(99)).min() < 0


def test_an_orthogonal_matrix_is_not_and_does_not_grow():
    with varied_construction(1):
        turn = nn.init.orthogonal_(torch.empty(256, 256))
    x = torch.randn(64, 256)
    assert bool(((x @ turn.T).norm(dim=1) < 0.95 * x.norm(dim=1)).all())
    assert torch.linalg.matrix_norm(turn, 2) < 1.05


def test_quantized_and_sparse_weights_come_from_the_seed(referee):
    quantized = "torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(32, 32)))"
    sparse = "self.register_buffer('mask', torch.randn(32, 32).relu().to_sparse_csr())"
    reference = problem(
        "return self.q(x) + (self.mask @ x.T).T", "torch.randn(8, 32)", f"self.q = {quantized}; {sparse}"
    )
    right = judge(referee, reference)
    assert right.passed, right.reasons
    assert not judge(referee, reference, ("self.q(x) +", "self.q(x) * 1.5 +")).passed

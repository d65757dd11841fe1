"""Initial values that a kernel could ignore are varied, in the reference and in a solution alike."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from agentforge.referee.baselines.weights import built, varied_construction

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


def adapter(seed):
    torch.manual_seed(seed)
    with varied_construction(seed):
        return Adapter().state_dict()


@pytest.mark.parametrize(
    "name",
    ["linear.weight", "linear.bias", "turn", "signs", "conv.weight", "rotation.weight", "norm.weight"],
)
def test_simple_values_are_varied_by_the_seed(name):
    plain, first, again, other = Adapter().state_dict(), adapter(3), adapter(3), adapter(4)
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


class Block(nn.Module):
    """Its code tells values of its parameters, and torch's initialisers gave none of them."""

    def __init__(self):
        super().__init__()
        self.branch = nn.Linear(8, 8)
        self.branch.weight.data.zero_()
        self.scale = nn.Parameter(torch.rand(1))
        self.scale.data.fill_(1.0)
        self.factor = nn.Parameter(torch.tensor(2.0))
        self.identity = nn.Linear(8, 8)
        self.identity.weight.data.copy_(torch.eye(8))
        self.norm = nn.BatchNorm1d(8)
        self.norm.weight.data.normal_(1.0, 0.02)
        self.first = nn.Linear(6, 4)
        self.copied = copy.deepcopy(self.first)
        self.target = copy.deepcopy(self.first).requires_grad_(False)
        self.experts = nn.Parameter(torch.randn(5, 4).expand(3, 5, 4).clone())
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(8, 5))
        self.columns = nn.Parameter(torch.randn(7, 3))
        self.lengths = nn.Parameter(self.columns.detach().norm(dim=0))


class Ordinary(nn.Module):
    """Nothing is known of it after `varied_construction`, but for what may stay."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.LayerNorm(8))
        self.tied = nn.Parameter(self.layers[0].weight.data)
        self.scalar = nn.Parameter(torch.tensor(2.5))
        tables = [nn.Parameter(torch.arange(64.0).sin(), requires_grad=False) for _ in range(2)]
        self.tables = nn.ParameterList(tables)


def known(make, seed):
    torch.manual_seed(seed)
    return built(make, seed)


def test_what_is_left_known_of_a_finished_model_varies_too():
    (one, changed), (same, _), (other, _) = (known(Block, seed) for seed in (3, 3, 4))
    assert changed
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    for name in ("branch.weight", "identity.weight", "scale", "factor"):
        a, b = (dict(m.named_parameters())[name] for m in (one, other))
        assert not torch.equal(a, b) and not torch.equal(a, a.round())
    assert int((one.norm.weight < 0).sum()) == 2
    for copied in (one.copied, one.target):
        for p, q in zip(copied.parameters(), one.first.parameters(), strict=True):
            assert not torch.equal(p, q) and bool((p * q >= 0).all())
    assert not torch.equal(one.copied.weight, one.target.weight)
    assert not torch.equal(one.experts[0], one.experts[1])
    stored = one.normed.parametrizations.weight
    for lengths, rows in ((stored.original0.squeeze(1), stored.original1), (one.lengths, one.columns.t())):
        assert not torch.allclose(lengths, rows.norm(dim=1), rtol=0.01)


def test_the_row_for_padding_is_not_zero():
    model, changed = built(lambda: nn.Sequential(nn.Embedding(8, 4, padding_idx=2), nn.EmbeddingBag(8, 4)), 1)
    assert changed
    assert bool(model[0].weight[2].all())
    assert not built(lambda: nn.Embedding(8, 4), 1)[1]


def test_an_ordinary_model_stays_as_its_constructor_left_it():
    for seed in range(4):
        model, changed = known(Ordinary, seed)
        assert not changed
        assert model.tied.data_ptr() == model.layers[0].weight.data_ptr()
        assert torch.equal(*model.tables)
    assert built(lambda: len, 1) == (len, False)


@torch.inference_mode()
def in_inference_mode():
    return nn.Linear(4, 4).requires_grad_(False)


def of_bytes():
    layer = nn.Linear(4, 4)
    layer.weight = nn.Parameter(torch.ones(4, 4).to(torch.float8_e4m3fn), requires_grad=False)
    return layer


@pytest.mark.parametrize("make", [in_inference_mode, of_bytes, lambda: nn.LazyLinear(4)])
def test_parameters_that_no_noise_can_change_are_left_alone(make):
    assert not known(make, 1)[1]


UPCYCLED = problem(
    "return self.experts[0](x) + self.experts[1](x)",
    "torch.randn(64, 32)",
    "layer = torch.nn.Linear(32, 32); import copy; "
    "self.experts = torch.nn.ModuleList(copy.deepcopy(layer) for _ in range(2))",
)


def test_a_solution_gets_values_that_changed_after_construction(referee):
    """By its `state_dict`, even if all of it is there already: hooks pack weights again."""
    packed = (
        "for _ in range(2))",
        "for _ in range(2)); self.pack(); "
        "self.register_load_state_dict_post_hook(lambda m, _: m.pack())\n\n"
        "    def pack(self):\n"
        "        self.w = [e.weight.detach().clone() for e in self.experts]\n"
        "        self.b = [e.bias.detach().clone() for e in self.experts]",
    )
    forward = (
        "self.experts[0](x) + self.experts[1](x)",
        "(x @ self.w[0].T + self.b[0]) + (x @ self.w[1].T + self.b[1])",
    )
    right = judge(referee, UPCYCLED, packed, forward)
    assert right.passed, right.reasons
    assert not judge(referee, UPCYCLED, ("self.experts[1](x)", "self.experts[0](x)")).passed

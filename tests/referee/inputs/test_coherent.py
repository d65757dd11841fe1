"""Contents whose values go together."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.inputs.coherent import (
    COHERENT,
    both_zeros,
    coherent,
    columns_apart,
    in_runs,
    rising,
    squared_distances,
)
from agentforge.referee.inputs.structure import structure_of
from agentforge.referee.inputs.transforms import Content


def contents(tensor: torch.Tensor) -> dict[str, Content]:
    return {content.name: content for content in coherent([structure_of(tensor)], [tensor])}


def changed(content: Content, tensor: torch.Tensor) -> torch.Tensor:
    other = tensor.clone()
    content.apply([other])
    return other


@given(
    st.lists(st.integers(1, 70), min_size=1, max_size=3),
    st.sampled_from(["float32", "float16", "float64", "complex64"]),
)
def test_every_content_fits_every_floating_point_tensor(shape: list[int], dtype: str) -> None:
    tensor = torch.randn(shape).to(getattr(torch, dtype))
    for content in COHERENT:
        assert changed(content, tensor).shape == tensor.shape


def test_8_bit_floats_have_those_of_all_floats_alone() -> None:
    tensor = torch.randn(8, 256).to(torch.float8_e4m3fn)
    assert not contents(tensor)
    for content in COHERENT:
        assert changed(content, tensor).dtype is tensor.dtype


@pytest.mark.parametrize("shape", [(2, 4096), (256, 256)])
def test_runs_are_long_and_no_two_values_are_equal(shape: tuple[int, int]) -> None:
    tensor = torch.randn(shape)
    made = in_runs(tensor)
    steps = made.diff(dim=-1).abs()
    assert float((steps < 0.15).double().mean()) > 0.9
    assert float(made.std()) > 0.5
    assert float((steps == 0).double().mean()) < 0.01


def test_runs_stay_in_the_range_of_their_values() -> None:
    low, high = torch.aminmax(in_runs(torch.rand(4, 4096)))
    assert float(low) >= 0
    assert float(high) <= 1


def test_masks_have_runs_of_their_own_values() -> None:
    mask = torch.rand(2, 4096) < 0.5
    (content,) = (c for name, c in contents(mask).items() if name.startswith("runs"))
    made = changed(content, mask)
    assert made.dtype is torch.bool
    assert 0 < int((made[:, 1:] != made[:, :-1]).sum()) <= 2 * 4096 // 64


@pytest.mark.parametrize(("shape", "dim"), [((8, 100), 1), ((2, 100, 8), 1), ((50,), 0)])
def test_values_rise_along_the_longer_dimension(shape: tuple[int, ...], dim: int) -> None:
    tensor = torch.randn(shape)
    made = rising(tensor)
    assert bool((made.diff(dim=dim) > 0).all())
    assert torch.equal(made.reshape(-1).sort().values, tensor.reshape(-1).sort().values)


def test_most_rows_have_their_largest_values_at_the_same_places() -> None:
    logits = torch.randn(4096, 16)
    made = columns_apart(logits)
    most = made.topk(2, 1).indices.flatten().bincount(minlength=16).max()
    assert int(most) > 2048
    assert torch.allclose((made - logits).std(0), torch.zeros(16), atol=1e-5)
    for alone in (torch.randn(1, 1), torch.randn(16), torch.rand(8, 8) < 0.5):
        assert torch.equal(columns_apart(alone), alone)


def test_the_shortest_way_between_points_leads_over_those_between() -> None:
    cost = squared_distances(torch.rand(64, 64))
    assert float((cost - cost.mT).abs().max()) <= 1 / 32
    cost.fill_diagonal_(0)  # so a round keeps shorter ways, and no way needs more than 63 rounds
    hops, shortest = 0, cost
    while not torch.allclose(shortest, following := (shortest[:, :, None] + cost[None]).amin(1)):
        hops, shortest = hops + 1, following
    assert hops > 20


def test_square_matrices_in_double_precision_stay_regular() -> None:
    tensor = torch.rand(64, 64, dtype=torch.float64)
    assert in_runs(tensor) is tensor
    assert squared_distances(tensor) is tensor


def test_small_matrices_are_no_pairs() -> None:
    tensor = torch.rand(8, 8)
    assert squared_distances(tensor) is tensor


def test_zeros_have_either_sign() -> None:
    zeros = both_zeros(torch.ones(100))
    assert not zeros.any()
    assert 0 < int(torch.signbit(zeros).sum()) < 100


@pytest.mark.parametrize(("largest", "is_tried"), [(0.4, True), (1.0, False), (3.0, False)])
def test_a_range_that_ends_at_one_is_used_up(largest: float, is_tried: bool) -> None:
    tensor = torch.rand(1000) * largest
    tensor[0] = largest
    found = contents(tensor)
    assert ("values of input 0 up to 1" in found) is is_tried
    if is_tried:
        assert math.isclose(float(changed(found["values of input 0 up to 1"], tensor).max()), 1 - 1 / 64)


def test_a_list_in_which_each_element_points_to_the_one_before_it() -> None:
    parents = (torch.rand(1000) * torch.arange(1000)).long()
    (content,) = (c for name, c in contents(parents).items() if name.startswith("each element"))
    made = changed(content, parents)
    assert torch.equal(made[1:], torch.arange(999).clamp(max=int(parents.max())))
    assert not any(name.startswith("each") for name in contents(torch.randint(0, 9, (1000,))))

"""Contents made by rows are what the whole would be, whatever the shape, dtype and the size of a piece."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.inputs import mixing as recipes
from agentforge.referee.workers.memory.shared_memory import Block, Layout

SHAPES = st.lists(st.integers(0, 9), max_size=3).map(tuple)
WEIGHTS = recipes.Weights(0.25, torch.zeros(7), torch.ones(3))
DTYPES = st.sampled_from(["float32", "bfloat16", "int64", "bool", "complex64"])


@given(st.lists(st.tuples(SHAPES, DTYPES), max_size=4))
def test_draws_of_one_file_do_not_touch_each_other(kinds):
    tensors = [torch.randint(0, 2, shape).to(getattr(torch, dtype)) for shape, dtype in kinds]
    given_away = list(tensors)
    draws = recipes.stored(given_away)
    assert not given_away
    for draw, tensor in zip(draws, tensors, strict=True):
        number = tensor.shape[0] if tensor.dim() else 1
        assert tuple(draw.shape) == tuple(tensor.shape)
        assert torch.equal(draw.rows(0, number), tensor)
        if tensor.dim() and number > 1:
            assert torch.equal(draw.rows(1, number), tensor[1:])


def test_exchanged_rows_change_places_and_no_others():
    base = torch.arange(12.0).reshape(4, 3)
    draw, beside = recipes.stored([base, base.clone()])
    draw.exchange(0, 2)
    draw.exchange(3, 3)
    assert torch.equal(draw.rows(0, 4), base[[2, 1, 0, 3]])
    assert torch.equal(beside.rows(0, 4), base)


@given(SHAPES, DTYPES, st.integers(1, 64), st.booleans())
def test_a_content_written_by_pieces_is_the_whole(shape, dtype, piece, turned):
    tensor = torch.randint(0, 2, shape).to(getattr(torch, dtype))
    tensor = tensor.transpose(0, -1) if turned and shape else tensor
    layout = Layout.of(tensor, 64)
    block = Block.create("test", 1 << 14)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "_PIECE_BYTES", piece)
        recipes.write(block, layout, recipes.Given(tensor))
    assert torch.equal(block.tensor(layout), tensor)


@pytest.mark.parametrize("piece", [16, 100, 1 << 20])
def test_two_draws_are_mixed_within_their_range(piece, monkeypatch):
    monkeypatch.setattr(recipes, "_PIECE_BYTES", piece)
    first, second = torch.zeros(40, 3), torch.ones(40, 3)
    draws = recipes.stored([first, second])
    layout = Layout.of(first)
    seen = []
    chosen = recipes.Rearranged(draws, torch.tensor([2, 0, 1]), 7, 11)
    for made in (recipes.Blended(*draws, WEIGHTS), chosen, chosen):
        block = Block.create("test", layout.nbytes)
        recipes.write(block, layout, made)
        seen.append(block.read(layout))
    assert torch.equal(seen[0], torch.full((40, 3), 0.25))
    assert set(seen[1].unique().tolist()) == {0.0, 1.0}
    assert torch.equal(seen[1], seen[2])


@given(st.integers(0, 40), st.integers(1, 60))
def test_weights_of_some_elements_are_those_of_the_whole(first, count):
    weights = recipes.Weights(0.5, torch.linspace(-0.1, 0.1, 7), torch.tensor([1.0, -0.5, 0.75]))
    everywhere = torch.stack([0.5 + weights.columns * weights.rows[q % 3] for q in range(15)]).view(-1)
    assert torch.allclose(weights.of(first, count, torch.float32), everywhere[first : first + count])


def test_weights_stay_between_the_draws_and_differ_from_row_to_row():
    for middle in (0.15, 0.85):
        weights = recipes.Weights.drawn(middle, torch.Generator())
        some = weights.of(0, 1 << 20, torch.float32)
        assert 0 < some.min() < middle - 0.05
        assert middle + 0.05 < some.max() < 1
        rows = some[: 100 * 8191].view(100, 8191) - middle
        assert (
            torch.linalg.matrix_rank(rows.double(), rtol=1e-4) == 1
        )  # one column tells no other row's scale
        assert len((rows[:, 5] / rows[0, 5]).unique()) > 90


def test_numbers_lie_between_two_draws():
    one, other = recipes.stored([torch.tensor(1.0), torch.tensor(3.0)])
    assert recipes.between(one, other, 0.25).rows(0, 1) == 1.5
    whole = recipes.stored([torch.tensor(1), torch.tensor(3)])
    assert {int(recipes.between(*whole, w).rows(0, 1)) for w in (0.1, 0.9)} == {1, 3}

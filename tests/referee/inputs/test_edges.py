"""Contents at the edges of what draws show: each shows its edge, and changes nothing else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.inputs.edges import at_thresholds, below_the_least, edges
from agentforge.referee.inputs.structure import structure_of


def changed(*tensors, order_counts=()):
    """By name: all tensors with each content that there is for them."""
    found = {}
    for content in edges([structure_of(t) for t in tensors], tensors, order_counts):
        others = [t.clone() for t in tensors]
        content.apply(others)
        found[content.name] = others
    return found


def test_usual_numbers_have_no_edges():
    assert not changed(torch.randn(64, 64))
    assert not changed(torch.randn(64, 64, dtype=torch.complex64))
    assert changed(torch.randint(0, 300, (64, 64))).keys() == {
        "input 0 without one of its values", "three values in input 0", "a part of input 0 with one value",
    }  # fmt: skip
    assert not changed(torch.ones(64, 64))
    assert not changed(torch.empty(0, 64), torch.tensor(1.0))


@pytest.mark.parametrize(("least", "word"), [(0, "0"), (-1, "-1")])
def test_probabilities_and_sines_reach_the_ends_of_their_range(least, word):
    x = torch.rand(64, 64) * (1 - least) + least
    for end in ("1", word):
        (other,) = changed(x)[f"some values of input 0 at {end}"]
        assert bool((other == float(end)).any())
        assert bool(((other == x) | (other == float(end))).all())


@given(st.integers(3, 200), st.integers(0, 1 << 30))
def test_some_bags_are_empty_and_offsets_keep_their_ends(number, seed):
    generator = torch.Generator().manual_seed(seed)
    rising = torch.randperm(10 * number, generator=generator)[:number].sort().values + 1
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), rising])
    assert structure_of(offsets).offsets
    found = changed(offsets, order_counts={0})
    assert len(found) == 2
    for (other,) in found.values():
        assert bool((other[1:] >= other[:-1]).all())
        assert bool((other[1:] == other[:-1]).any())
        assert (int(other[0]), int(other[-1])) == (0, int(offsets[-1]))
    values = torch.randn(int(offsets[-1]) + 7)
    other, _ = changed(offsets, values, order_counts={0})["the last values of input 0 equal"]
    assert int(other[-1]) == int(other[-2]) == len(values)
    segments = torch.arange(number).sort().values
    assert not changed(segments, order_counts={0})


@given(st.sampled_from([(8, 200), (3, 4, 50), (1, 60, 60)]), st.sampled_from([torch.bool, torch.float32]))
def test_masks_have_a_row_of_one_value(shape, dtype):
    mask = torch.rand(shape) < 0.6
    found = changed(mask.to(dtype))
    for word, value in (("least", 0), ("greatest", 1)):
        (other,) = found[f"a row of input 0 at its {word} value"]
        assert bool((other == value).all(-1).any())
        assert not bool((other == value).all())


def test_one_of_many_becomes_two_by_halves():
    chosen = torch.nn.functional.one_hot(torch.randint(0, 40, (64,)), 40).float()
    (other,) = changed(chosen)["halves in input 0"]
    assert torch.equal(other.sum(1), torch.ones(64))
    assert set(other.unique().tolist()) == {0.0, 0.5}


def test_real_numbers_in_a_complex_type_get_another_part():
    x = torch.randn(64, 64).to(torch.complex64)
    for given_away in (x, x * 1j):
        (other,) = changed(given_away)["both parts of input 0"]
        assert bool(other.real.any())
        assert bool(other.imag.any())
        assert torch.allclose(other.abs(), x.abs())


def test_integers_that_are_distinct_by_chance_occur_twice():
    wide = torch.randint(0, 1 << 50, (4096,))
    (other,) = changed(wide)["some values of input 0 twice"]
    assert len(other.unique()) < 4096
    assert bool(torch.isin(other, wide).all())
    assert not changed(torch.randperm(4096))
    assert not changed(torch.randperm(1 << 20)[:4096])
    few = torch.randperm(4000)[:8]  # they may be places
    assert not changed(torch.randn(4096, 3), few)


def test_integers_at_thresholds_take_the_place_of_some():
    ids, small = torch.randint(1, 9, (64, 64)), torch.randint(1, 9, (64, 64), dtype=torch.uint8)
    wanted = [(0, -1), (0, 3), (1, -1), (1, 200)]
    found = at_thresholds(wanted, [ids, small], ())
    assert [c.name for c in found] == ["some values of input 0 at -1", "some values of input 1 at 200"]
    others = [ids.clone(), small.clone()]
    found[0].apply(others)
    assert 0 < int((others[0] == -1).sum()) < 64
    assert torch.equal(others[1], small)
    assert not at_thresholds(wanted, [ids, small], (0, 1))


@given(st.integers(3, 40), st.integers(0, 1 << 30))
def test_a_value_of_integers_is_gone_and_they_stay_sorted(number, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, number, (8 * number,), generator=generator)
    ids = torch.cat([drawn, torch.arange(number), torch.arange(number)]).sort().values
    (other,) = changed(ids, order_counts={0})["input 0 without one of its values"]
    assert len(other.unique()) == number - 1
    assert (int(other[0]), int(other[-1])) == (0, number - 1)
    assert bool((other.diff() >= 0).all())


def test_a_mask_of_infinities_may_be_a_finite_bias():
    mask = torch.where(torch.rand(16, 16) < 0.5, 0.0, -torch.inf)
    (other,) = changed(mask)["finite values in input 0"]
    assert bool(other.isfinite().all())
    assert len(other.unique()) > 2
    assert "finite values in input 0" not in changed(torch.where(mask == 0, 1.0, 0.0))


def test_inputs_of_one_shape_have_infinities_at_the_same_places():
    a, b, positive = torch.randn(64, 64), torch.randn(64, 64).t(), torch.rand(64, 64)
    for word in ("infinities", "minus infinities"):
        first, second = changed(a, b)[f"{word} in inputs 0 and 1 at the same places"]
        assert torch.equal(first.isinf(), second.isinf())
        assert bool(first.isinf().any())
        assert torch.equal(first[~first.isinf()], a[~first.isinf()])
    assert "minus infinities in inputs 0 and 1 at the same places" not in changed(a, positive)
    assert not [name for name in changed(a, torch.randn(64, 8)) if "infinities" in name]


def test_integers_that_are_compared_take_values_below_their_least():
    lengths, ids = torch.randint(256, 1025, (64,)), torch.randint(0, 9, (64,))
    (content,) = below_the_least([0, 1], [lengths, ids], ())
    others = [lengths.clone(), ids.clone()]
    content.apply(others)
    below = others[0] < lengths.min()
    assert bool(below.any())
    assert int(others[0].min()) > 0
    assert torch.equal(others[0][~below], lengths[~below])
    assert torch.equal(others[1], ids)
    assert not below_the_least([0], [lengths.sort().values], [0])


def test_integers_have_many_equal_ones():
    pictures, mask = torch.randint(0, 256, (4, 8, 8), dtype=torch.uint8), torch.randint(0, 2, (8, 8))
    found = changed(pictures)
    (few,) = found["three values in input 0"]
    assert 1 < len(few.unique()) <= 3
    assert bool(torch.isin(few, pictures).all())
    (part,) = found["a part of input 0 with one value"]
    alike = [n for n in range(4) if len(part[n].unique()) == 1]
    assert len(alike) == 1
    assert not [name for name in changed(mask) if "value" in name and "row" not in name]
    assert not changed(torch.randperm(64))


@given(st.integers(4, 40), st.booleans(), st.booleans())
def test_masks_of_two_runs_have_one_hole_or_are_reversed(size, rises, numbers):
    ends = torch.arange(3, 3 + size)[:, None]
    mask = (torch.arange(size + 8) < ends) ^ rises
    mask = mask.to(torch.int32) if numbers else mask
    found = changed(mask)
    (turned,) = found["input 0 reversed"]
    assert torch.equal(turned, mask.flip(-1))
    for word, hole in (("greatest", 0), ("least", 1)):
        (other,) = found[f"a hole in a run of the {word} value of input 0"]
        ((row, place),) = (other != mask).nonzero().tolist()
        assert other[row, place] == hole
        assert mask[row, place - 1] == mask[row, place] == mask[row, place + 1]


def test_masks_in_no_order_have_no_holes():
    ends = torch.arange(3, 40)[:, None]
    padding = torch.arange(48) < ends
    assert not [name for name in changed(torch.rand(16, 16) < 0.5) if "hole" in name or "reversed" in name]
    assert not changed(padding, order_counts={0})
    assert "input 0 reversed" in changed(padding.mT.contiguous())
    short = torch.tensor([[True, False, False], [True, True, False]])
    (other,) = changed(short)["a hole in a run of the least value of input 0"]
    assert torch.equal(other, short)

"""Other contents for integers, masks and sorted inputs: values that occur, in their range."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.inputs.discrete import BEYOND_32_BITS, discrete, either_sign, larger, repeated, times
from agentforge.referee.inputs.structure import structure_of


def changed(tensor, order_counts=(), constant=True):
    """By name: the tensor with each content that there is for it."""
    structure = structure_of(tensor)
    found = {}
    for content in discrete([structure], [tensor], order_counts):
        other = tensor.clone()
        content.apply([other])
        found[content.name.replace("input 0", "it")] = other
    return found


@given(st.integers(-3, 1000), st.integers(20, 300))
def test_constants_become_values_between(value, number):
    for name, other in changed(torch.full((number,), value)).items():
        least = int(name.split()[4])
        assert min(least, value) <= int(other.min()) <= int(other.max()) <= max(least, value)
    assert set(changed(torch.ones(200, dtype=torch.bool))) == {
        "values of it between 0 and its own",
        "values of it between 1 and its own",
    }


@given(st.integers(2, 50), st.integers(30, 400))
def test_integers_take_values_that_occur(values, number):
    tensor = torch.randint(0, values, (number, 3))
    for name, other in changed(tensor).items():
        assert set(other.unique().tolist()) <= set(tensor.unique().tolist())
        if name in ("the values of it in another order", "a few values of it exchanged"):
            assert torch.equal(other.reshape(-1).sort().values, tensor.reshape(-1).sort().values)


@given(st.integers(66, 5000), st.integers(20, 2000), st.booleans())
def test_edges_of_long_chains(nodes, number, upright):
    tensor = torch.randint(0, nodes, (2, number))
    tensor[0, :3] = torch.tensor([0, 0, nodes - 1])
    chained = changed(tensor.mT.contiguous() if upright else tensor)["it in chains"]
    one, other = chained.mT if upright else chained
    assert bool((other == one + 1).all())
    assert int(one.min()) >= 0 and int(other.max()) < nodes
    starts = set(one.tolist()) - set(other.tolist())
    assert len(starts) <= max(1, -(-number // 64))


def test_labels_of_few_values_have_no_chains():
    assert "it in chains" not in changed(torch.randint(0, 60, (2, 500)))


def test_a_few_values_are_exchanged_where_no_sample_looks():
    mask = torch.rand(512, 512) < 0.05
    other = changed(mask)["a few values of it exchanged"]
    assert 2 <= int((mask != other).sum()) <= 16


def test_values_are_exchanged_within_rows_where_no_sum_of_a_row_tells():
    edges = torch.randint(0, 500, (2, 3000))
    other = changed(edges)["a few values of it exchanged in rows"]
    assert torch.equal(other.sort(-1).values, edges.sort(-1).values)
    assert 2 <= int((other != edges).sum()) <= 16
    assert "a few values of it exchanged in rows" not in changed(edges[0])


def test_offsets_stay_sorted_and_keep_their_ends():
    offsets = torch.arange(0, 4097, 128)
    (other,) = changed(offsets, order_counts={0}).values()
    assert bool((other[1:] > other[:-1]).all())
    assert (int(other[0]), int(other[-1])) == (0, 4096)
    assert not torch.equal(other, offsets)


def test_a_sorted_input_that_need_not_be_is_shuffled():
    ids = torch.randint(0, 50, (1000,)).sort().values
    assert "the values of it in another order" in changed(ids)
    assert list(changed(ids, order_counts={0})) == ["other values of it, sorted"]
    floats = torch.randn(1000).sort().values
    assert "the values of it in another order" in changed(floats)
    assert not changed(floats, order_counts={0})


def test_a_permutation_stays_one():
    order = torch.randperm(300)
    for other in changed(order).values():
        assert torch.equal(other.sort().values, torch.arange(300))


def test_integers_are_made_larger_if_their_type_has_room():
    def tensors():
        return [
            torch.tensor([3, -5, 0]),
            torch.tensor([3, 100], dtype=torch.int8),
            torch.tensor([True]),
            torch.ones(2),
        ]

    exact, near, little = tensors(), tensors(), [torch.zeros(2, dtype=torch.int32)]
    times(1024, None).apply(exact)
    assert [t.tolist() for t in exact] == [[3072, -5120, 0], [3, 100], [True], [1.0, 1.0]]
    larger(1024, None).apply(near)
    assert [t.tolist() for t in near[1:]] == [[3, 100], [True], [1.0, 1.0]]
    assert torch.equal(near[0].div(1024, rounding_mode="floor"), tensors()[0])
    assert near[0][2] == 0
    larger(BEYOND_32_BITS, None).apply(little)
    assert little[0].tolist() == [0, 0]


def test_larger_integers_are_no_floats():
    ids = torch.randint(1, 1000, (4096,))
    larger(BEYOND_32_BITS, None).apply([ids])
    assert bool((ids.float().long() != ids).any())
    assert ids.max() < 1001 * BEYOND_32_BITS


def test_integers_may_be_half_as_large_again():
    ids = torch.arange(0, 1000)
    larger(1.5, None).apply([ids])
    assert int(ids.max()) == 1498


@given(st.integers(6, 60), st.integers(3, 5))
def test_places_that_are_only_read_are_repeated_unless_they_are_a_permutation(number, few):
    places = torch.randperm(number)
    some = torch.cat([places[:2], torch.tensor([number + few]), places[2:few]])
    structures = [structure_of(t) for t in (places, some, some.sort().values)]
    (content,) = repeated(structures, [places, some, some], [0, 1, 2])
    assert content.only == 1
    given_places = some.clone()
    content.apply([places, given_places, some])
    assert set(given_places.tolist()) <= set(some.tolist())
    assert repeated(structures, [places, some, some], [0]) == []


def test_integers_get_either_sign():
    ids, others = torch.randint(1, 1000, (4096,)), torch.ones(4, dtype=torch.int64)
    given_ids = ids.clone()
    either_sign(0).apply([given_ids, others])
    assert torch.equal(given_ids.abs(), ids)
    assert 1000 < int((given_ids < 0).sum()) < 3000
    assert bool((others == 1).all())

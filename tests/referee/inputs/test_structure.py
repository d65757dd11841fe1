"""What draws have in common is found, and contents that are made from them keep it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.inputs import inputs as inputs_module
from agentforge.referee.inputs.acceptance import orders_that_count, try_mixtures
from agentforge.referee.inputs.inputs import FRESH_BYTES, Inputs, arguments_of
from agentforge.referee.inputs.structure import Norm, Order, Structure, structure_of
from agentforge.referee.inputs.transforms import MIXED, NEGATED, ONE_LARGE
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import Distribution, DType, TensorInput, Workload

WIDTH = 640


def inputs_of(draw):
    """Inputs of a `get_inputs()`, large or small."""
    tensors = draw(0)
    load = Workload(
        name="w",
        inputs=tuple(
            TensorInput(
                name=f"x{n}",
                shape=tuple(t.shape),
                dtype=DType(str(t.dtype).removeprefix("torch.")),
                distribution=Distribution(),
            )
            for n, t in enumerate(tensors)
        ),
    )
    return Inputs(Workload(name="w", source="reference"), arguments_of(load), draw)


def seeded(make):
    """`get_inputs()` under a seed."""

    def draw(seed):
        return make(torch.Generator().manual_seed(seed))

    return draw


def contents(inputs, number=4):
    """Some contents, all tensors of each."""
    for _ in range(number):
        inputs.fill(0)
        yield [t.clone() for t in inputs.tensors(0)]


@given(st.integers(2, 12), st.integers(2, 12), st.booleans(), st.randoms(use_true_random=False))
def test_an_order_along_a_dimension_is_found(rows, columns, descending, random):
    generator = torch.Generator().manual_seed(random.getrandbits(60))
    tensor = torch.randn(rows + 8, columns + 8, generator=generator)
    assert structure_of(tensor).order is None
    for dim in (0, 1):
        found = structure_of(tensor.sort(dim, descending).values)
        assert found.order == Order(dim, descending)
        assert found.fragile


@pytest.mark.parametrize("number", [4, 5, 8])
def test_few_numbers_are_sorted_by_no_chance(number):
    drawn = [structure_of(torch.randn(number).sort().values) for _ in range(2)]
    assert drawn[0].shared(drawn[1], equal=False).order == Order(0, False)
    assert structure_of(torch.tensor([1.0, 2.0, 3.0])).order is None


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("dim", [1, 2])
def test_norms_of_one_are_found_and_restored(p, dim):
    tensor = torch.rand(20, 30, 40)
    assert structure_of(tensor).norm is None
    normal = torch.nn.functional.normalize(tensor, p, dim)
    assert structure_of(normal).norm == Norm(p, dim)
    restored = Norm(p, dim).restored((normal + tensor).to(torch.bfloat16))
    assert restored.dtype == torch.bfloat16
    assert torch.allclose(restored.float().norm(p, dim), torch.ones(()), atol=1e-2)


def test_symmetric_and_orthogonal_matrices_are_found():
    x = torch.randn(3, 50, 50)
    assert not structure_of(x).fragile
    assert structure_of(x @ x.mT).symmetric
    assert structure_of(torch.linalg.qr(x).Q).orthogonal
    complex_x = torch.complex(x, x.flip(0))
    assert structure_of(complex_x @ complex_x.mH).symmetric


def test_complex_numbers_are_mixed():
    drawn = [torch.randn(512, 512, dtype=torch.complex64) for _ in range(2)]
    assert structure_of(drawn[0]) == Structure(mixable=True)
    assert not structure_of(drawn[0] / 0).finite
    inputs = inputs_of(lambda seed: [drawn[seed % 2]])
    known = torch.cat([torch.view_as_real(x).reshape(-1) for x in drawn]).unique()
    for (x,) in contents(inputs):
        assert torch.isin(torch.view_as_real(x).reshape(-1), known).double().mean() < 0.2  # by chance
    inputs.close()


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool])
def test_what_is_rearranged_only_is_drawn_anew_if_that_is_quick_or_no_unusual_content_comes(
    dtype, monkeypatch
):
    for limit, quick_s, anew in ((1 << 30, 0.0, False), (1 << 20, 0.0, True), (1 << 30, 60.0, True)):
        monkeypatch.setattr(inputs_module, "_LARGE_BYTES", limit)
        monkeypatch.setattr(inputs_module, "_QUICK_S", quick_s)
        inputs = inputs_of(lambda seed: [(torch.rand(2048, 1024) * 9).to(torch.int32).to(dtype)])
        assert inputs.structures
        assert inputs.anew is anew
        inputs.close()


def test_offsets_are_no_segment_numbers():
    assert structure_of(torch.arange(0, 4096, 128)).offsets
    assert not structure_of(torch.arange(4096)).offsets
    assert not structure_of(torch.randint(0, 9, (4096,)).sort().values).offsets


@pytest.mark.parametrize("shape", [(256, 2048), (1 << 19,)])
def test_sorted_inputs_stay_sorted(shape):
    inputs = inputs_of(seeded(lambda g: [torch.randn(shape, generator=g).sort().values]))
    assert inputs.slot_bytes > FRESH_BYTES
    seen = [x for (x,) in contents(inputs)]
    assert all(bool((x[..., 1:] >= x[..., :-1]).all()) for x in seen)
    assert not any(torch.equal(a, b) for n, a in enumerate(seen) for b in seen[:n])
    inputs.close()


def test_positive_definite_matrices_stay_so():
    def make(generator):
        x = torch.randn(WIDTH, WIDTH, generator=generator)
        return [x @ x.T / WIDTH + torch.eye(WIDTH)]

    inputs = inputs_of(seeded(make))
    for (matrix,) in contents(inputs):
        assert torch.linalg.cholesky_ex(matrix).info == 0
        assert torch.allclose(matrix, matrix.T, atol=1e-5)
    inputs.close()


@pytest.mark.parametrize("p", [1, 2])
def test_rows_of_norm_one_are_mixed_and_have_it_again(p):
    def make(generator):
        x = torch.rand(16, 1 << 15, generator=generator)
        return [torch.nn.functional.normalize(x, p, 1)]

    inputs = inputs_of(seeded(make))
    seen = torch.stack([x for (x,) in contents(inputs, 6)]).double()
    assert torch.allclose(seen.norm(p, -1), torch.ones((), dtype=torch.double), atol=1e-5)
    # No row lies in the span of the rows that were seen before.
    some = seen[:, :, torch.arange(0, 1 << 15, 50)]
    known, last = some[:-1].flatten(0, 1), some[-1]
    mixture = torch.linalg.lstsq(known.T, last.T).solution
    assert (known.T @ mixture - last.T).norm() > 1e-2 * last.norm()
    inputs.close()


def test_infinities_stay_where_they_are_and_make_no_nan():
    rows = torch.arange(float(WIDTH))
    bias = ((rows[None] - rows[:, None]) * 0.05).masked_fill(rows[None] > rows[:, None], -torch.inf)
    inputs = inputs_of(seeded(lambda g: [torch.randn(WIDTH, WIDTH, generator=g), bias]))
    allowed = torch.isfinite(bias)
    for scores, made in contents(inputs):
        assert not made.isnan().any()
        # Rows change places; each still has one finite element at least, so that a softmax is defined.
        assert int(torch.isfinite(made).sum()) == int(allowed.sum())
        assert (scores + made).softmax(1).isfinite().all()
    inputs.close()


def test_tensors_of_few_values_are_rearranged_and_never_come_twice():
    inputs = inputs_of(seeded(lambda g: [(torch.rand(1024, 512, generator=g) < 0.02).float()]))
    (first, *others) = [x for (x,) in contents(inputs, 6)]
    degrees = first.sum(1).sort().values
    for x in others:
        assert set(x.unique().tolist()) == {0.0, 1.0}
        assert not torch.equal(x, first)
        # Rows keep how many ones they have, up to the other draw's.
        assert (x.sum(1).sort().values - degrees).abs().mean() < 1
        same = sum(torch.equal(row, first[n]) for n, row in enumerate(x))
        assert same < 8
    inputs.close()


def test_one_hot_rows_stay_one_hot():
    def make(generator):
        return [torch.eye(256)[torch.randint(0, 256, (2048,), generator=generator)]]

    inputs = inputs_of(seeded(make))
    for (x,) in contents(inputs):
        assert torch.equal(x.sum(1), torch.ones(2048))
    inputs.close()


def test_permutations_and_pairs_stay_so():
    number = 1 << 17

    def make(generator):
        edges = torch.stack([torch.randint(0, n, (number,), generator=generator) for n in (10, 1000)])
        return [torch.randperm(number, generator=generator), edges]

    inputs = inputs_of(seeded(make))
    for order, edges in contents(inputs):
        assert torch.equal(order.sort().values, torch.arange(number))
        assert edges[0].max() < 10
    inputs.close()


@pytest.mark.parametrize("shape", [(1 << 18,), (2048, 512), (4, 1 << 17)])
def test_integers_that_were_drawn_one_by_one_do_not_stay_together(shape):
    inputs = inputs_of(seeded(lambda g: [torch.randint(0, 1 << 40, shape, generator=g)]))
    assert inputs.structures[0].independent
    sums = torch.stack([x.reshape(-1, shape[-1]).sum(1) for (x,) in contents(inputs)])
    assert sums.unique().numel() == sums.numel()
    inputs.close()


@given(st.integers(17, 400), st.integers(1, 20), st.integers(0, 1 << 30))
def test_permutations_and_labels_of_rows_stay_together(width, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    orders = torch.stack([torch.randperm(width, generator=generator) for _ in range(rows)])
    labels = torch.randint(0, 1 << 40, (20, 1), generator=generator).expand(20, width)
    assert not structure_of(orders).independent
    assert not structure_of(labels).independent


def test_small_inputs_that_are_always_alike_are_mixed():
    base = torch.randn(64, 64)
    inputs = inputs_of(lambda seed: [base.clone(), torch.arange(64)])
    seen = list(contents(inputs))
    assert not any(torch.equal(a[0], b[0]) for n, a in enumerate(seen) for b in seen[:n])
    assert all(torch.equal(places, torch.arange(64)) for _, places in seen)
    inputs.close()


def test_mixtures_that_a_reference_does_not_take_are_not_used():
    inputs = inputs_of(seeded(lambda g: [torch.randint(0, 500, (1024, 512), generator=g).float()]))
    inputs.give(0, inputs.drawn())

    def whole_numbers_alone(slot):
        x = inputs.tensors(slot)[0]
        return [Leaf("out", torch.where(x == x.round(), x, torch.nan))]

    try_mixtures(inputs, whole_numbers_alone)
    assert inputs.anew
    inputs.fill(0)
    assert torch.equal(inputs.tensors(0)[0], inputs.tensors(0)[0].round())
    inputs.close()


def test_an_order_counts_for_a_search_and_not_for_a_sum():
    inputs = inputs_of(
        seeded(lambda g: [torch.randn(64, generator=g).sort().values, torch.randn(30, generator=g)])
    )

    def searched(slot):
        return [Leaf("out", torch.searchsorted(*inputs.tensors(slot)))]

    def summed(slot):
        first, second = inputs.tensors(slot)
        return [Leaf("out", torch.stack([first.amax(), second.amax()]))]

    def raises(slot):
        first = inputs.tensors(slot)[0]
        return searched(slot) if bool((first[1:] >= first[:-1]).all()) else None

    exact = structure_bounds()
    assert orders_that_count(inputs, exact, searched) == {0}
    assert orders_that_count(inputs, exact, raises) == {0}
    assert orders_that_count(inputs, exact, summed) == frozenset()
    inputs.close()


def structure_bounds():
    from agentforge.referee.comparison.tolerance import Bound

    return [Bound(0.0, 0.0, 0.0, 0.0)]


@pytest.mark.parametrize("content", [MIXED, NEGATED, ONE_LARGE], ids=lambda c: c.name)
def test_unusual_contents_keep_an_order_that_counts_and_symmetry(content):
    def make(generator):
        x = torch.randn(40, 40, generator=generator)
        return [torch.randn(9, 40, generator=generator).sort().values, x + x.T]

    inputs = inputs_of(seeded(make))
    inputs.order_counts = frozenset({0})
    inputs.fill(0)
    before = inputs.copies(0)
    inputs.fitted(content).apply(inputs.tensors(0))
    rising, matrix = inputs.tensors(0)
    assert bool((rising[:, 1:] >= rising[:, :-1]).all())
    assert torch.equal(matrix, matrix.T)
    assert not torch.equal(rising, before[0])
    assert not torch.equal(matrix, before[1])
    inputs.close()

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.referee.comparison.tolerance import (
    Bound,
    all_finite,
    alternative,
    derive,
    explain,
    kinds,
    measure,
    own_error,
    root_mean_square,
    settled,
    widest,
)
from agentforge.schema import TolerancePolicy

POLICY = TolerancePolicy()


def own_bound(function, *inputs, policy=POLICY):
    reference = function(*inputs)
    exact = function(*(x.double() for x in inputs))
    reduction = sum(x.numel() for x in inputs) / reference.numel()
    return reference, derive(reference, exact, policy, reduction)


def passes(got, reference, bound):
    return measure(got, reference, bound).within(bound)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x, 1),
        lambda x: x.norm(),
        lambda x: x.sum(0),
        torch.tanh,
        lambda x: (x @ x.t()) * 1e-12,
    ],
    ids=["softmax", "norm", "sum", "tanh", "tiny matmul"],
)
def test_zeros_noise_and_half_precision_never_pass(function):
    torch.manual_seed(0)
    x = torch.randn(256, 512)
    reference, bound = own_bound(function, x)
    assert passes(reference.clone(), reference, bound)
    assert not passes(torch.zeros_like(reference), reference, bound)
    assert not passes(reference * (1 + 1e-3), reference, bound)
    rounded = reference.bfloat16().float()
    assert not passes(rounded, reference, bound)


def test_one_wrong_element_of_a_million_is_seen():
    x = torch.randn(1000, 1000)
    reference, bound = own_bound(torch.sin, x)
    wrong = reference.clone()
    wrong[777, 333] += 1e-3
    distance = measure(wrong, reference, bound)
    assert not distance.within(bound)
    assert distance.index == 777 * 1000 + 333
    assert "out[777, 333]" in explain("out", (1000, 1000), distance, wrong.dtype)


def test_honest_reassociation_passes():
    torch.manual_seed(1)
    x = torch.randn(64, 8192)
    reference, bound = own_bound(lambda t: t.sum(1), x)
    serial = torch.zeros(64)
    for column in x.t():
        serial += column
    halves = x[:, ::2].sum(1) + x[:, 1::2].sum(1)
    assert passes(halves, reference, bound)
    assert passes(serial, reference, bound)


def test_sixteen_bit_types_have_a_tighter_floor():
    x = torch.randn(128, 128).bfloat16()
    reference = torch.relu(x)
    bound = derive(reference, torch.relu(x.double()), POLICY)
    assert not passes((reference.float() * 1.05).bfloat16(), reference, bound)
    assert passes(reference.clone(), reference, bound)


def test_integers_and_booleans_are_exact():
    ints = torch.arange(10)
    bound = derive(ints, None, POLICY)
    assert passes(ints.clone(), ints, bound)
    assert not passes(ints + (ints == 3), ints, bound)
    flags = torch.tensor([True, False])
    assert not passes(torch.tensor([True, True]), flags, derive(flags, None, POLICY))
    hidden = torch.tensor([2, 0], dtype=torch.uint8).view(torch.bool)
    assert not passes(hidden, flags, derive(flags, None, POLICY))


def test_patterns_of_nan_and_infinity_must_agree():
    bound = Bound(1e-6, 1e-6, 0.0, 0.0)
    expected = torch.tensor([1.0, math.nan, math.inf, -math.inf])
    assert passes(expected.clone(), expected, bound)
    for index, value in ((0, math.nan), (1, 1.0), (2, math.nan), (2, -math.inf), (3, 3e38), (0, math.inf)):
        wrong = expected.clone()
        wrong[index] = value
        assert not passes(wrong, expected, bound), (index, value)


def test_an_all_zero_output_must_be_zero():
    zero = torch.zeros(5)
    bound = derive(zero, zero.double(), POLICY)
    assert passes(zero.clone(), zero, bound)
    assert not passes(zero + 1e-30, zero, bound)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200_000), st.integers(0, 199_999), st.floats(1e-4, 1e3))
def test_any_position_and_size_of_error_is_found(size, index, error):
    expected = torch.ones(size)
    wrong = expected.clone()
    wrong[index % size] += error
    distance = measure(wrong, expected, Bound(1e-6, 1e-6, 0.0, 0.0))
    assert distance.index == index % size
    assert distance.absolute == pytest.approx(error, rel=1e-2, abs=2e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("odd", [None, math.nan, math.inf])
def test_the_reference_s_own_error_is_what_measuring_it_gives(dtype, odd):
    exact = torch.randn(40_000, 2, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    reference = exact.to(dtype)
    ours, theirs = (torch.view_as_real(x) if x.is_complex() else x for x in (reference, exact))
    if odd is not None:  # where one overflows, the other elements still tell
        ours.view(-1)[17] = odd
    error, worst = own_error(reference, exact)
    if odd is not None:
        ours.view(-1)[17], theirs.view(-1)[17] = 0.0, 0.0
    found = measure(reference, exact, Bound(math.inf, 1.0, 0.0, 0.0))
    assert error == pytest.approx(found.relative, rel=1e-9) and 0 < error < 0.01
    assert worst == found.absolute


def test_parts_are_measured_on_the_scale_of_the_whole():
    whole = torch.cat([torch.ones(100), torch.full((10,), 1e-9)])
    bound = Bound(1e-6, 1e-6, 0.0, 0.0)
    scale = root_mean_square(whole)
    part = whole[100:]
    assert measure(part + 1e-8, part, bound, scale).excess < 1
    assert measure(part + 1e-8, part, bound).excess > 1


def test_the_widest_bound_and_complex_outputs():
    a, b = Bound(1.0, 2.0, 3.0, 4.0), Bound(4.0, 3.0, 2.0, 1.0)
    assert widest([a, b]) == Bound(4.0, 3.0, 3.0, 4.0)
    z = torch.randn(16, dtype=torch.complex64)
    assert passes(z.clone(), z, Bound(1e-6, 1e-6, 0.0, 0.0))
    assert not passes(z.conj().resolve_conj(), z, Bound(1e-6, 1e-6, 0.0, 0.0))
    empty = torch.empty(0, 3)
    assert passes(empty, empty, derive(empty, empty.double(), POLICY))


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("got", "right"),
    [
        ([NAN, INF, 2.0], True),  # as float32 eager
        ([1.0, 3e38, 2.0], True),  # as float64
        ([NAN, 3e38, 2.0], True),  # each element for itself
        ([1.001, INF, 2.0], False),
        ([INF, INF, 2.0], False),
        ([0.0, INF, 2.0], False),
        ([NAN, NAN, 2.0], False),
        ([NAN, -INF, 2.0], False),
        ([NAN, INF, NAN], False),
    ],
)
def test_an_element_may_agree_with_eager_or_with_float64(got: list[float], right: bool) -> None:
    expected, exact = torch.tensor([NAN, INF, 2.0]), torch.tensor([1.0, 3e38, 2.0], dtype=torch.float64)
    other = alternative(expected, exact)
    answer = torch.tensor(got)
    bound = derive(expected, exact, POLICY)
    assert measure(answer, settled(answer, expected, other), bound).within(bound) is right


def test_there_is_no_alternative_if_both_overflow_or_agree() -> None:
    assert alternative(torch.tensor([INF, 1.0]), torch.tensor([1e300, 1.1], dtype=torch.float64)) is None
    assert alternative(torch.tensor([NAN]), torch.tensor([NAN], dtype=torch.float64)) is None
    assert alternative(torch.tensor([NAN]), torch.tensor([-INF], dtype=torch.float64)) is not None
    assert alternative(torch.tensor([1, 2]), torch.tensor([1, 3])) is None
    assert alternative(1.5, 2.5) is None
    assert alternative(torch.ones(2), torch.ones(3)) is None


def test_an_overflow_leaves_the_bound_of_the_other_elements() -> None:
    x = torch.randn(4096) * 3
    exact = x.double().exp()
    reference = (exact * (1 + 1e-4)).float()
    bound = derive(reference, exact, POLICY)
    reference[7], reference[8] = NAN, INF
    exact[8] = 1e300
    assert derive(reference, exact, POLICY).relative == pytest.approx(bound.relative, rel=0.2)


def test_kinds_of_complex_and_of_8_bit_floats() -> None:
    z = torch.tensor([complex(1, INF), complex(NAN, -INF)])
    assert kinds(z).tolist() == [[0, 2], [1, 3]]
    w = torch.tensor([complex(1, 2), complex(NAN, -INF)])
    assert settled(w, z, w).tolist()[0] == complex(1, 2)
    for dtype in (torch.float8_e5m2, torch.float8_e4m3fn):
        eight = torch.tensor([1.0, NAN]).to(dtype)
        assert kinds(eight).tolist() == [0, 1]
        assert not all_finite(eight) and all_finite(eight[:1])

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence

from agentforge.problems.describe import (
    describe_arguments,
    describe_tensor,
    distribution_of,
    flatten_tensors,
    to_device,
)
from agentforge.profiling.graph.extract import draw_expression
from agentforge.referee.inputs.inputs import draw
from agentforge.schema import TargetError


class Pair(NamedTuple):
    left: torch.Tensor
    right: list[torch.Tensor]


def test_shape_dtype_and_strides():
    spec = describe_tensor("x", torch.zeros(4, 6, dtype=torch.bfloat16).t())
    assert (spec.shape, spec.dtype, spec.strides) == ((6, 4), "bfloat16", (1, 6))
    assert describe_tensor("x", torch.zeros(4, 6)).strides is None


def test_a_dtype_without_a_name_is_refused():
    with pytest.raises(TargetError, match="complex128"):
        describe_tensor("x", torch.zeros(1, dtype=torch.complex128))


@given(st.lists(st.integers(-3, 1000), min_size=1, max_size=50))
def test_integers_stay_in_their_range(values):
    found = distribution_of(torch.tensor(values))
    assert found.kind == "integers"
    assert min(values) <= found.a < found.b <= max(values) + 1


def test_padding_marks_are_no_range():
    found = distribution_of(torch.tensor([5, -100, 2, 9]))
    assert (found.a, found.b) == (2, 10)


def test_several_negative_integers_are_values():
    assert distribution_of(torch.tensor([-5, -3, 4])).a == -5
    assert distribution_of(torch.arange(-500, 501)).a == -500
    assert distribution_of(torch.tensor([-100, 3, 7, -100])).a == 3


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        (torch.randn(1000), "normal"),
        (torch.rand(1000), "uniform"),
        (torch.rand(1000) > 0.5, "bernoulli"),
        (torch.tensor(1e-6), "constant"),
        (torch.empty(0), "constant"),
        (torch.tensor([float("-inf"), float("nan")]), "constant"),
        (torch.randn(100, dtype=torch.complex64), "normal"),
        (torch.randn(100, dtype=torch.complex64).conj(), "normal"),
        (torch.view_as_complex(torch.rand(100, 2)), "normal"),
        (torch.full((8,), 1j), "normal"),
        (torch.empty(0, dtype=torch.complex64), "constant"),
        (torch.arange(256.0), "uniform"),
        (torch.tensor([0.0, -1e9]), "normal"),
        (torch.tensor([0.0, 1.0]).to(torch.float8_e4m3fn), "uniform"),
    ],
)
def test_kinds(tensor, kind):
    assert distribution_of(tensor).kind == kind


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_mask_in_a_floating_point_type_keeps_its_two_values(dtype):
    mask = (torch.arange(100) % 3 > 0).to(dtype)
    spec = describe_tensor("mask", mask)
    drawn = torch.empty_like(mask)
    draw(drawn, spec.distribution, torch.Generator().manual_seed(0))
    written = eval(draw_expression(spec), {"torch": torch})
    for values in (drawn, written):
        assert values.dtype is dtype
        assert set(values.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize(("true", "share"), [(999, 0.99), (1, 0.01), (1000, 1.0), (0, 0.0), (300, 0.3)])
def test_a_mask_that_varies_is_drawn_with_both_values(true, share):
    assert distribution_of(torch.arange(1000) < true).a == share


def test_complex_draws_have_an_imaginary_part():
    phases = torch.polar(torch.ones(64), torch.arange(64.0))
    drawn = torch.empty_like(phases)
    for example in (phases, phases.abs().to(phases.dtype)):
        draw(drawn, distribution_of(example), torch.Generator().manual_seed(0))
        assert drawn.imag.std() > 0


def test_a_variance_stays_positive():
    found = distribution_of(torch.rand(100) * 1e-3)
    assert found.a >= 0


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-5])
def test_constant_weights_get_a_spread(value):
    found = distribution_of(torch.full((8,), value))
    assert found.kind == "uniform"
    assert found.a < value < found.b
    assert value == 0 or found.a > 0


def test_arguments_are_flattened_by_name():
    found = describe_arguments(
        ["x", "pair"], [torch.ones(2), (torch.ones(1), [torch.ones(3)]), 4], {"flag": None}
    )
    assert [i.name for i in found] == ["x", "pair.0", "pair.1.0", "arg2", "flag"]
    assert found[-1].keyword


def test_an_argument_that_is_nothing_we_know():
    with pytest.raises(TargetError, match="object"):
        describe_arguments(["x"], [object()], {})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Pair(torch.ones(1), [torch.ones(2)]), "x.a.1' is a Pair, and other processes get a plain tuple"),
        (torch.ones(2, 2).max(0), "x.a.1' is a max, .* plain tuple"),
        (pack_sequence([torch.ones(2)]), "x.a.1' is a PackedSequence, .* plain tuple"),
        (UserDict(a=torch.ones(1)), "x.a.1' is a UserDict, .* plain dict"),
    ],
)
def test_a_container_that_other_processes_do_not_get_is_refused(value, says):
    with pytest.raises(TargetError, match=says):
        describe_arguments(["x"], [{"a": [torch.ones(1), value]}], {})


def test_dicts_of_other_classes_are_described():
    found = describe_arguments(["x"], [OrderedDict(a=(torch.ones(1), torch.Size([2])))], {})
    assert [i.name for i in found] == ["x.a.0", "x.a.1.0"]


def test_containers_of_numbers_are_described():
    sizes = {"low": (7, 2.5), "names": ["a", None]}
    found = describe_arguments(["x", "sizes"], [torch.ones(1), sizes], {"shape": torch.Size([3]), "none": {}})
    assert [(i.name, i.value) for i in found[1:]] == [
        ("sizes.low.0", 7),
        ("sizes.low.1", 2.5),
        ("sizes.names.0", "a"),
        ("sizes.names.1", None),
        ("shape.0", 3),
    ]
    assert [i.keyword for i in found] == [False] * 5 + [True]
    with pytest.raises(TargetError, match=r"input 'x.1' is a set; pass tensors, numbers"):
        describe_arguments(["x"], [[torch.ones(1), {1}]], {})


def test_outputs_of_any_nesting():
    nested = {"a": [torch.ones(1)], "b": (torch.ones(2), {"c": torch.ones(3)}, "text")}
    assert [n for n, _ in flatten_tensors(nested)] == ["output.a.0", "output.b.0", "output.b.1.c"]


def test_tensors_in_any_container_move():
    one = torch.ones(1)
    value = [
        Pair(one, [one]),
        UserDict(a=one, b=UserDict(c=(one,))),
        OrderedDict(d=one),
        defaultdict(list, e=[one]),
    ]
    moved = to_device(value, torch.device("meta"))
    assert [type(v) for v in moved] == [type(v) for v in value]
    tensors = [t for _, t in flatten_tensors(moved)]
    assert len(tensors) == 6
    assert {t.device.type for t in tensors} == {"meta"}
    assert to_device(("text", None, 3), torch.device("meta")) == ("text", None, 3)

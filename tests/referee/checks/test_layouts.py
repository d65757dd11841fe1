"""Variants of a workload: the same values in another layout, or a part of them, and never something else."""

from __future__ import annotations

import math
import mmap
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.baselines.prepared import PreparedWorkload, guarded, laid_out
from agentforge.referee.checks.correctness.layouts import _variants
from agentforge.referee.inputs.argument_variants import conjugated, other_lengths, other_numbers, replaced
from agentforge.referee.inputs.inputs import Arguments, Inputs
from agentforge.referee.inputs.layouts import (
    SAME_SIZES,
    _prime_below,
    changed,
    changes,
    other_sizes,
    sizes_alone,
)
from agentforge.referee.workers import arguments as values
from agentforge.referee.workers.memory.shared_memory import Layout, aligned
from agentforge.schema import Workload

WORKLOAD = Workload(name="reference", source="reference")
shapes = st.lists(st.integers(1, 9), min_size=1, max_size=3)


def tensor_of(shape: list[int], start: float = 0.0) -> torch.Tensor:
    """Values that are all different."""
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape) + start


def course_of(*tensors: torch.Tensor) -> PreparedWorkload:
    """A prepared workload with the tensors in its first slot."""
    layouts, offset = [], 0
    for tensor in tensors:
        layouts.append(Layout.of(tensor, offset))
        offset += aligned(layouts[-1].nbytes)
    arguments = {"args": [{"tensor": layout.to_json()} for layout in layouts], "kwargs": {}}
    inputs = Inputs(WORKLOAD, Arguments(arguments, offset), None)
    for place, tensor in zip(inputs.tensors(0), tensors, strict=True):
        place.copy_(tensor)
    return PreparedWorkload(WORKLOAD, inputs, 1 << 16)


@given(shapes)
def test_other_layouts_hold_the_same_values(shape: list[int]) -> None:
    tensor = tensor_of(shape)
    found = changes([tensor])
    for name in SAME_SIZES:
        changed = found[name](tensor)
        if changed is not None:
            assert torch.equal(changed, tensor)
            assert changed.stride() != tensor.stride() or 1 in shape


def test_every_dimension_between_the_first_and_the_last_has_a_gap() -> None:
    spaced = SAME_SIZES["padded outer dimensions"]
    tensor = tensor_of([2, 3, 4, 5])
    changed = spaced(tensor)
    assert changed is not None
    assert torch.equal(changed, tensor)
    assert changed.stride() == (6 * 7 * 5, 7 * 5, 5, 1)
    assert spaced(tensor_of([20, 5])) is None


@pytest.mark.parametrize("channels", [1, 3])
def test_one_channel_is_stored_channels_last_too(channels: int) -> None:
    tensor = tensor_of([2, channels, 4, 5])
    changed = SAME_SIZES["channels last"](tensor)
    assert changed is not None
    assert torch.equal(changed, tensor)
    assert changed.stride() == (20 * channels, 1, 5 * channels, channels)


def test_rows_that_places_lie_beyond_are_not_cut_off() -> None:
    x, offsets, labels = torch.ones(64, 3), torch.tensor([0, 20, 41, 64]), torch.full((64,), 50)
    assert {n for n in changes([x, offsets]) if "rows" in n} == {"padded rows", "65 rows"}
    assert "7 rows" in changes([x, labels])
    assert {"63 rows", "7 rows"} <= changes([x, torch.tensor([0, 3, 6])]).keys()
    assert "1 rows" not in changes([x, torch.tensor([0, 3, 6])])


def test_variants_of_the_workload_s_sizes_come_first() -> None:
    tensor = tensor_of([8, 12])
    names = [name for _, name, _, _ in _variants(course_of(tensor), [tensor])]
    assert names[:4] == ["padded rows", "transposed memory", "slices", "forbidden pages"]
    assert {"7 rows", "1 rows", "0 rows", "9 rows", "11 columns", "1 columns"} == set(names[4:])


def names_of(*tensors: torch.Tensor, tables: set[int] | None, numbers: tuple[float, ...] = ()) -> set[str]:
    """Names of the variants of a workload whose last arguments are numbers."""
    prepared = course_of(*tensors)
    prepared.inputs.arguments.encoded["args"] += numbers
    return {name for _, name, _, _ in _variants(prepared, list(tensors), (), tables)}


def test_no_place_beyond_a_table_is_looked_up_if_that_ends_the_reference() -> None:
    tokens, numbers = torch.randint(900, (4, 512)), (7, 0.5, True)
    raises = names_of(tokens, tables=None, numbers=numbers)
    ends = names_of(tokens, tables={1024, 768, 900}, numbers=numbers)
    left_out = {"8 in place of the argument 7", "6 in place of the argument 7"}
    assert raises - ends == {*left_out, "1025 in place of the size 512"}
    assert "5 rows" in ends - names_of(tokens, tables={4})
    x = torch.rand(8, 100)
    assert names_of(x, tables=set(), numbers=(7,)) == names_of(x, tables=None, numbers=(7,))
    assert "8 in place of the argument 7" not in names_of(x, tokens, tables=set(), numbers=(7,))


def test_columns_that_places_lie_beyond_stay_if_that_ends_the_reference() -> None:
    x, places, mask = torch.rand(8, 100), torch.arange(100).repeat(8, 1), torch.ones(8, 100).long()
    assert "97 columns" in names_of(x, places, tables=None)
    assert not any("columns" in name for name in names_of(x, places, tables=set()))
    assert "97 columns" in names_of(x, places % 50, tables=set())
    assert "97 columns" in names_of(places, mask, tables=set())


@given(shapes)
def test_cut_ones_hold_a_part_and_longer_ones_the_whole(shape: list[int]) -> None:
    tensor = tensor_of(shape)
    for name, change in changes([tensor]).items():
        changed = change(tensor)
        if changed is None or name in SAME_SIZES:
            continue
        count, kind = int(name.split()[0]), name.split()[1]
        assert changed.is_contiguous()
        assert changed.shape[0 if kind == "rows" else -1] == count
        if kind == "columns":
            assert torch.equal(changed, tensor[..., :count])
        else:
            assert torch.equal(changed[: shape[0]], tensor[:count])


@given(st.integers(2, 50), st.integers(2, 50))
def test_a_size_that_two_dimensions_share_is_not_cut(rows: int, columns: int) -> None:
    found = changes([torch.ones(rows, columns), torch.ones(columns, rows)])
    assert not any("rows" in name and name not in SAME_SIZES for name in found)


@given(st.integers(0, 2000))
def test_the_prime_below(size: int) -> None:
    found = _prime_below(size)
    assert found == 1 or (found < size and all(found % n for n in range(2, found)))
    assert all(any(n % d == 0 for d in range(2, n)) for n in range(found + 1, size) if n > 1)


nested = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=4), shapes.map(tensor_of)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.lists(nested, max_size=3))
def test_other_layouts_take_the_places_of_all_tensors_in_order(arguments: list[Any]) -> None:
    encoded = [values.encode(a, lambda t: Layout.of(t)) for a in arguments]
    before = values.layouts(encoded)
    others = [Layout.dense([n + 1, 2], "float64", 64 * n) for n in range(len(before))]
    after = replaced(encoded, others)
    assert values.layouts(after) == others
    assert values.layouts(replaced(after, before)) == before
    assert replaced(after, before) == encoded


@given(st.lists(shapes, min_size=1, max_size=3))
def test_a_course_with_other_inputs_holds_them(several: list[list[int]]) -> None:
    tensors = [tensor_of(shape, 100.0 * n) for n, shape in enumerate(several)]
    prepared = course_of(*tensors)
    changed = [t.transpose(0, -1).contiguous().transpose(0, -1) * 2 for t in tensors]
    for shifted in (False, True):
        variant = laid_out(prepared, changed, shifted=shifted)
        for ours, theirs in zip(variant.inputs.tensors(0), changed, strict=True):
            assert torch.equal(ours, theirs)
            assert ours.stride() == theirs.stride()
            assert ours.data_ptr() % 64 == (4 if shifted else 0)
        variant.inputs.close()
    prepared.inputs.close()


@given(st.lists(shapes, min_size=1, max_size=3))
def test_guarded_inputs_end_where_a_forbidden_page_begins(several: list[list[int]]) -> None:
    tensors = [tensor_of(shape) for shape in several]
    prepared = course_of(*tensors)
    variant = guarded(prepared, tensors)
    assert all(offset % mmap.PAGESIZE == 0 for offset in variant.guards)
    for layout, before, after in zip(
        variant.inputs.layouts, variant.guards, variant.guards[1:], strict=False
    ):
        assert before + mmap.PAGESIZE <= layout.offset
        assert layout.offset + aligned(layout.nbytes) == after
    for ours, theirs in zip(variant.inputs.tensors(0), tensors, strict=True):
        assert torch.equal(ours, theirs)
    variant.inputs.close()
    prepared.inputs.close()


def test_each_number_among_the_arguments_gets_other_values() -> None:
    layout = Layout.of(torch.zeros(2, 3))
    tensor = {"tensor": layout.to_json()}
    options = {"dict": [["keep", True], [7, {"tuple": [math.inf, "mean", None, {"dtype": "int8"}]}]]}
    arguments = {"args": [tensor, 0.5, [tensor, 2]], "kwargs": {"options": options}}
    before = repr(arguments)
    found = dict(other_numbers(arguments))
    assert repr(arguments) == before
    names = ["0.375 in place of the argument 0.5", "1.5 in place of the argument 0.5"]
    names += ["0.0078125 in place of the argument 0.5"]
    names += ["3 in place of the argument 2", "1 in place of the argument 2"]
    assert list(found) == [*names, "False in place of the argument True"]
    assert found[names[1]] == {**arguments, "args": [tensor, 1.5, [tensor, 2]]}
    assert found["False in place of the argument True"]["kwargs"]["options"]["dict"][0] == ["keep", False]
    assert all(values.layouts(x) == [layout, layout] for x in found.values())


def test_a_list_of_tensors_gets_one_more_and_one_fewer() -> None:
    tensors = [tensor_of([2], start) for start in range(4)]
    given, alone = [tensors[1], tensors[2]], [tensors[3]]
    encoded = {
        "args": [values.encode(x, Layout.of) for x in (tensors[0], given)],
        "kwargs": {"alone": values.encode(alone, Layout.of)},
    }
    found = {name: (arguments, of) for name, arguments, of in other_lengths(encoded, tensors)}
    assert list(found) == ["3 tensors in a list", "1 tensors in a list"]
    (more, of_more), (fewer, of_fewer) = found.values()
    assert (len(more["args"][1]), len(fewer["args"][1])) == (3, 1)
    assert [int(x[0]) for x in of_more] == [0, 1, 2, 2, 3]
    assert [int(x[0]) for x in of_fewer] == [0, 1, 3]
    assert len(encoded["args"][1]) == 2


def sizes_of(*shapes_: tuple[int, ...], numbers: tuple[int, ...] = ()) -> dict[str, list[tuple[int, ...]]]:
    """Shapes of the variants with other sizes."""
    tensors = [torch.rand(shape) for shape in shapes_]
    made = {name: changed(tensors, change) for name, change in other_sizes(tensors, numbers).items()}
    return {name: [tuple(t.shape) for t in content or []] for name, content in made.items()}


def test_middle_dimensions_become_shorter_and_one_becomes_longer() -> None:
    assert sizes_of((4, 3, 24, 33)) == {
        "23 in place of the size 24": [(4, 3, 23, 33)],
        "67 in place of the size 33": [(4, 3, 24, 67)],
    }
    square = sizes_of((4, 3, 24, 24))
    assert square["23 in place of the size 24"] == [(4, 3, 23, 23)]
    assert sizes_of((64, 100)) == {"201 in place of the size 100": [(64, 201)]}


def test_dimensions_of_one_size_change_together() -> None:
    assert sizes_of((4, 8, 24, 24), (4, 24)) == {
        "23 in place of the size 24": [(4, 8, 23, 23), (4, 23)],
        "7 in place of the size 8": [(4, 7, 24, 24), (4, 24)],
        "49 in place of the size 24": [(4, 8, 49, 49), (4, 49)],
    }
    assert list(sizes_of((40, 30), (30, 20)).values()) == [
        [(40, 29), (29, 20)],
        [(40, 30), (30, 19)],
        [(37, 30), (30, 20)],
        [(40, 30), (30, 41)],
    ]


def test_sizes_that_were_given_as_numbers_stay() -> None:
    assert not sizes_of((4, 24, 48), numbers=(24, 48))
    assert "23 in place of the size 24" in sizes_of((4, 24, 48), numbers=(48,))


def test_larger_inputs_get_few_rows_and_no_long_ones() -> None:
    assert sizes_of((4096, 16, 32)) == {
        "13 in place of the size 16": [(7, 13, 32)],
        "65 in place of the size 32": [(7, 16, 65)],
    }
    assert sizes_of((1024, 1024)) == {"2049 in place of the size 1024": [(7, 2049)]}
    assert sizes_of((1, 512, 1 << 14)) == {"251 in place of the size 512": [(1, 251, 1 << 14)]}


def test_sizes_that_lengths_reach_are_not_cut() -> None:
    steps = torch.rand(4, 20, 3)
    assert "19 in place of the size 20" not in other_sizes([steps, torch.tensor([3, 20, 1, 2])], ())
    assert "19 in place of the size 20" in other_sizes([steps, torch.tensor([3, 18, 1, 2])], ())


def test_what_other_rows_do_not_continue_does_not_become_longer() -> None:
    drawn = torch.rand(4, 20)
    permutations = torch.arange(80).reshape(4, 20)
    for tensor in (drawn.sort().values, drawn.softmax(-1), permutations, drawn[:2], drawn[0]):
        assert not any(name.startswith("41") for name in other_sizes([tensor], ()))
    assert "41 in place of the size 20" in other_sizes([drawn], ())


@given(st.lists(st.lists(st.integers(1, 17), min_size=1, max_size=4), min_size=1, max_size=3))
def test_other_sizes_hold_a_part_or_the_whole(several: list[list[int]]) -> None:
    tensors = [torch.rand(shape) for shape in several]
    found = other_sizes(tensors, ())
    assert len(found) <= 4
    for name, change in found.items():
        to, of = int(name.split()[0]), int(name.split()[-1])
        content = changed(tensors, change)
        assert content is not None
        for before, after in zip(tensors, content, strict=True):
            assert tuple(after.shape) == tuple(to if n == of else n for n in before.shape)
            both = tuple(slice(min(pair)) for pair in zip(before.shape, after.shape, strict=True))
            assert torch.equal(before[both], after[both])


def test_a_longer_row_has_no_ties() -> None:
    tensor = torch.randperm(5 * 20).reshape(5, 20).float()
    (change,) = other_sizes([tensor], ()).values()
    longer = change(tensor)
    assert longer is not None
    assert all(row.unique().numel() == 41 for row in longer)


def test_what_became_longer_is_small() -> None:
    assert not any(name.startswith("201") for name in sizes_of((4, 16, 100, 100)))
    assert "201 in place of the size 100" in sizes_of((4, 3, 100, 100))


def alone_in(*shapes_: tuple[int, ...], measured: tuple[int, ...]) -> dict[str, list[tuple[int, ...]]]:
    """Shapes of the variants with one input that alone has another size."""
    tensors = [torch.rand(shape) for shape in shapes_]
    return {name: [tuple(t.shape) for t in made] for name, made in sizes_alone(tensors, {32}, measured)}


def test_an_input_is_shorter_alone_if_the_sizes_of_several_are_read() -> None:
    attention = 3 * [(2, 4, 64, 32)]
    assert alone_in(*attention, measured=(0, 1)) == {
        "61 in place of the size 64 of input 0 alone": [(2, 4, 61, 32), *attention[1:]],
        "61 in place of the size 64 of input 1 alone": [attention[0], (2, 4, 61, 32), attention[2]],
    }
    assert not alone_in(*attention, measured=(0,))
    assert not alone_in((40, 24), (16, 48), measured=(0, 1))


def test_few_sizes_change_alone_and_none_that_places_reach() -> None:
    long = 3 * [(20, 24, 28, 36)]
    assert len(alone_in(*long, measured=(0, 1, 2))) == 6
    tensors = [torch.rand(64, 3), torch.rand(64, 5), torch.full((64,), 63)]
    assert not list(sizes_alone(tensors, (), (0, 1)))
    assert list(sizes_alone(tensors[:2], (), (0, 1)))


def test_lazy_conjugates_have_the_same_values() -> None:
    numbers, real = torch.randn(3, 5, dtype=torch.complex64), torch.randn(4)
    prepared = course_of(real, numbers)
    found = conjugated(prepared.inputs.arguments.encoded, [real, numbers])
    assert found is not None
    encoded, content = found
    variant = laid_out(prepared, content, encoded)
    given_real, lazy = values.bind(variant.inputs.arguments.encoded, variant.inputs.content(0), 0)[0]
    assert lazy.is_conj() and not given_real.is_conj()
    assert torch.equal(lazy.resolve_conj(), numbers)
    assert torch.equal(given_real, real)
    assert conjugated(prepared.inputs.arguments.encoded, [real, real]) is None
    variant.inputs.close()
    prepared.inputs.close()

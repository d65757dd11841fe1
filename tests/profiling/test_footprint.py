from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.profiling.footprint import distinct_bytes, footprint_of


def covered(*views: torch.Tensor) -> int:
    """Distinct bytes of views of one memory, one element after the other."""
    places = set()
    for view in views:
        for index in itertools.product(*map(range, view.shape)):
            place = view.storage_offset() + sum(i * s for i, s in zip(index, view.stride(), strict=True))
            places |= {place * view.itemsize + byte for byte in range(view.itemsize)}
    return len(places)


def counted(*views: torch.Tensor) -> int:
    return distinct_bytes([found for view in views if (found := footprint_of(view))])


BASE = torch.zeros(3, 8, 10)


@pytest.mark.parametrize(
    "views",
    [
        (BASE,),
        (BASE[..., 0], BASE[..., 2]),
        (BASE[..., :5], BASE[..., 5:]),
        (BASE[..., :6], BASE[..., 4:], BASE[..., 1]),
        (BASE[:, ::2], BASE[:, ::3]),
        (BASE, BASE.transpose(0, 2), BASE[1]),
        (BASE[:2], BASE[1:]),
        (BASE.unfold(2, 4, 1),),
        (BASE.unfold(2, 4, 1), BASE[..., -1]),
        (BASE[:, :1].expand(3, 8, 10),),
        (BASE[0, 0, 0],),
        (BASE[:0], BASE[0]),
        (BASE.view(torch.int16)[..., ::2], BASE[..., :2]),
    ],
)
def test_each_byte_counts_once(views: tuple[torch.Tensor, ...]) -> None:
    assert counted(*views) == covered(*views)


def test_nothing_and_what_is_not_dense() -> None:
    assert counted() == counted(torch.zeros(0, 4)) == 0
    assert footprint_of(torch.eye(3).to_sparse()) is None


_VIEW = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_VIEW, st.integers(0, 20)), min_size=1, max_size=3))
def test_any_strides(places: list[tuple[list[tuple[int, int]], int]]) -> None:
    memory = torch.zeros(200, dtype=torch.int16)
    views = [memory.as_strided([n for n, _ in dims], [s for _, s in dims], offset) for dims, offset in places]
    assert counted(*views) == covered(*views)


def test_a_large_tensor_is_counted_by_one_of_its_rows() -> None:
    rows = torch.empty(1 << 20, 1 << 20, device="meta")
    assert counted(rows[:, :3], rows[:, 2:5]) == 5 * 4 << 20

"""Common texts of several sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.problems.sizes import common, exact_tiles, named_sizes

SIZES = [{"b": 2, "s": 16}, {"b": 8, "s": 64}, {"b": 3, "s": 17}, {"b": 5, "s": 40}]


def texts(write: object) -> list[str]:
    assert callable(write)
    return [write(**sizes) for sizes in SIZES]


def test_each_varying_number_becomes_an_expression_of_the_sizes() -> None:
    found = common(texts(lambda b, s: f"v12[{b * s * 3}, {s - 0}] + 1e-05 * {7} * {2 * b + 1}"), SIZES)
    assert found is not None
    assert found.at({"b": 11, "s": 100}) == "v12[3300, 100] + 1e-05 * 7 * 23"


def test_a_number_of_tiles_is_a_rounded_quotient() -> None:
    found = common(texts(lambda b, s: f"{-(-b * s * 96 // 1024)} of {b * s * 96}"), SIZES)
    assert found is not None
    assert found.at({"b": 6, "s": 33}) == f"{-(-6 * 33 * 96 // 1024)} of {6 * 33 * 96}"


@pytest.mark.parametrize(
    "write",
    [
        lambda b, s: "f(x)" if s < 20 else "g(x)",
        lambda b, s: f"{1 / s}",
        lambda b, s: f"{b**5}",
        lambda b, s: f"{max(b, 4)}",
        lambda b, s: f"x{s}",
    ],
)
def test_texts_that_differ_in_more_have_nothing_in_common(write: object) -> None:
    assert common(texts(write), SIZES) is None


@given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 100), st.integers(0, 50))
def test_a_common_text_is_right_for_other_sizes(b: int, s: int, factor: int, offset: int) -> None:
    found = common(texts(lambda b, s: f"{factor * b * s + offset}|{s}|{b}"), SIZES)
    assert found is not None
    assert found.at({"b": b, "s": s}) == f"{factor * b * s + offset}|{s}|{b}"


def test_dimensions_that_change_together_share_a_name() -> None:
    names, sizes = named_sizes([[(2, 16, 8), (8,), (2, 8)], [(4, 16, 8), (8,), (4, 8)]])
    assert names == {"n0": (0, 0)}
    assert sizes == [{"n0": 2}, {"n0": 4}]


def test_tiles_without_a_rest_are_reported() -> None:
    for smallest, remainders in ((256, ["(n0) % 8"]), (250, [])):
        sizes = [{"n0": n} for n in (smallest, 512, 1024)]
        text = common([f"{smallest} 32", "512 64", "1024 128"], sizes)
        assert text is not None
        assert exact_tiles(text, sizes) == remainders

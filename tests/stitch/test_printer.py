"""Printed literals read back as the same values."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.stitch.graph.printer import Unprintable, literal

from .making import Stitched

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from([torch.float32, torch.int64, torch.strided, torch.channels_last, torch.device("cpu")]),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


def equal(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))  # type: ignore[arg-type]
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@given(VALUES)
def test_literals_read_back(value: object) -> None:
    assert equal(eval(literal(value), {"torch": torch}), value)


def test_a_gpu_has_no_number() -> None:
    assert literal([torch.device("cuda:1")]) == "[torch.device('cuda')]"


def test_what_has_no_literal_is_refused() -> None:
    with pytest.raises(Unprintable, match="Generator"):
        literal(torch.Generator())


def test_intermediates_are_deleted_after_their_last_use(block: Stitched) -> None:
    (source,) = (text for name, text in block.sources.items() if name.endswith(".py"))
    lines = [line.strip() for line in source.splitlines() if line.startswith("    ")]
    made = {line.split(" = ")[0] for line in lines if " = " in line and "," not in line.split(" = ")[0]}
    deleted = {name for line in lines if line.startswith("del ") for name in line[4:].split(", ")}
    returned = next(line for line in lines if line.startswith("return"))
    kept = made - deleted
    assert len(deleted) > len(kept)
    assert all(name in returned for name in kept)
    assert not any(name.startswith(("p_", "b_")) for name in deleted)


def test_the_source_names_what_each_kernel_stands_for(block: Stitched) -> None:
    (source,) = (text for name, text in block.sources.items() if name.endswith(".py"))
    assert source.count("norm_") >= 2
    assert "# /mul" in source

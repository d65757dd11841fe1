"""Ranges of shapes: accepted texts, and the shapes that are measured and checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.frontends import FrontendOptions, load_target, parse_shapes
from agentforge.frontends.shapes import sampled
from agentforge.schema import MemoryShortageError, TargetError, UsageError

MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x, mask, scale=2.0):
        assert x.shape[0] <= 16
        return self.linear(x) * mask[..., None] * scale


def get_inputs():
    return [torch.randn(4, 12, 8), torch.randint(0, 2, (4, 12))]


def get_init_inputs():
    return []
"""

names = st.sampled_from(["batch", "seq", "x.2", "ids.1", "x.0+ids.0", "length:x.1+mask.0+mask.1"])
ends = st.tuples(st.integers(1, 5000), st.integers(1, 5000)).map(sorted).filter(lambda e: e[0] < e[1])


@given(st.dictionaries(names, ends, min_size=1))
def test_what_is_written_is_read(wanted: dict[str, list[int]]) -> None:
    text = ", ".join(f"{name}={low}..{high}" for name, (low, high) in wanted.items())
    assert parse_shapes(text) == {name: tuple(e) for name, e in wanted.items()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch=1", "does not read"),
        ("batch=a..b", "does not read"),
        ("", "does not read"),
        ("length=1..8", "does not know length"),
        ("length:x=1..8", "does not know length:x"),
        ("x.1+mask=1..8", r"does not know x.1\+mask"),
        ("for:x.1=1..8", "does not know for:x.1"),
        ("a:x.1=1..8,a:x.2=1..8", "has a twice"),
        ("x.2=1..8,x_2:y.1=1..8", "has x_2 twice"),
        ("batch=8..8", "below the second"),
        ("batch=0..8", "at least 1"),
        ("batch=9..8", "below the second"),
        ("batch=1..20000000", "at most 16777216"),
        ("batch=1..8,batch=1..9", "batch twice"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_shapes(text)


@given(st.lists(ends, min_size=1, max_size=3))
def test_few_shapes_are_measured_corners_among_them_and_others_are_checked(ranges: list[list[int]]) -> None:
    pairs = [(low, high) for low, high in ranges]
    measured, probes = sampled(pairs)
    assert {tuple(e[0] for e in pairs), tuple(e[1] for e in pairs)} <= set(measured)
    assert len(measured) <= 5
    assert len(probes) <= 4
    assert not set(measured) & set(probes)
    for sizes in (*measured, *probes):
        assert all(low <= n <= high for n, (low, high) in zip(sizes, pairs, strict=True))


def test_wide_ranges_have_powers_of_two_and_primes() -> None:
    measured, probes = sampled([(1, 32), (128, 2048)])
    assert (4, 512) in measured
    assert (7, 521) in probes
    assert (31, 2047) in probes


def file(tmp_path: Path) -> str:
    path = tmp_path / "masked.py"
    path.write_text(MODEL)
    return str(path)


@pytest.mark.slow
def test_a_name_is_a_dimension_of_every_input_with_its_size(tmp_path: Path) -> None:
    target = load_target(file(tmp_path), FrontendOptions(shapes="batch=1..16,seq=4..24"))
    assert [r.places for r in target.shapes] == [(("x", 0), ("mask", 0)), (("x", 1), ("mask", 1))]
    shapes = {w.name: [i.shape for i in w.inputs if i.type == "tensor"] for w in target.workloads}
    assert shapes["batch=16,seq=24"] == [(16, 24, 8), (16, 24)]


def test_dimensions_that_have_one_size_are_named_together(tmp_path: Path) -> None:
    path = tmp_path / "attention.py"
    path.write_text(
        MODEL.replace("mask[..., None] * scale", "1.0 + (mask @ x)").replace(
            "torch.randint(0, 2, (4, 12))", "torch.rand(12, 12)"
        )
    )
    with pytest.raises(TargetError, match=r"dimensions that must be equal together: length:q.1\+mask.0"):
        load_target(str(path), FrontendOptions(shapes="x.1=4..24"))
    target = load_target(str(path), FrontendOptions(shapes="length:x.1+mask.0+mask.1=4..24"))
    assert [(r.name, r.places) for r in target.shapes] == [("length", (("x", 1), ("mask", 0), ("mask", 1)))]
    shapes = {w.name: [i.shape for i in w.inputs if i.type == "tensor"] for w in target.workloads}
    assert shapes["length=24"] == [(4, 24, 8), (24, 24)]


def test_inputs_in_containers_do_not_vary(tmp_path: Path) -> None:
    path = tmp_path / "sizes.py"
    listed = MODEL.replace("torch.randint(0, 2, (4, 12))]", "torch.ones(4, 12), [2.0]]")
    path.write_text(listed.replace("* scale", "* scale[0]"))
    with pytest.raises(UsageError, match=r"not lists or dicts: x, mask, scale\.0"):
        load_target(str(path), FrontendOptions(shapes="batch=1..8"))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x.0+mask.1=1..8", UsageError, r"the dimensions x.0\+mask.1 differ in size"),
        ("batch=1..32", TargetError, r"fails at batch=31|fails at batch=32"),
        ("x.2=8..16", TargetError, "fails at x.2="),
        (
            "y.0=1..4",
            UsageError,
            r"no input has the dimension y.0; the inputs are x\[4, 12, 8\], mask\[4, 12\]",
        ),
        ("x.0=1..4,batch=1..4", UsageError, "x.0 and batch are the same dimension of x"),
    ],
)
def test_a_range_that_the_model_refuses_is_refused(
    tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_target(file(tmp_path), FrontendOptions(shapes=text))


def test_a_shape_that_does_not_fit_is_short_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text(MODEL.replace("* scale", "* x.new_zeros(1 << 44 if x.shape[0] > 4 else 1)"))
    with pytest.raises(MemoryShortageError, match="make its inputs smaller") as raised:
        load_target(str(path), FrontendOptions(shapes="batch=1..16"))
    assert "--shapes" not in str(raised.value)


def test_a_generation_sets_its_shapes(tmp_path: Path) -> None:
    options = FrontendOptions(shapes="batch=1..4", generate="prompt=2,new=2")
    with pytest.raises(UsageError, match="leave out --shapes"):
        load_target("hf:config.json", options)

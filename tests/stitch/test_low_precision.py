"""Products in lower precision: near torch's, in float32 if that is needed, anew if weights change."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from agentforge.stitch.files import Mode
from agentforge.stitch.runtime.products import (
    LOWERED,
    PACKED,
    BFloat16Products,
    Int8Products,
    Products,
    product,
    products_for,
)
from agentforge.stitch.variants import VariantBuilder

from .making import choose_all, stitch_in_process, target_of
from .test_products import CHANGES, MODEL

LIMIT: dict[str, tuple[float, float]] = {"bf16": (1e-3, 6e-3), "int8": (3e-3, 2e-2)}
"""Least and largest relative error of a product of normal numbers: it is neither float32 nor wrong."""

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available() or not torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    reason="torch without oneDNN, or a processor without bfloat16 kernels",
)
precisions = pytest.mark.parametrize("precision", ["bf16", "int8"])


@pytest.fixture
def counted() -> Counter[str]:
    return Counter()


@pytest.fixture
def make(counted: Counter[str]) -> Callable[[str], Products]:
    counts = SimpleNamespace(count=lambda name: counted.update([name]))
    return lambda precision: products_for(f"kernels+{precision}", counts)  # type: ignore[arg-type]


def error(products: Products, x: torch.Tensor, weight: torch.Tensor, *rest: object) -> float:
    bias, transposed = (*rest, None, False)[:2] if rest else (None, False)
    with torch.inference_mode():
        expected = product(x, weight, bias, transposed)  # type: ignore[arg-type]
        got = products(x, weight, bias, transposed)  # type: ignore[arg-type]
    assert got.shape == expected.shape
    assert got.dtype is torch.float32
    return float((got - expected).norm() / expected.norm())


def test_float32_is_what_every_other_mode_computes(make: Callable[[str], Products]) -> None:
    for mode in ("packed", "graph", "streams", "compile"):
        assert type(make(mode)) is Products
    assert type(make("bf16")) is BFloat16Products
    assert type(make("int8")) is Int8Products


@needs_onednn
@precisions
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("leading", [(), (1,), (7,), (2, 5), (2, 1, 3)])
def test_near_what_torch_computes(
    make: Callable[[str], Products],
    counted: Counter[str],
    precision: str,
    leading: tuple[int, ...],
    transposed: bool,
) -> None:
    torch.manual_seed(0)
    products, weight = make(precision), nn.Parameter(torch.randn(48, 160))
    columns, width = reversed(weight.shape) if transposed else weight.shape
    low, high = LIMIT[precision]
    for x in (torch.randn(*leading, width), torch.randn(*leading, 2 * width)[..., ::2]):
        for bias in (None, torch.randn(columns)):
            assert low / 2 < error(products, x, weight, bias, transposed) < high
    assert counted == {LOWERED: 4}


@needs_onednn
def test_int8_has_a_scale_for_each_row_and_column(make: Callable[[str], Products]) -> None:
    torch.manual_seed(0)
    sizes = torch.logspace(-6, 6, 24)
    weight, x = nn.Parameter(torch.randn(24, 64) * sizes[:, None]), torch.randn(24, 64) * sizes[:, None]
    with torch.inference_mode():
        expected, got = product(x, weight, None, False), make("int8")(x, weight, None, False)
    relative = (got - expected).abs() / (sizes[:, None] * sizes)
    assert float(relative.max()) < 0.5  # of numbers with a standard deviation of 8


@needs_onednn
@precisions
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_weight_that_changed_is_packed_anew(
    make: Callable[[str], Products], precision: str, change: Callable[[nn.Parameter], object]
) -> None:
    products, weight, x = make(precision), nn.Parameter(torch.randn(24, 40)), torch.randn(6, 40)
    for _ in range(3):
        assert error(products, x, weight) < 2 * LIMIT[precision][1]
        with torch.no_grad():
            change(weight)
    assert error(products, x, weight) < 2 * LIMIT[precision][1]


@needs_onednn
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("where", ["x", "weight"])
def test_what_8_bits_cannot_hold_is_computed_in_float32(
    make: Callable[[str], Products], counted: Counter[str], value: float, where: str
) -> None:
    weight, x = nn.Parameter(torch.randn(8, 16)), torch.randn(4, 16)
    with torch.no_grad():
        (x if where == "x" else weight)[1, 3] = value
    with torch.inference_mode():
        expected, got = product(x, weight, None, False), make("int8")(x, weight, None, False)
    assert torch.equal(got, expected) or torch.allclose(got, expected, equal_nan=True)
    assert not counted


@needs_onednn
def test_zeros_are_exact(make: Callable[[str], Products]) -> None:
    with torch.inference_mode():
        zeros = nn.Parameter(torch.zeros(8, 16))
        assert not make("int8")(torch.randn(4, 16), zeros, None, False).any()
    with torch.inference_mode():
        assert not make("int8")(torch.zeros(4, 16), nn.Parameter(torch.randn(8, 16)), None, False).any()


def test_without_bfloat16_kernels_torch_computes_in_float32(
    make: Callable[[str], Products], counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    assert error(make("bf16"), torch.randn(4, 16), nn.Parameter(torch.randn(8, 16))) == 0.0
    assert not counted


@needs_onednn
@pytest.mark.parametrize("mode", ["kernels+bf16", "kernels+int8"])
def test_a_model_with_products_in_lower_precision(mode: Mode, tmp_path: Path) -> None:
    stitched = stitch_in_process(MODEL, tmp_path, mode, choose_all)
    original, model = stitched.model(), stitched.package.optimize(stitched.model())
    counts = sys.modules["agentforge_cpp"]
    before = counts.calls().get(LOWERED, 0)
    for _ in range(2):
        model.load_state_dict(original.state_dict())
        (x,), _ = stitched.inputs(1)
        with torch.inference_mode():
            got, expected = model(x), original(x)
        assert 1e-4 < float((got - expected).norm() / expected.norm()) < 0.05
        with torch.no_grad():
            original.up.weight.mul_(0.5)
    assert counts.calls()[LOWERED] - before == 8
    assert stitched.package.calls()[LOWERED] == 8
    model.load_state_dict(original.state_dict())
    assert torch.equal(model(x), original(x)), "with gradients the original runs"


@pytest.mark.slow
@needs_onednn
def test_a_variant_expects_its_products_in_lower_precision() -> None:
    variants = VariantBuilder(target_of(MODEL), {})
    variant, strict = (variants.with_kernels([], mode) for mode in ("kernels+bf16", "kernels+packed"))
    assert variant is not None
    assert strict is not None
    assert variant.expected == {LOWERED: 4}
    assert strict.expected == {PACKED: 4}
    assert variant.packed == strict.packed
    assert variant.label == "the model with products in bfloat16"
    texts = ({s.path: s.content for s in v.solution.sources if "units/" in s.path} for v in (variant, strict))
    assert next(texts) == next(texts), "the same code: only the runtime's products differ"

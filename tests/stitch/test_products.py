"""Products from packed weights: as torch computes them, also after the weights have changed."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from agentforge.schema import MoveKind
from agentforge.stitch.graph.products import packable
from agentforge.stitch.runtime.products import PACKED, Products, product
from agentforge.stitch.variants import VariantBuilder

from .making import Choose, choose_all, same, stitch_in_process, target_of

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(256, 512)
        self.down = nn.Parameter(torch.randn(512, 256))
        self.shift = nn.Parameter(torch.randn(256))
        self.small = nn.Linear(256, 4)

    def forward(self, x):
        y = torch.addmm(self.shift, self.up(x).relu(), self.down)
        return self.small(y @ self.up.weight.t() @ self.down)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def counted() -> Counter[str]:
    return Counter()


@pytest.fixture
def products(counted: Counter[str]) -> Products:
    return Products(SimpleNamespace(count=lambda name: counted.update([name])))  # type: ignore[arg-type]


def agree(products: Products, x: torch.Tensor, weight: torch.Tensor, **given: Any) -> None:
    bias, transposed = given.get("bias"), given.get("transposed", False)
    with torch.inference_mode():
        expected = product(x, weight, bias, transposed)
        torch.testing.assert_close(products(x, weight, bias, transposed), expected, rtol=1e-4, atol=1e-4)


@needs_onednn
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("leading", [(), (1,), (7,), (2, 5), (2, 1, 3)])
def test_as_torch_computes_it(
    products: Products, counted: Counter[str], leading: tuple[int, ...], transposed: bool
) -> None:
    weight = nn.Parameter(torch.randn(17, 33))
    columns, width = reversed(weight.shape) if transposed else weight.shape
    x, bias = torch.randn(*leading, width), torch.randn(columns)
    agree(products, x, weight, transposed=transposed)
    agree(products, x, weight, bias=bias, transposed=transposed)
    strided = torch.randn(*leading, 2 * width)[..., ::2]
    agree(products, strided, weight, transposed=transposed)
    assert counted[PACKED] == 3


CHANGES: dict[str, Callable[[nn.Parameter], object]] = {
    "in place": lambda w: w.add_(1.0),
    "one element in place": lambda w: w[3, 3].add_(1.0),
    "through data": lambda w: w.data.mul_(2.0),
    "one element through data": lambda w: w.data[3, 3].add_(1.0),
    "two rows change places through data": lambda w: w.data.copy_(w.data[[1, 0, *range(2, 24)]]),
    "one element through NumPy": lambda w: w.detach().numpy().__setitem__((23, 39), 7.0),
    "other memory": lambda w: setattr(w, "data", torch.randn_like(w)),
    "loaded": lambda w: w.copy_(torch.randn_like(w)),
}


@needs_onednn
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_weight_that_changed_is_packed_anew(
    products: Products, change: Callable[[nn.Parameter], object]
) -> None:
    weight, x = nn.Parameter(torch.randn(24, 40)), torch.randn(6, 40)
    for _ in range(3):
        agree(products, x, weight)
        with torch.no_grad():
            change(weight)
    agree(products, x, weight)


@needs_onednn
def test_packed_weights_go_with_their_weights(products: Products) -> None:
    first, second = (nn.Parameter(torch.randn(8, 8)) for _ in range(2))
    for weight in (first, second, first):
        agree(products, torch.randn(4, 8), weight)
    assert len(products._kept) == 2
    del first, weight
    gc.collect()
    assert len(products._kept) == 1


def test_what_cannot_be_watched_is_not_packed(products: Products, counted: Counter[str]) -> None:
    with torch.inference_mode():
        weight = torch.randn(8, 8)
    agree(products, torch.randn(4, 8), weight)
    agree(products, torch.randn(4, 8), torch.randn(8, 16)[:, ::2])
    assert not counted


def _packable(function: Callable[..., torch.Tensor], *shapes: tuple[int, ...], **options: Any) -> int:
    inputs = tuple(torch.randn(shape, **options) for shape in shapes)

    class Function(nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            return function(*args)

    graph = torch.export.export(Function(), inputs, strict=False).graph
    places = [n for n in graph.nodes if n.op == "placeholder"]
    found = packable(graph.nodes, {places[1]})
    assert all(p.weight is places[1] for p in found.values())
    return len(found)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (F.linear, ((64, 512), (512, 512))),
        (lambda x, w, b: F.linear(x, w, b), ((2, 32, 512), (512, 512), (512,))),
        (lambda x, w: x @ w, ((64, 512), (512, 512))),
        (lambda x, w: x @ w.t(), ((64, 512), (512, 512))),
        (lambda x, w: x @ w.transpose(-1, -2), ((64, 512), (512, 512))),
        (lambda x, w, b: torch.addmm(b, x, w), ((64, 512), (512, 512), (512,))),
    ],
)
def test_products_with_a_weight_are_found(
    function: Callable[..., torch.Tensor], shapes: tuple[tuple[int, ...], ...]
) -> None:
    assert _packable(function, *shapes) == 1
    assert _packable(function, *shapes, dtype=torch.float64) == 0


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (F.linear, ((4, 32), (32, 32))),
        (lambda x, w: w @ x, ((512, 512), (512, 512))),
        (lambda x, w: x @ w, ((4, 64, 512), (4, 512, 512))),
        (lambda x, w, b: torch.addmm(b, x, w, beta=2.0), ((64, 512), (512, 512), (512,))),
        (lambda x, w, b: torch.addmm(b, x, w), ((64, 512), (512, 512), (64, 512))),
        (lambda x, w, b: torch.addmm(b, x, w), ((64, 512), (512, 512), (1,))),
        (lambda x, w, b: F.linear(x, w, b.expand(512)), ((64, 512), (512, 512), (1,))),
        (lambda x, w, b: F.linear(x, w, b[::2]), ((64, 512), (512, 512), (1024,))),
        (lambda x, w: F.linear(x[x[:, 0] > 0], w), ((64, 512), (2048, 512))),
    ],
)
def test_other_products_stay(
    function: Callable[..., torch.Tensor], shapes: tuple[tuple[int, ...], ...]
) -> None:
    assert _packable(function, *shapes) == 0


@needs_onednn
@pytest.mark.parametrize("choose", [choose_all, lambda _: None], ids=["kernels", "no kernels"])
def test_a_model_with_packed_weights(choose: Choose, tmp_path: Path) -> None:
    stitched = stitch_in_process(MODEL, tmp_path, "kernels+packed", choose)
    assert [len(plan["products"]) for plan in stitched.plans] == [4]
    original, model = stitched.model(), stitched.package.optimize(stitched.model())
    counts = sys.modules["agentforge_cpp"]
    before = counts.calls().get(PACKED, 0)
    for _ in range(2):
        model.load_state_dict(original.state_dict())
        (x,), _ = stitched.inputs(1)
        with torch.inference_mode():
            assert same(model(x), original(x), 1e-3)
        with torch.no_grad():
            original.up.weight.mul_(0.5)
    assert counts.calls()[PACKED] - before == 8
    assert stitched.package.calls()[PACKED] == 8
    with torch.inference_mode():
        assert same(torch.compile(model, backend="eager", fullgraph=True)(x), model(x), 1e-3)


@needs_onednn
def test_a_restored_model_can_be_converted_by_swapping_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)
    source = MODEL.replace("addmm(self.shift,", "addmm(self.shift.exp(),")
    moves = [MoveKind.FOLD_CONSTANTS]
    stitched = stitch_in_process(source, tmp_path, "kernels+packed", lambda _: None, moves=moves)
    assert stitched.places[MoveKind.FOLD_CONSTANTS] == 1
    model = stitched.package.optimize(stitched.model())
    (x,), _ = stitched.inputs(1)
    with torch.no_grad():
        expected = model(x)
        stitched.package.restore(model)
        assert same(model.double()(x.double()).float(), expected, 1e-3)


@pytest.mark.slow
@needs_onednn
def test_a_variant_knows_how_many_there_are() -> None:
    variants = VariantBuilder(target_of(MODEL), {})
    variants.prepare([[]], packed=True)
    assert variants.with_kernels([], "kernels") is None
    variant = variants.with_kernels([], "kernels+packed")
    assert variant is not None
    assert variant.expected == {PACKED: 4}
    assert variant.label == "the model with packed weights"

"""Numbers of generated kernels: indices, narrow integers, half types, quotients and edges of statistics."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agentforge.codegen import Options, generate

from .compiled import build, check, compare, integers, problem

randn = torch.randn


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


INDICES: dict[str, tuple[str, list[torch.Tensor], tuple[int, ...]]] = {
    "labels": (
        "return F.cross_entropy(x0, x1, ignore_index=3)",
        [randn(33, 57), integers(0, 57, 33)], (57, -1, -100),
    ),
    "gather": (
        "return torch.gather(x0, 1, x1) * 2",
        [randn(300, 200), integers(0, 200, 300, 150)], (200, -1, 1 << 40),
    ),
    "gather by columns": (
        "return torch.gather(x0, 0, x1).sum(0)", [randn(40, 300), integers(0, 40, 40, 300)], (40, -1)
    ),
    "selection": ("return x0.index_select(1, x1) * 2", [randn(9, 70), integers(0, 70, 41)], (70, -1)),
    "embedding": ("return F.embedding(x1, x0) * 2", [randn(50, 16), integers(0, 50, 3, 7)], (50, -1)),
    "padded embedding": (
        "return F.pad(F.embedding(x1 - 3, x0), (0, 0, 2, 2)) + 1",
        [randn(50, 16), integers(3, 53, 3, 7)], (2, 53),
    ),
    "index": (
        "return x0[x1] * 2, x0[:, x2] * 2",
        [randn(50, 16), integers(-50, 50, 3, 7), integers(0, 16, 3)], (50, -51),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", INDICES)
def test_an_index_out_of_bounds_raises_as_in_torch(name: str, tmp_path: Path) -> None:
    body, (table, indices, *rest), wrong = INDICES[name]
    new, reference = build(body, [table, indices, *rest], tmp_path)
    for value in wrong:
        changed = indices.clone()
        changed.view(-1)[-1] = value
        shown = value - 3 if name == "padded embedding" else value
        with pytest.raises(IndexError, match=f"index {shown} is out of bounds"):
            new(table, changed, *rest)
        with pytest.raises((IndexError, RuntimeError)):
            reference(table, changed, *rest)
    compare(new, reference, [table, indices, *rest])


@pytest.mark.slow
def test_positions_of_extremes_of_all_elements_keep_dimensions(tmp_path: Path) -> None:
    body = (
        "return (x0.argmax(keepdim=True), x0.argmin(keepdim=True) + 1, x0[0].argmax(keepdim=True),\n"
        "    *x0[0, 0].max(0))"
    )
    check(body, [randn(5, 19)], tmp_path)


@pytest.mark.slow
def test_narrow_integers_wrap_as_in_torch(tmp_path: Path) -> None:
    body = (
        "h = x0 * 1000003\n"
        "return (h % 977, (x0.to(torch.int16) + x1) // -7, x2 - 3 > 250, (x0 * 65537).to(torch.uint8) * 2,\n"
        "    x0.sum(0, dtype=torch.int32) // 3, -x1 < 0, ~x2 > 100, h.abs().amax(-1), x2.clone())"
    )
    large = integers(-(1 << 31), 1 << 31, 6, 40).int()
    small = integers(-(1 << 15), 1 << 15, 6, 40).short()
    check(body, [large, small, integers(0, 256, 6, 40).byte()], tmp_path)


@pytest.mark.slow
def test_casts_to_half_types_round(tmp_path: Path) -> None:
    body = (
        "h = x0.half()\n"
        "return (h.float(), x0.bfloat16().t().float() * 2, h + x0, torch.cat((h, x0)),\n"
        "    x1.bfloat16().double(), x0.to(torch.bfloat16).half().float(), h == x0, h * 1,\n"
        "    x0 - torch.full_like(x0, 0.1).half())"
    )
    inputs = [randn(6, 40) * 100, randn(6, 40, dtype=torch.float64)]
    new, reference = build(body, inputs, tmp_path)
    for a, b in zip(new(*inputs), reference(*inputs), strict=True):
        assert torch.equal(a, b)


def test_casts_round_if_elements_are_chosen_from_their_result(tmp_path: Path) -> None:
    body = (
        "h, c, y = x0.bfloat16(), x0 > 0, torch.zeros_like(x0, dtype=torch.float16)\n"
        "y.copy_(x0)\n"
        "chosen = (F.relu(h), -h, h.abs(), torch.maximum(h, h.flip(0)), h.amax(1), *h.chunk(2, 1), y,\n"
        "    h.clamp(-0.3, 0.3), torch.where(c, h, 0.1), F.pad(h, (1, 1), value=0.1), F.max_pool1d(h, 2),\n"
        "    h.max(1)[0], torch.arange(300, dtype=torch.bfloat16))\n"
        "return (*(t.float() for t in chosen), h.argmax(1), h.max(1)[1], h.floor(), h.round(), h % 0.5,\n"
        "    torch.full_like(x0, 0.1, dtype=torch.bfloat16).float() * x0)"
    )
    x = torch.cat([randn(4, 40), torch.linspace(0.99, 1.01, 80).view(2, 40)])
    new, reference = build(body, [x], tmp_path)
    for a, b in zip(new(x), reference(x), strict=True):
        assert torch.equal(a, b)


def test_constants_have_the_precision_of_their_type(tmp_path: Path) -> None:
    body = (
        "return (torch.full((4,), 0.1).double() * x0, torch.full((4,), 16777217.0).long() * x1,\n"
        "    torch.full((4,), 0.1, dtype=torch.float64).float().double() + x0)"
    )
    inputs = [torch.rand(4, dtype=torch.float64), integers(0, 9, 4)]
    new, reference = build(body, inputs, tmp_path)
    for a, b in zip(new(*inputs), reference(*inputs), strict=True):
        assert torch.equal(a, b)


def test_arithmetic_of_half_types_does_not_round_between_operators() -> None:
    body = "return F.silu(x0) * x1 + x0.float().mean(-1, keepdim=True).bfloat16()"
    definition, workload = problem(body, [randn(6, 40).bfloat16(), randn(6, 40).bfloat16()])
    kernel = generate(definition, (workload,), Options())[1].content
    assert "af::from_bfloat16(af::to_bfloat16(" not in kernel


def test_comparisons_of_half_types_round_their_number(tmp_path: Path) -> None:
    body = "return tuple(y for x in (x0, x1) for y in (x <= 0.7, x > 0.3, x == 0.1, x < 70000, x >= 5))"
    x = torch.tensor([0.1, 0.3, 0.7, 1.0, 5.0, float("inf"), float("nan"), 65504.0])
    check(body, [x.half(), x.bfloat16()], tmp_path)


def test_negated_constants(tmp_path: Path) -> None:
    body = "return tuple(-torch.full_like(x0, c) * x0 for c in (-float('inf'), float('inf'), -0.0, -2.5))"
    check(body, [torch.rand(40) + 1], tmp_path)


@pytest.mark.slow
def test_quotients_that_become_integers_are_exact(tmp_path: Path) -> None:
    body = "return torch.floor(x0 / 41), (x0 / 47).long(), torch.div(x0, 49, rounding_mode='trunc'), x0 / 3"
    x = torch.arange(1000.0)
    new, reference = build(body, [x], tmp_path, grain=1)
    for a, b in zip(new(x), reference(x), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("math", ["fast", "strict"])
def test_means_of_equal_integers_are_exact(math: str, tmp_path: Path) -> None:
    body = (
        "return (x0.mean(1).floor(), x0.mean(1).long(), torch.var_mean(x0, 1)[1].floor(),\n"
        "    F.avg_pool2d(x0[None, None], (1, 41)).floor())"
    )
    x = torch.ones(64, 41)
    new, _ = build(body, [x], tmp_path, math=math)
    assert all((t == 1).all() for t in new(x))


def test_quotients_that_are_compared_are_exact(tmp_path: Path) -> None:
    x = torch.ones(64, 41)
    new, reference = build("return x0.mean(1) == 1, x0.sum(1) / 41 != 1", [x], tmp_path)
    for a, b in zip(new(x), reference(x), strict=True):
        assert torch.equal(a, b)


def test_products_of_roots_are_not_roots_of_products(tmp_path: Path) -> None:
    body = (
        "return tuple(y for x in (x0, x1) for r in (x.sqrt(),) for y in (r**2, r * x.flip(0).sqrt(), r**4))"
    )
    x = torch.tensor([-4.0, -9.0, 4.0, 9.0, 1e30, float("inf"), float("nan"), 1e35, 1e30, 0.5, -1.0, -2.0])
    check(body, [x.repeat(30), x.repeat(30).double()], tmp_path)


def test_roots_and_logarithms_of_negative_numbers_are_nan(tmp_path: Path) -> None:
    body = (
        "return tuple(y for x in (x0, x1) for p in (x.pow(1.5),) for y in (x ** (1 / 3), p * p, x**-3,\n"
        "    x**5, x.log2().exp2(), x.log().exp(), x**-0.3, x.pow(x.flip(0).round())))"
    )
    inf = float("inf")
    x = torch.tensor([-4.0, -0.5, 4.0, 9.0, 1e3, inf, -inf, float("nan"), 0.0, 2.0, -3.0, 1.0])
    check(body, [x.repeat(30), x.repeat(30).double()], tmp_path)


def test_numbers_beside_narrow_integers_and_half_types_have_their_type(tmp_path: Path) -> None:
    body = (
        "return (x0 > -1, x0 == -1, torch.tensor(-1) < x0, x0.clamp(-5, 100), x0 % -7,\n"
        "    x1 * torch.tensor(3) > 9, F.pad(x1, (1, 1), value=7) // 2,\n"
        "    torch.tensor(0.1) == torch.full_like(x2, 0.1).half(), x2.half().sign())"
    )
    tiny = torch.tensor([1e-9, -1e-9, 1.0, 0.0])
    check(body, [integers(0, 256, 6, 40).byte(), integers(-128, 128, 6, 40).to(torch.int8), tiny], tmp_path)


@pytest.mark.slow
def test_rounding_to_decimals(tmp_path: Path) -> None:
    body = "return tuple(y.round(decimals=d) for y in (x0, x1) for d in (2, -1, 0, 7))"
    x = torch.cat([randn(200) * 100, torch.tensor([0.125, -2.675, 1e37, float("inf"), float("nan")])])
    new, reference = build(body, [x, x.half()], tmp_path)
    for a, b in zip(new(x, x.half()), reference(x, x.half()), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.slow
def test_narrow_sums_that_other_rows_read_wrap(tmp_path: Path) -> None:
    body = "s = x0.sum(1, dtype=torch.int32) // 3\nreturn x0 % 7 + (s + s.flip(0))[:, None]"
    check(body, [integers(-(1 << 31), 1 << 31, 6, 40).int()], tmp_path)


@pytest.mark.slow
def test_maxima_of_windows_of_integers(tmp_path: Path) -> None:
    x = integers(-9000, -1000, 1, 2, 9, 12)
    check("return F.max_pool2d(x0, 3, 2, 1), F.max_pool2d(x1, 3, 2, 1)", [x, x.int()], tmp_path)


@pytest.mark.filterwarnings("ignore:var")
def test_a_variance_without_degrees_of_freedom(tmp_path: Path) -> None:
    x = randn(2, 40)
    x[:, 3] = 1.5
    check("return x0.var(0, correction=2), x0.var(0, correction=3)", [x], tmp_path)


def test_shifts_of_every_width(tmp_path: Path) -> None:
    body = (
        "return *tuple(f(x, s) for x in (x0, x1, x2, x3, x4) for s in (0, 4, 7, 15, 40)\n"
        "    for f in (torch.bitwise_left_shift, torch.bitwise_right_shift)), x0 >> 3 << 5"
    )
    types = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    check(body, [integers(-(1 << 62), 1 << 62, 6, 40).to(t) for t in types], tmp_path)

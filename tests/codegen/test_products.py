"""Kernels for matrix products with one row against torch, really compiled and run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentforge.codegen import Options, generate
from agentforge.schema import CannotCode

from .compiled import build, check, compare, problem

randn = torch.randn


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


def kernels(body: str, inputs: list[torch.Tensor]) -> list[str]:
    """The C++ of each kernel; no product is left to the library."""
    definition, workload = problem(body, inputs)
    sources = {f.path: f.content for f in generate(definition, (workload,), Options(weight_rows=4))}
    assert "torch.ops" not in sources["model_new.py"]
    return sources["kernel.cpp"].split('extern "C"')[1:]


@pytest.mark.slow
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    width=st.one_of(st.integers(2, 40), st.sampled_from([64, 513, 1024, 2176])),
    columns=st.one_of(st.integers(1, 40), st.sampled_from([64, 300])),
    together=st.sampled_from([1, 3, 4, 8]),
    grain=st.sampled_from([1, 32768]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]),
)
def test_ragged_sizes(
    width: int,
    columns: int,
    together: int,
    grain: int,
    dtype: torch.dtype,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    body = (
        "a = F.linear(x0, x1, x2)\n"
        "b = F.gelu(a.view(-1)) + x2\n"
        "return F.silu(F.linear(x0, x1)) * F.linear(x0, x3), b, x3[:, 1:] @ x0[0, 0, 1:, None] + x4"
    )
    inputs = [randn(1, 1, width), randn(columns, width), randn(columns), randn(columns, width), randn(1, 1)]
    cast = [t.to(dtype) for t in inputs]
    check(body, cast, tmp_path_factory.mktemp("product"), magnitude=width, weight_rows=together, grain=grain)


def test_infinities_and_nan_are_torchs(tmp_path: Path) -> None:
    x, weight = randn(1, 64), randn(48, 64)
    weight[3, 5], weight[4, 6], x[0, 9] = float("inf"), float("nan"), 0.0
    weight[5, 9] = float("inf")
    check("return F.linear(x0, x1) + 1", [x, weight], tmp_path, magnitude=64, weight_rows=4)


def test_a_gated_pair_and_its_activation_are_one_kernel() -> None:
    body = "return F.silu(F.linear(x0, x1)) * F.linear(x0, x2)"
    assert len(kernels(body, [randn(1, 1, 32), randn(24, 32), randn(24, 32)])) == 1


def test_what_feeds_a_product_is_computed_once() -> None:
    body = "h = x0 * torch.rsqrt(x0.pow(2).mean(-1, keepdim=True) + 1e-6) * x1\nreturn F.linear(h, x2).relu()"
    *_, product = kernels(body, [randn(1, 1, 32), randn(32), randn(24, 32)])
    assert "in0" not in product  # it reads the stored row, not what the row is made of


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "y = F.linear(x0, x1)\nreturn y * 2, y.relu().sum(-1)",
        "return F.linear(x0, x1).relu().softmax(-1)",
        "return F.layer_norm(F.linear(x0, x1) + 1, (24,))",
        "return F.linear(F.linear(x0, x1).tanh(), x2)",
        "return torch.cumsum(F.linear(x0, x1) * 2, -1) + 1",
    ],
)
def test_a_weight_is_read_by_one_kernel(body: str, tmp_path: Path) -> None:
    inputs = [randn(1, 32), randn(24, 32), randn(16, 24)]
    definition, workload = problem(body, inputs)
    sources = {f.path: f.content for f in generate(definition, (workload,), Options(weight_rows=4))}
    assert sum("float* in1" in kernel for kernel in sources["kernel.cpp"].split('extern "C"')) == 1
    check(body, inputs, tmp_path, magnitude=32, weight_rows=4)


@pytest.mark.slow
def test_large_products_use_all_threads(tmp_path: Path) -> None:
    inputs = [randn(1, 2048), randn(1500, 2048), randn(1500)]
    new, reference = build("return F.linear(x0, x1, x2).relu()", inputs, tmp_path, weight_rows=4)
    compare(new, reference, inputs, magnitude=64)
    assert "omp for" in (tmp_path / "kernel.cpp").read_text()


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("return F.linear(x0, x1).relu()", [randn(2, 8), randn(6, 8)]),
        ("return (x0 @ x1).relu()", [randn(1, 8), randn(8, 6)]),
        ("return F.linear(x0, x1 * 2).relu()", [randn(1, 8), randn(6, 8)]),
        ("return x0.relu()", [randn(1, 8)]),
    ],
    ids=["two rows", "strided columns", "a computed weight", "no product"],
)
def test_other_products_are_refused(body: str, inputs: list[torch.Tensor]) -> None:
    definition, workload = problem(body, inputs)
    with pytest.raises(CannotCode, match="no product here has one row"):
        generate(definition, (workload,), Options(weight_rows=4))
    assert generate(definition, (workload,), Options())


def test_a_workload_with_many_rows_may_come_with_one_of_one_row() -> None:
    body = "return F.linear(x0, x1).relu()"
    definition, prefill = problem(body, [randn(5, 8), randn(6, 8)])
    _, decode = problem(body, [randn(1, 8), randn(6, 8)])
    sources = {f.path: f.content for f in generate(definition, (prefill, decode), Options(weight_rows=4))}
    assert sources["model_new.py"].count("aten.mm.default") == 1

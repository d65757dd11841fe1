"""What the Triton kernels are checked on: by name, a kernel's answer and torch's, odd sizes among them."""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

FOLDER = Path(__file__).resolve().parents[2] / "knowledge_base" / "kernels" / "triton"
SMALL: dict[str, dict[str, Any]] = {
    "softmax_long": {"max_block": 64, "block": 64},
    "rmsnorm_long": {"max_block": 64, "block": 64},
    "layernorm_long": {"max_block": 64, "block": 64},
    "cross_entropy_long": {"block": 64},
    "reduction_pieces": {"max_block": 64, "block": 16, "block_rows": 16, "block_cols": 16},
    "matmul_small": {"block_m": 32, "block_n": 16, "block_k": 16, "group": 2},
    "fused_mlp_small": {"block_m": 16, "block_n": 32, "block_k": 16},
    "attention_small": {"block_m": 16, "block_n": 16},
}
"""Parameters that bring odd sizes to several blocks."""

Answer = tuple[Any, Any]
"""The kernel's and torch's, tensors or tuples of them."""


def load(name: str, parameters: dict[str, Any] | None = None) -> ModuleType:
    """A kernel file as a module of its own, with parameters set."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.PARAMETERS.update(parameters or {})
    return module


def rand(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def rms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.double()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight.double()).to(x.dtype)


def softmax(k: ModuleType, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Answer:
    x = rand(*shape, dtype=dtype) * 3
    x[..., 1] = float("-inf")
    wide = x.double()
    return (k.softmax(x), k.softmax(x, log=True)), (
        wide.softmax(-1).to(dtype),
        wide.log_softmax(-1).to(dtype),
    )


def rmsnorm(k: ModuleType, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Answer:
    x, weight, residual = rand(*shape, dtype=dtype), rand(shape[-1], dtype=dtype), rand(*shape, dtype=dtype)
    total = (x.double() + residual.double()).to(dtype)
    wide = x.float() + residual.float()
    return (k.rmsnorm(x, weight, 1e-5), *k.rmsnorm(x, weight, 1e-5, residual)), (
        rms(x, weight, 1e-5), rms(wide, weight, 1e-5).to(dtype), total,
    )  # fmt: skip


def layernorm(k: ModuleType, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Answer:
    x, weight, bias = (
        rand(*shape, dtype=dtype) + 2,
        rand(shape[-1], dtype=dtype),
        rand(shape[-1], dtype=dtype),
    )
    wide, size = x.double(), shape[-1:]
    return (k.layernorm(x, weight, bias), k.layernorm(x, None, None)), (
        F.layer_norm(wide, size, weight.double(), bias.double()).to(dtype),
        F.layer_norm(wide, size).to(dtype),
    )


def cross_entropy(k: ModuleType, rows: int, cols: int, dtype: torch.dtype = torch.float32) -> Answer:
    x, target = rand(rows, cols, dtype=dtype) * 4, torch.randint(0, cols, (rows,))
    target[rows // 2] = -100
    kinds = ("mean", "sum", "none")
    return tuple(k.cross_entropy(x, target, kind) for kind in kinds), tuple(
        F.cross_entropy(x.double(), target, reduction=kind).to(dtype) for kind in kinds
    )


def reduction(k: ModuleType, rows: int, cols: int, dtype: torch.dtype = torch.float32) -> Answer:
    x = rand(rows, cols, dtype=dtype) + 1  # sums that cancel would have no relative error to speak of
    wide = x.double()
    got: list[torch.Tensor] = []
    want: list[torch.Tensor] = []
    for how in ("sum", "mean", "max"):
        got += [k.reduce_rows(x, how), k.reduce_columns(x, how), k.reduce_all(x, how)]
        reduce: Callable[..., torch.Tensor] = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}[how]
        want += [reduce(wide, dim=-1), reduce(wide, dim=0), reduce(wide, dim=(0, 1))]
    return tuple(got), tuple(w.to(dtype) for w in want)


def rotary(k: ModuleType, *shape: int, dtype: torch.dtype = torch.float32) -> Answer:
    x = rand(*shape, dtype=dtype)
    half = shape[-1] // 2
    angles = torch.outer(torch.arange(shape[2]), 10000.0 ** (-torch.arange(half) / half))
    cos, sin = (torch.cat([f(angles), f(angles)], -1).to(dtype) for f in (torch.cos, torch.sin))
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return k.rotary(x, cos, sin), (x.double() * cos.double() + turned.double() * sin.double()).to(dtype)


def rotary_in_parts(k: ModuleType, *shape: int) -> Answer:
    """As for a batch that exceeds an axis of the grid."""
    most, k.MOST = k.MOST, 2
    try:
        return rotary(k, *shape)
    finally:
        k.MOST = most


def pointwise(k: ModuleType, *shape: int, dtype: torch.dtype = torch.float32) -> Answer:
    x, y, bias = rand(*shape, dtype=dtype), rand(*shape, dtype=dtype), rand(shape[-1], dtype=dtype)
    wide = x.double()
    return (k.swiglu(x, y), k.bias_gelu_residual(x, bias, y)), (
        (F.silu(wide) * y.double()).to(dtype),
        (F.gelu(wide + bias.double()) + y.double()).to(dtype),
    )


def matmul(k: ModuleType, m: int, n: int, inner: int, dtype: torch.dtype = torch.float32) -> Answer:
    a, weight, bias = rand(m, inner, dtype=dtype), rand(n, inner, dtype=dtype), rand(n, dtype=dtype)
    exact = a.double() @ weight.double().t()
    got = [k.matmul(a, weight.t())]
    want = [exact]
    for name, function in (("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu)):
        got.append(k.matmul(a, weight.t().contiguous(), bias, name))
        want.append(function(exact + bias.double()))
    return tuple(got), tuple(w.to(dtype) for w in want)


def fused_mlp(
    k: ModuleType, rows: int, width: int, hidden: int, dtype: torch.dtype = torch.float32
) -> Answer:
    x = rand(2, rows, width, dtype=dtype)
    gate, up, down = (
        rand(hidden, width, dtype=dtype),
        rand(hidden, width, dtype=dtype),
        rand(5, hidden, dtype=dtype),
    )
    flat = x.reshape(-1, width)
    inner = F.silu(flat.double() @ gate.double().t()) * (flat.double() @ up.double().t())
    whole = (inner @ down.double().t()).reshape(2, rows, 5)
    if dtype is not torch.float32:  # the product after it is torch's, from what was rounded before
        return k.gated_products(flat, gate, up), inner.to(dtype)
    return (k.gated_products(flat, gate, up), k.mlp(x, gate, up, down)), (inner.to(dtype), whole.to(dtype))


def attention(
    k: ModuleType, heads: int, queries: int, keys: int, size: int, dtype: torch.dtype = torch.float32
) -> Answer:
    q, key, value = (rand(1, heads, n, size, dtype=dtype) for n in (queries, keys, keys))
    got, want = [], []
    for causal in (False, True):
        scores = q.double() @ key.double().transpose(-1, -2) / math.sqrt(size)
        if causal:
            scores = scores.masked_fill(~torch.ones(queries, keys).tril().bool(), float("-inf"))
        got.append(k.attention(q, key, value, causal=causal))
        want.append((scores.softmax(-1) @ value.double()).to(dtype))
    return tuple(got), tuple(want)


def far_columns(k: ModuleType) -> Answer:
    """A weight whose last column begins beyond 2^31 elements, in a file that is almost all holes."""
    stride = (1 << 30) + 8
    with tempfile.TemporaryDirectory() as folder:
        elements = 2 * stride + 16
        memory = torch.from_file(f"{folder}/weight", shared=True, size=elements, dtype=FP16)
        a, b = rand(5, 16, dtype=FP16), memory.as_strided((16, 3), (1, stride))
        b.copy_(rand(16, 3))
        return k.matmul(a, b), (a.double() @ b.double()).to(FP16)


def strange(columns: int, dtype: torch.dtype) -> torch.Tensor:
    """Rows of -inf, with a NaN, with an infinity, all but one -inf, and of large numbers; not contiguous."""
    x = rand(columns, 5, dtype=dtype).t()
    x[0] = float("-inf")
    x[1, 3] = float("nan")
    x[2, 2] = float("inf")
    x[3, :-1] = float("-inf")
    x[4] *= 1000
    return x


def with_nans(found: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where it is NaN, and the rest."""
    return torch.isnan(found).float(), torch.nan_to_num(found)


def strange_rows(k: ModuleType, columns: int, dtype: torch.dtype = torch.float32) -> Answer:
    """Softmax, its logarithm, cross-entropy or maxima of strange rows, whichever the kernel has."""
    x = strange(columns, dtype)
    wide, last = x.double(), torch.full((5,), columns - 1)
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    if hasattr(k, "softmax"):
        pairs = [(k.softmax(x), wide.softmax(-1)), (k.softmax(x, log=True), wide.log_softmax(-1))]
    if hasattr(k, "cross_entropy"):
        pairs = [(k.cross_entropy(x, last, "none"), F.cross_entropy(wide, last, reduction="none"))]
    if hasattr(k, "reduce_rows"):
        pairs = [(k.reduce_rows(x, "max"), wide.amax(-1)), (k.reduce_all(x[2:], "max"), wide[2:].amax())]
    return tuple(with_nans(got) for got, _ in pairs), tuple(with_nans(want.to(dtype)) for _, want in pairs)


BF16, FP16 = torch.bfloat16, torch.float16
CASES: dict[str, tuple[str, str, Callable[[ModuleType], Answer]]] = {
    "softmax": ("softmax", "", lambda k: softmax(k, (3, 5, 37))),
    "softmax one block": ("softmax", "", lambda k: softmax(k, (4, 128))),
    "softmax long": ("softmax", "softmax_long", lambda k: softmax(k, (3, 333))),
    "softmax short rows": ("softmax", "", lambda k: softmax(k, (37, 5))),
    "softmax long bf16": ("softmax", "softmax_long", lambda k: softmax(k, (3, 333), BF16)),
    "softmax strange rows": ("softmax", "", lambda k: strange_rows(k, 37)),
    "softmax long strange rows": ("softmax", "softmax_long", lambda k: strange_rows(k, 331, FP16)),
    "softmax bf16": ("softmax", "", lambda k: softmax(k, (3, 100), BF16)),
    "rmsnorm": ("rmsnorm", "", lambda k: rmsnorm(k, (2, 3, 61))),
    "rmsnorm long": ("rmsnorm", "rmsnorm_long", lambda k: rmsnorm(k, (3, 257))),
    "rmsnorm long fp16": ("rmsnorm", "rmsnorm_long", lambda k: rmsnorm(k, (3, 131), FP16)),
    "rmsnorm bf16": ("rmsnorm", "", lambda k: rmsnorm(k, (3, 100), BF16)),
    "layernorm": ("layernorm", "", lambda k: layernorm(k, (2, 3, 61))),
    "layernorm long": ("layernorm", "layernorm_long", lambda k: layernorm(k, (3, 257))),
    "layernorm bf16 short rows": ("layernorm", "", lambda k: layernorm(k, (9, 24), BF16)),
    "layernorm fp16": ("layernorm", "layernorm_long", lambda k: layernorm(k, (3, 100), FP16)),
    "cross-entropy": ("cross_entropy", "", lambda k: cross_entropy(k, 7, 61)),
    "cross-entropy long": ("cross_entropy", "cross_entropy_long", lambda k: cross_entropy(k, 3, 333)),
    "cross-entropy long fp16": (
        "cross_entropy",
        "cross_entropy_long",
        lambda k: cross_entropy(k, 6, 331, FP16),
    ),
    "cross-entropy strange rows": ("cross_entropy", "", lambda k: strange_rows(k, 61)),
    "cross-entropy long strange rows": (
        "cross_entropy",
        "cross_entropy_long",
        lambda k: strange_rows(k, 333, BF16),
    ),
    "cross-entropy bf16": ("cross_entropy", "", lambda k: cross_entropy(k, 5, 100, BF16)),
    "reduction": ("reduction", "", lambda k: reduction(k, 5, 61)),
    "reduction pieces": ("reduction", "reduction_pieces", lambda k: reduction(k, 33, 131)),
    "reduction strange rows": ("reduction", "", lambda k: strange_rows(k, 61)),
    "reduction pieces strange rows": ("reduction", "reduction_pieces", lambda k: strange_rows(k, 133, BF16)),
    "reduction fp16": ("reduction", "", lambda k: reduction(k, 5, 61, FP16)),
    "rotary": ("rotary", "", lambda k: rotary(k, 2, 3, 5, 12)),
    "rotary many heads": ("rotary", "", lambda k: rotary(k, 1, 11, 3, 64)),
    "rotary many batches": ("rotary", "", lambda k: rotary_in_parts(k, 5, 3, 4, 12)),
    "rotary fp16 odd": ("rotary", "", lambda k: rotary(k, 2, 3, 37, 6, dtype=FP16)),
    "rotary bf16": ("rotary", "", lambda k: rotary(k, 1, 4, 3, 16, dtype=BF16)),
    "pointwise": ("pointwise", "", lambda k: pointwise(k, 3, 7, 61)),
    "pointwise wide rows fp16": ("pointwise", "", lambda k: pointwise(k, 3, 4099, dtype=FP16)),
    "pointwise bf16": ("pointwise", "", lambda k: pointwise(k, 7, 61, dtype=BF16)),
    "matmul": ("matmul", "", lambda k: matmul(k, 33, 65, 40)),
    "matmul small blocks": ("matmul", "matmul_small", lambda k: matmul(k, 70, 51, 37)),
    "matmul fp16": ("matmul", "", lambda k: matmul(k, 33, 65, 40, FP16)),
    "matmul bf16": ("matmul", "matmul_small", lambda k: matmul(k, 33, 17, 40, BF16)),
    "matmul far columns": ("matmul", "matmul_small", far_columns),
    "fused mlp": ("fused_mlp", "", lambda k: fused_mlp(k, 9, 40, 70)),
    "fused mlp small blocks": ("fused_mlp", "fused_mlp_small", lambda k: fused_mlp(k, 9, 37, 51)),
    "fused mlp bf16": ("fused_mlp", "", lambda k: fused_mlp(k, 9, 40, 33, BF16)),
    "attention": ("attention", "", lambda k: attention(k, 2, 70, 70, 32)),
    "attention small blocks": ("attention", "attention_small", lambda k: attention(k, 2, 37, 53, 24)),
    "attention fp16": ("attention", "", lambda k: attention(k, 1, 70, 150, 24, FP16)),
    "attention bf16": ("attention", "", lambda k: attention(k, 1, 33, 40, 16, BF16)),
}
"""Case to kernel file, set of parameters and what is computed."""

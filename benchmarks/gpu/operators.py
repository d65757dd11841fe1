"""The operators that AutoKernel starts from, at its sizes: ours against torch in three ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from agentforge.harness.gpu import Mode, TorchGpu, compare, graphed, rotations
from gpu.kernel_modules import load

Function = Callable[..., torch.Tensor]
HALF = torch.float16


class Operator(NamedTuple):
    """One operator at one size."""

    kernels: tuple[str, ...]
    """Identifiers of ours."""
    function: str
    """Name of the host function in them."""
    reference: Function
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    extra: dict[str, Any] = {}
    """Keywords of ours."""
    flops: float = 0.0
    """Of a matrix operator, which is judged by its rate."""


def rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def rand(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, device="cuda")


OPERATORS: dict[str, Operator] = {
    "softmax": Operator(
        ("softmax", "cuda-softmax"), "softmax", partial(torch.softmax, dim=-1), lambda: (rand(4096, 4096),)
    ),
    "rmsnorm": Operator(
        ("rmsnorm", "cuda-norms"), "rmsnorm", rms, lambda: (rand(4096, 4096), rand(4096)), {"eps": 1e-6}
    ),
    "layernorm": Operator(
        ("layernorm", "cuda-norms"), "layernorm", lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        lambda: (rand(4096, 4096), rand(4096), rand(4096)),
    ),
    "cross_entropy": Operator(
        ("cross-entropy", "cuda-cross-entropy"), "cross_entropy", F.cross_entropy,
        lambda: (rand(4096, 32000), torch.randint(0, 32000, (4096,), device="cuda")),
    ),
    "reduction": Operator(
        ("reduction", "cuda-reduction"), "reduce_rows", partial(torch.sum, dim=-1),
        lambda: (rand(4096, 4096),),
    ),
    "rotary": Operator(
        ("rotary",), "rotary", turned, lambda: (rand(2, 32, 2048, 128), rand(2048, 128), rand(2048, 128))
    ),
    "pointwise": Operator(
        ("pointwise",), "swiglu", lambda a, b: F.silu(a) * b, lambda: (rand(4096, 4096), rand(4096, 4096))
    ),
    "matmul": Operator(
        ("matmul",), "matmul", torch.matmul, lambda: (rand(4096, 4096), rand(4096, 4096)), {}, 2.0 * 4096**3
    ),
    "attention": Operator(
        ("flash-attention",), "attention", partial(F.scaled_dot_product_attention, is_causal=True),
        lambda: tuple(rand(2, 32, 2048, 128) for _ in range(3)), {"causal": True}, 2.0 * 64 * 2048**2 * 128,
    ),
    "fused_mlp": Operator(
        ("fused-mlp",), "gated_products", lambda x, g, u: F.silu(x @ g.t()) * (x @ u.t()),
        lambda: (rand(2048, 4096), rand(11008, 4096), rand(11008, 4096)), {}, 4.0 * 2048 * 4096 * 11008,
    ),
}  # fmt: skip


def moved(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def copy_bandwidth(gpu: TorchGpu) -> float:
    """Bytes/s, read and written, of copying 1 GiB."""
    source, target = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
    times = compare({"copy": [lambda: target.copy_(source)]}, gpu, blocks=20)
    return 2 * (1 << 30) / min(times.seconds["copy"])


def one(operator: Operator, gpu: TorchGpu, bandwidth: float) -> dict[str, Any]:
    """All parties on one operator."""
    first = operator.inputs()
    copies = [first, *(operator.inputs() for _ in range(rotations(moved(*first), gpu.l2_bytes) - 1))]
    compiled = torch.compile(operator.reference, mode="max-autotune-no-cudagraphs")
    calls: dict[str, Function] = {"eager": operator.reference, "compile": compiled}
    for name in operator.kernels:
        calls[name] = partial(getattr(load(name), operator.function), **operator.extra)
    expected = operator.reference(*first)
    errors = {}
    for name in operator.kernels:
        off = (calls[name](*first).double() - expected.double()).norm() / expected.double().norm()
        errors[name] = float(off)
    parties: dict[str, list[Callable[[], Any]]] = {
        name: [partial(call, *inputs) for inputs in copies] for name, call in calls.items()
    }
    parties["graph"] = [graphed(partial(operator.reference, *inputs)) for inputs in copies]
    found: dict[str, Any] = {"relative_error": errors}
    for mode in Mode:
        times = compare(parties, gpu, mode=mode, blocks=40 if mode is Mode.OFFLINE else 20)
        found[mode.value] = {
            name: {
                "seconds": times.median(name),
                "over_eager": times.speedup("eager", name),
                "over_compile": times.speedup("compile", name),
                "share_of_copy_bandwidth": moved(*first, expected) / times.median(name) / bandwidth,
                "flops_per_s": operator.flops / times.median(name),
                "hidden": times.hidden[name],
            }
            for name in parties
        }
    return found


def measure(left: float) -> dict[str, Any]:
    """As many operators as the time allows; those that were not reached are named."""
    end = time.monotonic() + left
    torch.manual_seed(0)
    gpu = TorchGpu()
    bandwidth = copy_bandwidth(gpu)
    found: dict[str, Any] = {}
    for name, operator in OPERATORS.items():
        if time.monotonic() > end - 45:
            break
        try:
            found[name] = one(operator, gpu, bandwidth)
        except Exception as error:
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
        torch.cuda.empty_cache()
    unreached = [name for name in OPERATORS if name not in found]
    failed = [name for name, answer in found.items() if "failed" in answer]
    return {
        "ok": not (unreached or failed),
        "copy_bandwidth": bandwidth,
        "operators": found,
        "unreached": unreached,
        "failed": failed,
    }

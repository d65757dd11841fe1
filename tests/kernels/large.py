"""Calls at sizes that a GPU would see; nothing is computed, only how kernels are launched is noted."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch


def calls(dtype: torch.dtype) -> dict[str, Callable[[ModuleType], Any]]:
    """Kernel file to calls of its host functions."""

    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype)

    def softmax(k: ModuleType) -> None:
        k.softmax(empty(4096, 4096))
        k.softmax(empty(1024, 50257))
        k.softmax(empty(32768, 128))

    def rmsnorm(k: ModuleType) -> None:
        k.rmsnorm(empty(4096, 4096), empty(4096))
        k.rmsnorm(empty(4096, 1024), empty(1024))
        k.rmsnorm(empty(256, 32768), empty(32768), residual=empty(256, 32768))

    def layernorm(k: ModuleType) -> None:
        k.layernorm(empty(4096, 4096), empty(4096), empty(4096))
        k.layernorm(empty(4096, 5120), empty(5120), empty(5120))
        k.layernorm(empty(256, 32768), None, None)

    def cross_entropy(k: ModuleType) -> None:
        k.cross_entropy(empty(4096, 32000), torch.empty(4096, dtype=torch.int64))
        k.cross_entropy(empty(4096, 50257), torch.empty(4096, dtype=torch.int64), "none")

    def reduction(k: ModuleType) -> None:
        k.reduce_rows(empty(8192, 8192))
        k.reduce_rows(empty(1024, 32768))
        k.reduce_columns(empty(4096, 8192), "max")
        k.reduce_all(empty(8192, 8192))

    def rotary(k: ModuleType) -> None:
        k.rotary(empty(2, 32, 2048, 128), empty(2048, 128), empty(2048, 128))

    def pointwise(k: ModuleType) -> None:
        k.swiglu(empty(4096, 4096), empty(4096, 4096))
        k.bias_gelu_residual(empty(4096, 4096), empty(4096), empty(4096, 4096))

    def matmul(k: ModuleType) -> None:
        k.matmul(empty(4096, 4096), empty(4096, 4096))
        k.matmul(empty(2048, 2048), empty(2048, 2048), empty(2048), "gelu")

    def fused_mlp(k: ModuleType) -> None:
        k.gated_products(empty(2048, 4096), empty(11008, 4096), empty(11008, 4096))

    def attention(k: ModuleType) -> None:
        for size in (64, 128):
            q, key, value = (empty(2, 32, 1024, size) for _ in range(3))
            k.attention(q, key, value, True)

    found = (
        softmax,
        rmsnorm,
        layernorm,
        cross_entropy,
        reduction,
        rotary,
        pointwise,
        matmul,
        fused_mlp,
        attention,
    )
    return {function.__name__: function for function in found}


DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
LARGE: dict[str, tuple[str, str, Callable[[ModuleType], Any]]] = {
    f"{file} {name}": (file, "", run) for name, dtype in DTYPES.items() for file, run in calls(dtype).items()
}
"""Case to kernel file, no parameters, and what is called."""

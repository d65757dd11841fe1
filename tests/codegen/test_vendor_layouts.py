"""Layouts of the library's results: they follow from the arguments that the generated code passes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .compiled import check

randn = torch.randn

CASES: dict[str, tuple[str, list[torch.Tensor]]] = {
    "attention with rotary positions": (
        "q = (x0 @ x1).view(2, 9, 3, 32).transpose(1, 2)\n"
        "k = (x0 @ x2).view(2, 9, 3, 32).transpose(1, 2)\n"
        "q = q * x4 + torch.cat((-q[..., 16:], q[..., :16]), -1) * x5\n"
        "o = F.scaled_dot_product_attention(q, k, k)\n"
        "return o.transpose(1, 2).reshape(2, 9, 96) @ x3",
        [randn(2, 9, 96), *(randn(96, 96) * 0.1 for _ in range(3)), randn(9, 32), randn(9, 32)],
    ),
    "convolution after a norm of channels last": (
        "y = F.layer_norm(x0.permute(0, 2, 3, 1), (8,)).permute(0, 3, 1, 2)\nreturn F.relu(F.conv2d(y, x1))",
        [randn(2, 8, 11, 11), randn(16, 8, 3, 3)],
    ),
    "convolution of channels last": (
        "return F.relu(F.conv2d(x0, x1)).sum(1)",
        [randn(2, 8, 11, 11).to(memory_format=torch.channels_last), randn(16, 8, 3, 3)],
    ),
    "sort of a permuted sum": (
        "v, i = (x0.transpose(0, 1) + 1).sort(-1)\nreturn v * 2, i + 1",
        [randn(12, 7)],
    ),
    "product with reversed rows": ("return F.relu(x0.flip(0) @ x1)", [randn(4, 8), randn(8, 8)]),
}


CASTS: dict[str, tuple[str, list[torch.Tensor]]] = {
    "half to float": ("return x0.float() @ x1.float(), x0 + 1", [randn(8, 16).half(), randn(16, 8).half()]),
    "bfloat16 beside float": (
        "return x0.to(x1.dtype) @ x1 + 1",
        [randn(8, 16).bfloat16(), randn(16, 8)],
    ),
    "float to half": ("return (x0.half() @ x1.half()).relu()", [randn(8, 16), randn(16, 8)]),
    "narrow integers": (
        "return (x0.long() @ x1.long()) * 2",
        [torch.full((4, 4), 70_000, dtype=torch.int32)] * 2,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASTS)
def test_a_library_call_gets_its_arguments_as_they_were_cast(name: str, tmp_path: Path) -> None:
    body, inputs = CASTS[name]
    check(body, inputs, tmp_path, magnitude=8.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_results_are_read_as_the_library_stores_them(name: str, tmp_path: Path) -> None:
    body, inputs = CASES[name]
    check(body, inputs, tmp_path, magnitude=8.0)

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


@pytest.mark.parametrize("name", CASES)
def test_results_are_read_as_the_library_stores_them(name: str, tmp_path: Path) -> None:
    body, inputs = CASES[name]
    check(body, inputs, tmp_path, magnitude=8.0)

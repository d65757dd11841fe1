"""Reductions that are read at other rows than their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agentforge.codegen import Options, generate

from .compiled import check, problem

CASES: dict[str, tuple[str, int]] = {
    "one row in two places of a body": (
        "m = x0.mean(-1)\nreturn (x0 - ((m + m.flip(0)) * 0.5)[:, None]).pow(2).sum(-1)",
        2,
    ),
    "one row in a body, another beside it": (
        "m = x0.mean(-1)\nv = (x0 - m.flip(0)[:, None]).pow(2).mean(-1)\nreturn x0 * m[:, None] * v[:, None]",
        2,
    ),
    "two rows in two bodies": (
        "m = x0.mean(-1)\n"
        "v = (x0 - m[:, None]).pow(2).mean(-1)\n"
        "w = (x0 - m.flip(0)[:, None]).abs().mean(-1)\n"
        "return x0 * w[:, None] * v[:, None]",
        2,
    ),
    "the row before": ("return x0 * F.pad(x0.mean(-1), (1, 0))[:-1].sigmoid()[:, None]", 2),
    "the row before, in a body": (
        "return (x0 - F.pad(x0.mean(-1), (1, 0))[:-1][:, None]).pow(2).sum(-1)",
        2,
    ),
    "the opposite row": ("return (x0 - x0.mean(-1).flip(0)[:, None]).pow(2).sum(-1)", 1),
    "its own row": ("return (x0 - x0.mean(-1)[:, None]).pow(2).sum(-1)", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_reads_each_reduction_at_one_row_inside_its_results(name: str, tmp_path: Path) -> None:
    torch.manual_seed(7)
    body, kernels = CASES[name]
    inputs = [torch.randn(6, 40)]
    definition, workload = problem(body, inputs)
    source = generate(definition, (workload,), Options(threads=2))[1].content
    assert source.count('extern "C"') == kernels
    check(body, inputs, tmp_path)

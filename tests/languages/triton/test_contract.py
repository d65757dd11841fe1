from __future__ import annotations

import pytest

from agentforge.languages.triton import language
from agentforge.languages.triton.language import TARGETS
from agentforge.testing.language import LanguageContract, make_solution

pytest.importorskip("triton", reason="Triton is not installed")

SCALE = """import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
        return o
"""


class TestTriton(LanguageContract):
    name = "triton"
    working = {"model_new.py": SCALE}
    broken = {"model_new.py": SCALE.replace("BLOCK: tl.constexpr):", "BLOCK: tl.constexpr)")}
    broken_file = "model_new.py"
    broken_line = 7


@pytest.mark.parametrize(
    ("here", "flags", "targets"),
    [
        ("", (), TARGETS),
        ("sm_89", (), ("sm_89",)),
        ("sm_75", (), TARGETS),
        ("sm_89", ("--target=sm_90",), ("sm_90",)),
    ],
)
def test_kernels_are_compiled_for_the_gpu_that_is_here(
    here: str, flags: tuple[str, ...], targets: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "gpu_target", lambda: here)
    assert language.solution_targets(make_solution("triton", {"model_new.py": SCALE}, flags)) == targets

"""A CUDA kernel's faults become a status: in the emulator, and on a GPU if there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.devices.toolchain import gpu_present
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cuda import compilers
from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import (
    Definition,
    DType,
    EvaluationStatus,
    Solution,
    TensorInput,
    Workload,
)
from agentforge.testing.language import make_solution

pytestmark = pytest.mark.skipif(
    compilers() is None or not compiler_version(), reason="needs NVRTC or nvcc, and a C++ compiler"
)

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(64, 33)]

def get_init_inputs():
    return []
"""
KERNEL = """
extern "C" __global__ void twice(const float* x, float* out, int n, int skip, int spin) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile const float* first = x;  // a compiler drops a loop that reads no memory
    while (spin && first[0] == first[0]) {}
    if (i < n) out[i] = x[i + skip] * 2;
}
"""
PYTHON = """
import torch
from agentforge_cuda import load

kernels = load(__file__, "twice.cu")

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x, out = x.contiguous(), torch.empty(x.shape, device=x.device)
        n, block, skip, spin = x.numel(), 256, 0, 0
        {change}
        kernels.twice(x, out, n, skip, spin, grid=(n + 255) // 256, block=block)
        return out
"""
DEFINITION = Definition(name="twice", op_type="pointwise", reference=REFERENCE)
WORKLOAD = Workload(name="w", inputs=(TensorInput(name="x", shape=(64, 33), dtype=DType.FLOAT32),))
FAULTS = {
    "a launch out of range": ("block = 2048", EvaluationStatus.RUNTIME_ERROR, "block.x is 2048"),
    "an illegal address": ("skip = 1 << 28", EvaluationStatus.RUNTIME_ERROR, ""),
    "a hang": ("spin = int(self.calls > 1)", EvaluationStatus.TIMEOUT, "no answer within"),
}  # fmt: skip


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def referee(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    settings = RefereeSettings(
        threads=1, compile_baseline=False, quick_blocks=2, quick_seconds=0.1, random_seeds=2, task_seconds=1,
        call_timeout_s=8,
    )  # fmt: skip
    if request.param == "cuda" and not gpu_present():
        pytest.skip("there is no GPU")
    where = detect(request.param)
    with Referee(settings, device=where, cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


def solution(change: str) -> Solution:
    sources = {"model_new.py": PYTHON.format(change=change or "pass"), "twice.cu": KERNEL}
    return make_solution("cuda", sources, definition=DEFINITION.hash)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n != "an illegal address" else []) for n in FAULTS],
)
def test_a_fault_is_a_status_and_the_next_verdict_is_right(referee: Referee, name: str) -> None:
    change, status, reason = FAULTS[name]
    if name == "an illegal address" and referee.device.kind == "cuda":
        status, reason = EvaluationStatus.CRASHED, "cannot use the device any more"
    verdict = referee.evaluate(EvaluationRequest(DEFINITION, [WORKLOAD], solution(change)))
    assert verdict.status is status, verdict.reasons
    assert reason in verdict.reasons[0]
    if name == "an illegal address" and referee.device.kind == "cpu":
        assert "twice.cu:6" in verdict.reasons[0]
    honest = referee.evaluate(EvaluationRequest(DEFINITION, [WORKLOAD], solution("")))
    assert honest.status is EvaluationStatus.PASSED, honest.reasons

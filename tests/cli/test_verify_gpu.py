"""`agentforge verify` of CUDA and Triton solutions on a machine without a GPU: honest ones, and bad input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentforge.devices import gpu_present
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cuda import compilers
from agentforge.languages.cuda.shipped import agentforge_driver as driver
from agentforge.languages.cuda.shipped.agentforge_launches import CudaError
from agentforge.languages.triton.language import triton_version

from .conftest import Run

pytestmark = [
    pytest.mark.skipif(gpu_present(), reason="is about machines without a GPU"),
    pytest.mark.skipif(
        compilers() is None or not compiler_version() or not triton_version(),
        reason="needs NVRTC or nvcc, a C++ compiler and Triton",
    ),
]
REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0

def get_inputs():
    return [torch.randn(8, 64)]

def get_init_inputs():
    return []
"""
KERNEL = """
extern "C" __global__ void twice(const float* x, float* out, int n) {
    __shared__ float tile[SHARED];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tile[threadIdx.x] = x[i];
    if (i < n) out[i] = tile[threadIdx.x] * 2.0f;
}
""".replace("SHARED", "256")
CALLER = """
import torch
from agentforge_cuda import load

kernels = load(__file__, "twice.cu")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernels.twice(x.contiguous(), out, x.numel(), grid=(x.numel() + 255) // 256 or 1, block=256)
        return out
"""
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def twice(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            twice[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
"""
FAST = ("-c", "referee.compile_baseline=false", "-c", "referee.random_seeds=1", "-c", "referee.threads=1")


def cuda(kernel: str = KERNEL, caller: str = CALLER) -> dict[str, str]:
    return {"model_new.py": caller, "twice.cu": kernel}


def verify(run: Run, folder: Path, files: Mapping[str, str], *options: str) -> tuple[int, dict[str, Any]]:
    (folder / "reference.py").write_text(REFERENCE)
    place = folder / "solution"
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / name).write_text(text)
    answer = run(
        "verify", str(folder / "reference.py"), str(place), "--device", "cpu", "--level", "quick", "--json",
        *FAST, *options,
    )  # fmt: skip
    return answer.code, answer.json


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "file", "line", "says"),
    [
        (cuda(KERNEL.replace("* 2.0f;", "* ;")), "twice.cu", 6, "expected an expression"),
        (cuda(KERNEL.replace("[256]", "[80000]")), "twice.cu", 2, "shared memory"),
    ],
    ids=["syntax", "shared memory"],
)  # fmt: skip
def test_what_does_not_compile(
    run: Run, tmp_path: Path, files: dict[str, str], file: str, line: int, says: str
) -> None:
    code, body = verify(run, tmp_path, files)
    assert (code, body["status"], body["evidence"]) == (1, "COMPILE_ERROR", "unverified"), body["reasons"]
    first = next(d for d in body["diagnostics"] if d["severity"] == "error")
    assert first["file"].endswith(file) and says in first["message"], first
    assert first["line"] == line, first


def test_what_the_emulator_cannot_run_is_unverified(run: Run, tmp_path: Path) -> None:
    inline = KERNEL.replace("* 2.0f;", '* 2.0f; asm volatile("nanosleep.u32 1;");')
    code, body = verify(run, tmp_path, cuda(inline))
    assert (code, body["status"], body["evidence"]) == (1, "UNSUPPORTED", "unverified"), body["reasons"]
    assert "PTX" in " ".join(body["reasons"])
    assert {(r["kernel"], r["target"]) for r in body["resources"]} == {("twice", "sm_90")}


def test_a_file_that_is_not_python(run: Run, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "solution.py").write_text(TRITON.replace("constexpr):", "constexpr:"))
    answer = run("verify", "reference.py", "solution.py", "--device", "cpu")
    assert answer.code == 2 and "solution.py is not Python: line 7" in answer.err


def test_devices_that_are_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "solution.py").write_text(TRITON)
    for device, says in (("cuda", "no NVIDIA GPU"), ("cuda:7", "cuda:7"), ("tpu", "tpu")):
        answer = run("verify", "reference.py", "solution.py", "--device", device)
        assert answer.code == 2 and says in answer.err and "Traceback" not in answer.err
        assert len(answer.err.strip().splitlines()) == 1, answer.err


def test_a_driver_older_than_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "driver_version", lambda: (10, 2))
    (tmp_path / "twice.cu").write_text(KERNEL)
    with pytest.raises(CudaError, match=r"the driver supports CUDA 10\.2.*: update the driver"):
        driver.compile_here(tmp_path / "twice.cu", "sm_90", [])

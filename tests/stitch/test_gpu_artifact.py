"""Artifacts whose kernels are written for a GPU, on a machine that has none and lacks AgentForge."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cuda import compilers
from agentforge.languages.cuda.compile.pipeline import DEFAULT_TARGET
from agentforge.languages.triton.language import triton_version
from agentforge.schema import BuildSpec, Definition, Evaluation, KernelUse, Solution, SourceFile
from agentforge.stitch.artifact import write_artifact
from agentforge.stitch.files import Mode
from agentforge.stitch.proof import engagement
from agentforge.stitch.variants import Variant
from agentforge.testing.language import make_solution
from tests.stitch.test_artifact import report, run_alone

from .making import BLOCK, RMS_PY, Stitched, rms_kernel, stitch_in_process

RMS_CU = """
extern "C" __global__ void rms(const float* x, const float* w, float* out, int columns) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const float* row = x + blockIdx.x * columns;
    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += row[c] * row[c];
    atomicAdd(&total, sum);
    __syncthreads();
    float scale = rsqrtf(total / columns + 1e-6f);
    out += blockIdx.x * columns;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) out[c] = w[c] * row[c] * scale;
}
"""
CUDA_PY = (
    RMS_PY.replace("agentforge_cpp", "agentforge_cuda")
    .replace("kernel.cpp", "kernel.cu")
    .replace("x.numel() // x.shape[-1], x.shape[-1]", "x.shape[-1], grid=x.numel() // x.shape[-1], block=32")
)
TRITON_PY = """
import torch
import triton
import triton.language as tl


@triton.jit
def rms(x, w, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    here = tl.program_id(0) * columns + at
    row = tl.load(x + here, at < columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(row * row) / columns + 1e-6)
    tl.store(out + here, tl.load(w + at, at < columns, 0.0) * row * scale, at < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        out = torch.empty_like(x)
        columns = x.shape[-1]
        rms[(x.numel() // columns,)](x, weight, out, columns, triton.next_power_of_2(columns))
        return out
"""
CUPY_PY = f"""
import cupy
import torch

rms = cupy.RawKernel(r'''{RMS_CU}''', "rms")


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        x, out = x.contiguous(), torch.empty_like(x)
        columns = x.shape[-1]
        arguments = (*map(cupy.from_dlpack, (x, weight, out)), cupy.int32(columns))
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            rms((x.numel() // columns,), (32,), arguments)
        return out
"""
SOURCES = {
    "cuda": {"model_new.py": CUDA_PY, "kernel.cu": RMS_CU},
    "cupy": {"model_new.py": CUPY_PY},
    "triton": {"model_new.py": TRITON_PY},
}
needs_cuda = pytest.mark.skipif(
    compilers() is None or not compiler_version(), reason="needs NVRTC or nvcc, and a C++ compiler"
)
needs_triton = pytest.mark.skipif(not triton_version(), reason="needs Triton")


def stitched(language: str, folder: Path, mode: Mode = "kernels", device: str = "cpu") -> Stitched:
    def choose(definition: Definition) -> Solution | None:
        known = rms_kernel(definition)
        return known and known.model_copy(
            update={
                "spec": BuildSpec(language=language),
                "sources": tuple(SourceFile(path=p, content=t) for p, t in SOURCES[language].items()),
            }
        )

    source = BLOCK
    if device == "cuda":
        source = BLOCK.replace('autocast("cpu"', 'autocast("cuda"').replace("torch.tensor([0.5])", "0.5")
    return stitch_in_process(source, folder, mode, choose, device)


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cuda")
    made = stitched("cuda", root / "stitched")
    assert made.solution.spec.language == "cuda"
    write_artifact(root / "tiny_cuda", made.target, made.solution, report(made), cache=root / "cache")
    return root / "tiny_cuda"


@needs_cuda
@pytest.mark.slow
def test_cuda_kernels_run_alone_in_the_emulator(cuda: Path, tmp_path: Path) -> None:
    assert list(cuda.glob(f"kernels/*/kernel.*.{DEFAULT_TARGET}.cubin"))
    done = run_alone(cuda, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ran 2")


@pytest.mark.slow
@needs_cuda
def test_without_emulator_and_gpu_a_launch_says_what_it_needs(cuda: Path, tmp_path: Path) -> None:
    moved = tmp_path / "tiny_cuda"
    shutil.copytree(cuda, moved)
    for library in moved.glob("kernels/*/*.so"):
        library.unlink()
    done = run_alone(moved, tmp_path)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("kernel.cu needs tensors on an NVIDIA GPU: no emulator was built for this CPU")


@pytest.mark.slow
@needs_cuda
def test_an_artifact_for_a_gpu_imports_where_there_is_none(cuda: Path, tmp_path: Path) -> None:
    """Its plan names another device than the model's: the original forward runs, and verify.py says why."""
    moved = tmp_path / "tiny_cuda"
    shutil.copytree(cuda, moved)
    plan = moved / "plan.json"
    plan.write_text(plan.read_text().replace('"device": "cpu"', '"device": "cuda"'))
    done = run_alone(moved, tmp_path)
    assert "AssertionError: {'norm_" in done.stderr  # no kernel ran; the outputs agreed before that
    done = subprocess.run(
        [sys.executable, "verify.py"], cwd=moved, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "This artifact was made for an NVIDIA GPU, but torch finds none on this machine.\n"


@needs_cuda
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="is about machines without CuPy")
def test_cupy_kernels_are_carried_and_say_which_package_they_need(tmp_path: Path) -> None:
    made = stitched("cupy", tmp_path / "stitched")
    assert made.solution.spec.language == "cupy"
    write_artifact(tmp_path / "tiny_cupy", made.target, made.solution, report(made), cache=tmp_path / "cache")
    done = run_alone(tmp_path / "tiny_cupy", tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(
        r"RuntimeError: kernel norm_\w+ needs cupy; install it with: pip install cupy-cuda\d+x", last
    )


@needs_triton
@pytest.mark.slow
def test_triton_kernels_run_alone_in_tritons_interpreter(tmp_path: Path) -> None:
    made = stitched("triton", tmp_path / "stitched")
    assert made.solution.spec.language == "triton"
    folder = tmp_path / "tiny_triton"
    write_artifact(folder, made.target, made.solution, report(made), cache=tmp_path / "cache")
    assert not (folder / "agentforge_prelude.py").exists()
    done = run_alone(folder, tmp_path, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ran 2")
    code = "import sys; sys.modules['triton'] = None\n"
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(code)
    done = run_alone(folder, tmp_path, PYTHONPATH=str(hidden))
    assert "needs triton; install it with: pip install triton" in done.stderr


def test_a_cuda_kernel_that_was_entered_and_not_launched_is_no_proof() -> None:
    solution = make_solution("cuda", SOURCES["cuda"])
    variant = Variant("kernels", frozenset({"rms_1"}), solution, expected={"rms_1": 2})

    def problems(**calls: int) -> list[str]:
        uses = tuple(KernelUse(name=name, calls=count, own=True) for name, count in calls.items())
        return engagement(variant, Evaluation.model_construct(kernels=uses), {"rms_1": solution})

    assert problems(rms_1=2, rms=2) == []
    assert problems(rms_1=2) == ["kernel rms_1 was entered, but none of its compiled functions ran"]

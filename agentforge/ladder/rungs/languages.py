"""The languages of kernels: CUDA C++ by NVRTC, CuPy, Triton."""

from __future__ import annotations

import tempfile
from pathlib import Path

from agentforge.schema import pip_install

from .._failure import RungFailure

_SOURCE = """
extern "C" __global__ void twice(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
"""
_TRITON = """
import triton
import triton.language as tl

@triton.jit
def twice(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)
"""
_LENGTH = 100_003


def nvrtc() -> str:
    """Compile with NVRTC, launch by the driver, compare."""
    import torch

    from agentforge.languages.cuda.compile.nvrtc import find_toolkit
    from agentforge.languages.cuda.shipped.agentforge_cuda import load

    toolkit = find_toolkit()
    if toolkit is None:
        raise RungFailure("NVRTC is not installed", f"run {pip_install('cuda')}")
    x = torch.arange(_LENGTH, dtype=torch.float32, device="cuda")
    out = torch.empty_like(x)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "twice.cu").write_text(_SOURCE)
        kernels = load(str(Path(folder) / "model_new.py"), "twice.cu")
        kernels.twice(x, out, _LENGTH, grid=-(-_LENGTH // 256), block=256)
        _compare(out, x)
    return Path(toolkit.library).name


def cupy() -> str:
    """A kernel of CuPy on a tensor of torch, on torch's stream."""
    import torch

    from agentforge.languages.cupy.installed import cupy_problem, installed_cupy

    found = list(installed_cupy())
    if problem := cupy_problem(found, torch.version.cuda or ""):
        cause, _, fix = problem.partition(": ")
        raise RungFailure(cause, fix)
    try:
        import cupy as cp  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise RungFailure(str(error), f"pip install --force-reinstall {found[0]}") from error
    x = torch.arange(_LENGTH, dtype=torch.float32, device="cuda")
    out = torch.empty_like(x)
    with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        kernel = cp.RawKernel(_SOURCE, "twice")
        kernel((-(-_LENGTH // 256),), (256,), (cp.from_dlpack(x), cp.from_dlpack(out), cp.int32(_LENGTH)))
    _compare(out, x)
    return f"{found[0]} {cp.__version__}"


def triton() -> str:
    """A kernel of Triton."""
    import importlib.util

    import torch

    try:
        import triton as package
    except ImportError as error:
        raise RungFailure("Triton is not installed", f"run {pip_install('gpu')}") from error
    x = torch.arange(_LENGTH, dtype=torch.float32, device="cuda")
    out = torch.empty_like(x)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "kernel.py"
        place.write_text(_TRITON)
        spec = importlib.util.spec_from_file_location("kernel", place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.twice[(-(-_LENGTH // 1024),)](x, out, _LENGTH, BLOCK=1024)
        _compare(out, x)
    return f"Triton {package.__version__}"


def _compare(out: object, x: object) -> None:
    import torch

    assert isinstance(out, torch.Tensor) and isinstance(x, torch.Tensor)
    torch.cuda.synchronize()
    if not torch.equal(out, 2 * x):
        raise RungFailure("the kernel's result is wrong")

"""Time from the source of a CUDA kernel to a verdict, with warm baselines; verdicts of other languages."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentforge.codegen.library import kernel_templates
from agentforge.config import RefereeSettings, load_settings
from agentforge.ladder import find_device
from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import (
    AgentForgeError,
    BuildSpec,
    Definition,
    DType,
    Solution,
    SourceFile,
    TensorInput,
    Workload,
)

Keep = Callable[[dict[str, Any]], None]
LIMIT_S = 3.0
_REPEATS = 3
PARTS = ("softmax", "triton", "load_inline", "cupy")
"""The shipped CUDA kernel, and one solution of each other kind."""
_REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)

def get_inputs():
    return [torch.randn({size}, {size})]

def get_init_inputs():
    return []
"""
_CLASS = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return softmax(x)
"""
_KERNEL = """
extern "C" __global__ void rows(const float* x, float* out, int cols) {
    __shared__ float partial[256];
    const float* row = x + (long long)blockIdx.x * cols;
    float* answer = out + (long long)blockIdx.x * cols;
    float most = __int_as_float(0xff800000), sum = 0.0f;  // -inf; NVRTC has no INFINITY
    for (int j = threadIdx.x; j < cols; j += 256) most = fmaxf(most, row[j]);
    partial[threadIdx.x] = most;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }
    most = partial[0];
    __syncthreads();
    for (int j = threadIdx.x; j < cols; j += 256) sum += expf(row[j] - most);
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    sum = partial[0];
    for (int j = threadIdx.x; j < cols; j += 256) answer[j] = expf(row[j] - most) / sum;
}
"""
_INLINE = f"""
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
{_KERNEL}
torch::Tensor launched(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    const int cols = x.size(-1), rows_of_x = x.numel() / cols;
    rows<<<rows_of_x, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), cols);
    return out;
}}
'''
module = load_inline(
    name="softmax_rows", cpp_sources="torch::Tensor launched(torch::Tensor x);", cuda_sources=SOURCE,
    functions=["launched"],
)


def softmax(x):
    return module.launched(x.contiguous())
"""
_CUPY = f"""
import cupy
import torch

kernel = cupy.RawKernel(r'''{_KERNEL}''', "rows")


def softmax(x):
    x = x.contiguous()
    out, cols = torch.empty_like(x), x.shape[-1]
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        arguments = (cupy.from_dlpack(x), cupy.from_dlpack(out), cupy.int32(cols))
        kernel((x.numel() // cols,), (256,), arguments)
    return out
"""


def _solution(definition: Definition, number: int) -> Solution:
    """The shipped softmax in CUDA C++; every number gives a new source that is in no cache."""
    template = kernel_templates()["cuda-softmax"]
    files = [f.model_copy(update={"content": f"{f.content}\n// {number}\n"}) for f in template.files]
    return _with_class(definition, f"softmax-{number}", "cuda", template.render(), files)


def others(definition: Definition) -> dict[str, Solution]:
    """One solution of each other kind that a worker builds or launches in its own way."""
    texts = {
        "load_inline": ("cuda", _INLINE),
        "triton": ("triton", kernel_templates()["softmax"].render()),
        "cupy": ("cupy", _CUPY),
    }
    return {name: _with_class(definition, name, language, text) for name, (language, text) in texts.items()}


def _with_class(
    definition: Definition, name: str, language: str, text: str, files: Sequence[SourceFile] = ()
) -> Solution:
    return Solution(
        name=name,
        definition=definition.hash,
        author="playbook",
        spec=BuildSpec(language=language),
        sources=(SourceFile(path="model_new.py", content=text + _CLASS), *files),
    )


def _verdict(
    referee: Referee, definition: Definition, workload: Workload, solution: Solution
) -> dict[str, Any]:
    begin = time.perf_counter()
    try:
        verdict = referee.evaluate(EvaluationRequest(definition, [workload], solution))
    except AgentForgeError as error:  # for example: ninja or nvcc is missing
        return {"seconds": time.perf_counter() - begin, "status": "NOT_JUDGED", "reasons": [str(error)]}
    measured = verdict.performance
    return {
        "seconds": time.perf_counter() - begin,
        "status": verdict.status.value,
        "reasons": verdict.reasons,
        "stages": {s.name: s.seconds for s in verdict.stages},
        "speedup": {k: v.point for k, v in measured.speedup.items()} if measured else {},
        "call_s": {"solution": measured.latency_s, **measured.baseline_s} if measured else {},
    }


def measure(
    left: float, keep: Keep, only: Sequence[str] = (), device: str = "cuda", size: int = 4096
) -> dict[str, Any]:
    """Seconds of each verdict at level quick; the first one also starts the baselines.

    Args:
        left: seconds; no verdict begins after them.
        keep: writes the results so far.
        only: names of `PARTS`; all if empty.
    """
    end = time.monotonic() + left
    chosen = only or PARTS
    repeats = range(_REPEATS + 1) if "softmax" in chosen else ()
    definition = Definition(name="softmax", op_type="softmax", reference=_REFERENCE.format(size=size))
    workload = Workload(
        name=f"{size}x{size}", inputs=(TensorInput(name="x", shape=(size, size), dtype=DType.FLOAT32),)
    )
    where = find_device(device, load_settings([]).cache)
    found: list[dict[str, Any]] = []
    beside: dict[str, dict[str, Any]] = {}
    with (
        tempfile.TemporaryDirectory() as cache,
        Referee(RefereeSettings(), device=where, cache=Path(cache)) as referee,
    ):
        wanted = {name: one for name, one in others(definition).items() if name in chosen}
        for name, solution in wanted.items():
            if time.monotonic() < end:
                beside[name] = _verdict(referee, definition, workload, solution)
                keep({"verdicts": found, "others": beside})
        for number in repeats:
            if time.monotonic() < end:
                found.append(_verdict(referee, definition, workload, _solution(definition, number)))
                keep({"verdicts": found, "others": beside})
    warm = sorted(v["seconds"] for v in found[1:])
    right = all(v["status"] == "PASSED" for v in (*found, *beside.values()))
    whole = len(found) == len(repeats) and len(beside) == len(wanted)
    return {
        "ok": right and whole and (not warm or warm[0] <= LIMIT_S), "limit_s": LIMIT_S, "warm_s": warm,
        "verdicts": found, "others": beside,
    }  # fmt: skip

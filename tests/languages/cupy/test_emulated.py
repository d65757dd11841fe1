"""CuPy's kernels without a GPU: each in a process as the referee's worker is, with the language's prelude."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentforge.languages import languages, run_command
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cupy.emulated import program
from agentforge.testing.language import make_solution

from .files import SCALE

pytestmark = pytest.mark.skipif(not compiler_version(), reason="needs g++")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects of the emulator, shared by this module's tests."""
    return tmp_path_factory.mktemp("kept")


def run(folder: Path, kept: Path, program: str, text: str = SCALE) -> Any:
    """Build a solution, run a program beside it and return what it leaves in `seen`."""
    folder.mkdir(exist_ok=True)
    language = languages.create("cupy")
    built = language.build(
        make_solution("cupy", {"model_new.py": text}), folder, cache=kept, run=run_command, timeout_s=60.0
    )
    assert built.ok, built.log
    head = "import json, agentforge_prelude, numpy as np, torch, cupy\nfrom model_new import *\nseen = {}\n"
    (folder / "program.py").write_text(f"{head}{FAILS}{program}\nprint(json.dumps(seen))\n")
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(kept)}
    command = [sys.executable, "program.py"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


FAILS = """
def fails(call):
    try:
        call()
    except Exception as error:
        return f"{getattr(error, 'agentforge_code', type(error).__name__)}: {error}"
    return ""
"""


@pytest.mark.slow
def test_raw_kernels_run_and_their_faults_have_the_solutions_line(tmp_path: Path, kept: Path) -> None:
    seen = run(tmp_path, kept, """
x = torch.randn(1000)
model = ModelNew()
seen["right"] = torch.equal(model(x), 2 * x)
seen["calls"] = agentforge_prelude.calls()
a, out, n = cupy.from_dlpack(x), cupy.from_dlpack(torch.empty(1000)), cupy.int32(1000)
launch = lambda *arguments, grid=4, **more: scale((grid,), (256,), arguments, **more)
seen["past"] = fails(lambda: launch(a, out, cupy.int32(1001), cupy.float32(2)))
seen["float"] = fails(lambda: launch(a, out, n, 2.0))
seen["missing"] = fails(lambda: launch(a, out, n))
seen["tensor"] = fails(lambda: launch(x, out, n, cupy.float32(2)))
seen["shared"] = fails(lambda: launch(a, out, n, cupy.float32(2), shared_mem=50000))
seen["grid"] = fails(lambda: launch(a, out, n, cupy.float32(2), grid=0))
launch(x.data_ptr(), out.data.ptr, n, cupy.float32(3))
seen["addresses"] = torch.equal(torch.from_dlpack(out), 3 * x)
seen["unknown"] = fails(lambda: launch(8, out, n, cupy.float32(2)))
seen["needs"] = fails(lambda: cupy.cuda.runtime)
with cupy.cuda.Device(0) as device:
    seen["attributes"] = [device.attributes["MultiProcessorCount"], device.id]
seen["device"] = fails(lambda: device.mem_info)
seen["stream"] = fails(lambda: cupy.cuda.get_current_stream().begin_capture())
seen["gradient"] = fails(lambda: cupy.from_dlpack(torch.ones(1, requires_grad=True)))
seen["narrow"] = fails(lambda: cupy.from_dlpack(torch.ones(1, dtype=torch.bfloat16)))
seen["other"] = fails(lambda: cupy.RawKernel(SOURCE, "nothing")((1,), (1,), ()))
""")  # fmt: skip
    assert seen["right"] and seen["addresses"] and seen["calls"] == {"scale": 1}
    assert seen["past"].startswith("CudaError: model_new.py:8: ") and "kernel scale" in seen["past"]
    assert "numpy.float32(value)" in seen["float"] and "argument 4" in seen["float"]
    assert "takes 4 arguments, not 3" in seen["missing"]
    assert seen["tensor"].startswith("TypeError")
    assert "max_dynamic_shared_size_bytes" in seen["shared"] and "out of range" in seen["grid"]
    assert seen["unknown"].startswith("unsupported") and seen["needs"].startswith("unsupported")
    assert seen["attributes"] == [132, 0]
    assert seen["device"].startswith("unsupported: cupy.cuda.Device.mem_info needs a GPU")
    assert seen["stream"].startswith("unsupported: cupy.cuda.Stream.begin_capture needs a GPU")
    assert "detach" in seen["gradient"] and seen["narrow"].startswith("unsupported")
    assert "no kernel 'nothing'" in seen["other"]


TEMPLATES = r'''
import cupy
import torch

SIZE = 4
code = f"""
template <typename T, int step>
__global__ void add(const T* x, T* out, long long n) {{
    const long long i = threadIdx.x;
    if (i < n) out[i] = x[i] + T(step) + T(OFFSET);
}}
extern "C" __global__ void ptx(float* x) {{ asm("" :: "f"(x[0])); }}
"""
plain = """
extern "C" __global__ void fill(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = %s; }
"""
module = cupy.RawModule(
    code=code.replace('asm("" :: "f"(x[0]));', ""), options=("--std=c++14", "-DOFFSET=5"),
    name_expressions=[f"add<float, {SIZE}>", "add<double, 1>"],
)
norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
blend = cupy.ElementwiseKernel("T x, raw T w, float32 by", "T z", "z = x * w[i % 3] + by", "blend")


@cupy.fuse(kernel_name="gelu")
def gelu(x):
    return x / (1 + cupy.exp(-1.702 * x))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
'''


@pytest.mark.slow
def test_templates_loops_and_fused_functions_run(tmp_path: Path, kept: Path) -> None:
    seen = run(tmp_path, kept, """
x = torch.randn(5, 6, dtype=torch.float64)
a = cupy.from_dlpack(x)
out = cupy.empty_like(a)
module.get_function("add<double, 1>")((1,), (32,), (a, out, 30))
seen["template"] = torch.allclose(torch.from_dlpack(out), x + 6)
close = lambda found, wanted: torch.allclose(torch.from_dlpack(found), wanted)
columns = norm(a, axis=0, keepdims=True)
seen["norm"] = [close(norm(a, axis=1), x.norm(dim=1)), close(columns, x.norm(dim=0, keepdim=True)),
                close(norm(a), x.norm()), norm(a).shape == ()]
w = torch.randn(3, dtype=torch.float64)
seen["blend"] = close(blend(a, cupy.from_dlpack(w), 0.5), x * w.repeat(2) + 0.5)
h = torch.randn(7, 3).half()
halves = blend(cupy.from_dlpack(h), cupy.from_dlpack(w.half()), 1)
seen["half"] = torch.allclose(torch.from_dlpack(halves), h * w.half() + 1, atol=1e-2)
seen["mixed"] = fails(lambda: blend(a, cupy.from_dlpack(h), 0.5))
seen["fused"] = close(gelu(a), x * torch.sigmoid(1.702 * x))
fill = cupy.RawKernel(plain % "1.5f", "fill")
seen["late"] = fails(lambda: fill((1,), (32,), (out, cupy.int32(4))))
seen["filled"] = out.view("float32").ravel()[:4].tolist()
seen["calls"] = agentforge_prelude.calls()
""", TEMPLATES)  # fmt: skip
    right = {key: seen[key] for key in ("template", "norm", "blend", "half", "fused")}
    assert right == dict.fromkeys(right, True) | {"norm": [True] * 4}
    assert seen["mixed"].startswith("TypeError") and "float64 is expected" in seen["mixed"]
    assert not seen["late"] and seen["filled"] == [1.5] * 4
    assert seen["calls"] == {"add<double, 1>": 1, "norm": 4, "blend": 3, "gelu": 1, "fill": 1}


@pytest.mark.slow
def test_a_gpus_counters_count_the_same_launches(tmp_path: Path, kept: Path) -> None:
    seen = run(tmp_path, kept, """
from agentforge.languages.cupy import on_gpu
on_gpu.install(True)
kernel, module = cupy.RawKernel(SOURCE, "scale"), cupy.RawModule(code=SOURCE)
x, out = cupy.from_dlpack(torch.ones(9)), cupy.zeros(9, cupy.float32)
for each in (kernel, module.get_function("scale")):
    each((1,), (32,), (x, out, cupy.int32(9), cupy.float32(2)))
kernel.max_dynamic_shared_size_bytes = 60000
seen["kept"] = kernel.kernel.max_dynamic_shared_size_bytes
fused = cupy.fuse()(lambda a: a + 1)
fused(x)
seen["calls"], seen["sum"] = on_gpu.calls(), float(out.sum())
""")  # fmt: skip
    assert seen == {"kept": 60000, "calls": {"scale": 2, "<lambda>": 1}, "sum": 18.0}


@pytest.mark.slow
def test_emptied_kernels_leave_their_outputs(tmp_path: Path, kept: Path) -> None:
    run(tmp_path, kept, "", TEMPLATES)
    names = languages.create("cupy").empty_kernels(tmp_path)  # type: ignore[attr-defined]
    assert {"add", "ptx", "gelu"} <= set(names)
    program = """
import json, agentforge_prelude, cupy
from model_new import *
x = cupy.ones(4)
print(json.dumps([float(norm(x)), gelu(x).tolist(), blend(x, x, 1).tolist()]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == [0.0, [1.0] * 4, [0.0] * 4]


def test_objects_that_no_evaluation_keeps_are_removed_by_the_next_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert (program._folder.__wrapped__() / ".owner").exists()

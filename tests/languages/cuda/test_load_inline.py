"""`load_inline` files without a GPU: read without running them, rewritten for g++, run by the emulator."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentforge.languages import BuildResult, languages, read_solution, run_command
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cuda import compilers
from agentforge.languages.cuda import language as cuda_language
from agentforge.languages.cuda.compile import pipeline
from agentforge.languages.cuda.launch_syntax import instances, rewritten_launches, without_shadows
from agentforge.languages.cuda.load_inline import runtime as inline_runtime
from agentforge.languages.cuda.load_inline.build import cuda_calls, device_code
from agentforge.languages.cuda.load_inline.parse import Literal, NotLiteral, call_key, inline_calls
from agentforge.languages.cuda.load_inline.port import python_for_cpu
from agentforge.languages.cuda.shipped.agentforge_launches import EmulatorTooSlow
from agentforge.schema import MachineError
from agentforge.testing.language import make_solution

FILE = '''
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

template <typename scalar_t, int step>
__global__ void scaled(const scalar_t* __restrict__ x, scalar_t* out, int n, int beyond, float by) {
    extern __shared__ unsigned char bytes[];
    scalar_t* row = reinterpret_cast<scalar_t*>(bytes);
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * step;
    if (i < n) row[threadIdx.x] = x[i + beyond];
    __syncthreads();
    if (i < n) out[i] = static_cast<scalar_t>(static_cast<float>(row[threadIdx.x]) * by);
}

torch::Tensor scale(torch::Tensor x, c10::optional<torch::Tensor> none, double by, int beyond, int threads) {
    TORCH_CHECK(x.is_cuda(), "x must be on a GPU");
    const at::cuda::OptionalCUDAGuard guard(x.device());
    auto out = torch::empty_like(x, x.options().device(torch::kCUDA));
    const dim3 blocks(threads == 1 ? 2147483647 : (x.numel() + threads - 1) / threads);
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "scale", ([&] {
        const size_t bytes = threads * sizeof(scalar_t);
        scaled<scalar_t, 1><<<blocks, threads, bytes, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), x.numel(), beyond, by);
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}

int64_t resident(int threads, int shared) {
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scaled<float, 1>, threads, shared);
    return blocks;
}
"""
DECLARED = [
    "torch::Tensor scale(torch::Tensor, c10::optional<torch::Tensor>, double, int, int);",
    "int64_t resident(int, int);",
]
module = load_inline(name="m", cpp_sources=DECLARED, cuda_sources=SOURCE, functions=["scale", "resident"])


class ModelNew(torch.nn.Module):
    def forward(self, x, beyond=0, threads=64):
        assert x.is_cuda and torch.cuda.is_available()
        return module.scale(x.cuda(), None, 2.0, beyond, threads)
'''
RUN = """
import json, sys
import agentforge_prelude, torch
from model_new import ModelNew

model, told = ModelNew(), {}
x, half = torch.randn(1000), torch.randn(33, 7).half()
told["right"] = torch.equal(model(x), x * 2) and torch.equal(model(half), half * 2)
told["calls"] = agentforge_prelude.calls()
resident = sys.modules["model_new"].module.resident
asked = ((32, 0), (100, 0), (128, 100 << 10), (1024, 0), (2048, 0))
told["resident"] = [resident(threads, shared) for threads, shared in asked]
for name, arguments in {"past": (x, 1), "launch": (x, 0, 2048), "slow": (x, 0, 1)}.items():
    try:
        model(*arguments)
    except RuntimeError as error:
        told[name] = getattr(error, "agentforge_code", "") + str(error)
print(json.dumps(told))
"""


@pytest.mark.parametrize("there", [("ninja",), ("nvcc",), ("ninja", "nvcc")])
def test_a_gpu_needs_what_torch_compiles_with(
    there: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for tool in there:
        (tmp_path / "bin" / tool).touch(0o755)
    monkeypatch.setattr(cuda_language, "search_path", lambda: str(tmp_path / "bin"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(cuda_language, "compilers", lambda: None)
    monkeypatch.setattr(cuda_language, "compiler_version", lambda: "g++ 12")
    missing = [tool for tool in ("ninja", "nvcc") if tool not in there]

    def build(text: str) -> bool:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        solution = make_solution("cuda", {"model_new.py": text})
        return (
            languages.create("cuda")
            .build(solution, folder, cache=tmp_path / "cache", run=run_command, timeout_s=10, device="cuda")
            .ok
        )

    assert build("class ModelNew: ...")
    if not missing:
        assert build(FILE)
        return
    with pytest.raises(MachineError, match=f"load_inline needs {missing[0]}: "):
        build(FILE)


def test_a_file_that_exhausts_the_parser_has_no_calls() -> None:
    files = {"deep.py": f"from torch.utils.cpp_extension import load_inline\nx = {'-' * 100_000}1\n"}
    assert inline_calls(files) == []


class TestReading:
    def test_names_lists_and_parts_are_followed(self) -> None:
        text = (
            "CODE = '''a'''\n"
            "MORE = CODE + f'{CODE}b'\n"
            "class M:\n"
            "    def __init__(self):\n"
            "        self.code = 'c'.strip()\n"
            "        load_inline('n', '', cuda_sources=[CODE, MORE, self.code], functions=['f'])\n"
        )
        (call,) = inline_calls({"m.py": text})
        assert call.cuda == (Literal("a", 1), Literal("aab", 1), Literal("c", 5))
        assert call.functions == ("f",)
        assert call.key == call_key([""], ["a", "aab", "c"], ["f"])

    @pytest.mark.parametrize(
        "text",
        [
            "c = 'a'\nc = 'b'\nload_inline('n', '', c)",
            "def f(c):\n    load_inline('n', '', c)",
            "load_inline('n', '', open('x').read())",
            "load_inline('n', **given)",
            "c = c\nload_inline('n', '', c)",
        ],
    )
    def test_what_only_running_tells_is_not_guessed(self, text: str) -> None:
        with pytest.raises(NotLiteral):
            inline_calls({"m.py": text})

    def test_a_file_without_calls(self) -> None:
        assert inline_calls({"m.py": "import torch  # load_inline", "k.cu": "load_inline("}) == []


class TestLaunches:
    @pytest.mark.parametrize(
        ("source", "kernel"),
        [
            ("k<<<1, 2>>>(x)", "k"),
            ("ns::k<float, (4 > 2)> <<<dim3(1, 2), n * sizeof(A<B<int>>)>>> (x, y)", "k"),
            ("case 3: k<A<int>><<<g, b>>>()", "k"),
            ("(k<float>)<<<g, b>>>()", "k"),
        ],
    )
    def test_a_launch_is_a_call(self, source: str, kernel: str) -> None:
        text, names = rewritten_launches(source)
        assert names == {kernel}
        assert "<<<" not in text and f'launcher("{kernel}", launch_{kernel}, __LINE__,' in text

    def test_lines_stay_and_comments_are_passed_over(self) -> None:
        source = '// k<<<1, 2>>>(x)\nk<<<1,\n  2>>>(\n  x);\nconst char* s = "k<<<1, 2>>>";\n'
        text, names = rewritten_launches(source)
        assert names == {"k"} and text.count("\n") == source.count("\n")
        assert text.startswith("// k<<<1, 2>>>(x)\n") and text.endswith('"k<<<1, 2>>>";\n')

    def test_a_launcher_s_own_block_size_is_no_built_in_one(self) -> None:
        source = (
            "__global__ void k() { int i = blockDim.x; }\n"
            "void f() { { dim3 gridDim(2), blockDim{8}; k<<<gridDim, blockDim>>>(blockDim.x); } }\n"
            "void g(dim3 blockDim) { k<<<dim3(blockDim.x), blockDim>>>(); }\n"
            "__global__ void l() { dim3 at(blockIdx.x, gridDim.y); }\n"
        )
        text, _ = rewritten_launches(without_shadows(source))
        lines = text.splitlines()
        assert "int i = blockDim.x;" in lines[0] and lines[3] == source.splitlines()[3]
        assert "dim3 gridDim_(2), blockDim_{8};" in lines[1] and "(blockDim_.x); } }" in lines[1]
        assert "void g(dim3 blockDim_) {" in lines[2] and "dim3(blockDim_.x), blockDim_)" in lines[2]

    def test_templates_are_known_as_they_are_launched(self) -> None:
        source = (
            "a<<<1, 2>>>(); b<scalar_t, 4><<<1, 2>>>(); b<scalar_t, 4><<<3, 4>>>(); // c<int><<<1, 2>>>()"
        )
        assert instances(source) == ("b<float, 4>",)

    def test_what_nvrtc_gets_has_no_host_side(self) -> None:
        kernel = "__global__ void k(float* x) { x[0] = 1; }\n"
        host = "#include <torch/extension.h>\n#include <cublas_v2.h>\nusing namespace at;\n"
        launcher = "torch::Tensor f(torch::Tensor x) { k<<<1, 1>>>(nullptr); return x; }\n"
        kept = device_code(host + kernel + launcher)
        assert kept.split("\n")[3] == kernel.strip() and kept.split() == kernel.split()
        assert kept.count("\n") == 5


class TestPython:
    def test_what_asks_for_a_gpu_asks_for_none(self) -> None:
        text = (
            "if x.cuda(0,\n   non_blocking=True).is_cuda and torch.cuda.is_available():\n"
            "    d = torch.device('cuda:0'); é = y.to('cuda'); torch.cuda.synchronize()\n"
        )
        changed, problem = python_for_cpu(text)
        assert not problem and changed.count("\n") == text.count("\n")
        expected = 'if x.cpu().is_cpu and True:\n    d = torch.device("cpu"); é = y.to("cpu"); None\n'
        assert ast.dump(ast.parse(changed)) == ast.dump(ast.parse(expected))

    def test_what_only_a_gpu_has_is_named(self) -> None:
        assert (
            python_for_cpu("import torch\ns = torch.cuda.Stream()\n")[1] == "2: torch.cuda.Stream needs a GPU"
        )


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("load_inline('n', '', 'cutlass::gemm();')", 1),
        ("load_inline('n', 'int f();', '')", 0),
        ("load_inline('n', 'int f();')", 0),
        ("load_inline('n', open('a').read())", 0),
    ],
)
def test_cuda_sources_may_have_no_kernel_of_their_own(call: str, number: int) -> None:
    """A library's templates contain them, as CUTLASS's do."""
    assert len(cuda_calls({"a.py": f"from torch.utils.cpp_extension import load_inline\n{call}\n"})) == number


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("load_inline('n', '', open(__file__).read())", "known only when model_new.py runs"),
        ("load('n', ['kernel.cu'])", "by other means than load_inline"),
        ("load_inline('n', '', CODE); torch.cuda.Stream()", "model_new.py:4: torch.cuda.Stream needs a GPU"),
        (
            "load_inline('n', '', CODE + '__device__ void f() { asm(\"nop;\"); }')",
            "model_new.py:3 uses inline PTX",
        ),
    ],
)
@pytest.mark.skipif(compilers() is None, reason="needs NVRTC or nvcc")
def test_what_cannot_be_judged_is_said(tmp_path: Path, call: str, why: str) -> None:
    text = (
        "import torch\nfrom torch.utils.cpp_extension import load, load_inline\n"
        f"CODE = '__global__ void k() {{}}'\n{call}\nclass ModelNew: ...\n"
    )
    (tmp_path / "model_new.py").write_text(text)
    solution = read_solution(tmp_path / "model_new.py", "0" * 40)
    folder = tmp_path / "built"
    folder.mkdir()
    result = languages.create("cuda").build(solution, folder, cache=tmp_path, run=run_command, timeout_s=60.0)
    assert solution.spec.language == "cuda" and result.ok and why in result.unjudged


_HELPER = "HELPER = '''\n__device__ float twice(float x) { return 2 * x; }\n'''\n"
_AHEAD = "m.py:{}:0: note: not compiled ahead: "
_TWICE = "KERNEL = '''\n__global__ void k(float* x) { x[0] = twice(x[N]); }\n'''\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"""One `__global__` kernel per row."""\nload_inline("n", "", "__global__ void k() {}")\n', ""),
        ('N = 4\nload_inline("n", "", f"__global__ void k(float* x) {{ x[{N}] = 1; }}")\n', ""),
        (f'{_HELPER}{_TWICE}load_inline("n", "", (HELPER + KERNEL).replace("N", "256"))\n', ""),
        (f'{_HELPER}{_TWICE}load_inline("n", "", [HELPER, KERNEL], extra_cuda_cflags=["-DN=4"])\n', ""),
        (f'{_TWICE}{_HELPER}load_inline("n", "", [HELPER, KERNEL])\n', f'{_AHEAD.format(2)}identifier "N"'),
        (f'{_HELPER}{_TWICE}load_inline("n", "", [HELPER, KERNEL])\n', f'{_AHEAD.format(5)}identifier "N"'),
        (
            'load_inline("n", "", "#include <cuda_fp16.h>\\n__global__ void k(half* x) { x[0] = -x[1]; }"'
            ', extra_cuda_cflags=["-U__CUDA_NO_HALF_OPERATORS__"])\n',
            "",
        ),
        (
            'load_inline("n", "", "__global__ void k() {}" + open("more").read())\n',
            "note: not compiled ahead for a GPU: the sources of load_inline are known only when",
        ),
    ],
)
@pytest.mark.skipif(compilers() is None, reason="needs NVRTC or nvcc")
def test_a_gpus_compiler_sees_what_torch_would_compile(
    tmp_path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_language, "_missing_tools", list)  # NVRTC is enough to compile ahead
    text = f"{text}from torch.utils.cpp_extension import load_inline\nclass ModelNew: ...\n"
    solution = make_solution("cuda", {"m.py": text, "model_new.py": "from m import ModelNew\n"})
    result = languages.create("cuda").build(
        solution, tmp_path, cache=tmp_path / "cache", run=run_command, timeout_s=60.0, device="cuda"
    )
    assert result.ok and result.log.startswith(message) and bool(message) == bool(result.log)


@pytest.mark.parametrize(
    ("source", "without_a_gpu"),
    [
        ('__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }', "inline PTX"),
        (
            "#include <cuda.h>\n__global__ void k(const __grid_constant__ CUtensorMap m, int* x) { *x = 1; }",
            "CUtensorMap",
        ),
        (
            "template <class T> requires (sizeof(T) == 4) __device__ T one() { return 1; }\n"
            "__global__ void k(float* x) { x[0] = one<float>(); }",
            "",
        ),
        pytest.param(
            "#include <cutlass/cutlass.h>\n__global__ void k(float* x) { x[0] = 1; }",
            "cutlass",
            marks=pytest.mark.slow,  # nvcc tries it too
        ),
    ],
    ids=["wgmma", "TMA", "C++20", "CUTLASS"],
)
@pytest.mark.skipif(compilers() is None, reason="needs NVRTC or nvcc")
def test_what_torch_compiles_on_a_gpu_is_not_decided_ahead(
    tmp_path: Path, source: str, without_a_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_language, "_missing_tools", list)
    monkeypatch.setattr(pipeline, "gpu_target", lambda: "sm_90")
    text = f"""
from torch.utils.cpp_extension import load_inline
load_inline("n", "", r'''{source}''', extra_cuda_cflags=["-gencode=arch=compute_90a,code=sm_90a"])
class ModelNew: ...
"""

    def build(device: str, files: dict[str, str]) -> BuildResult:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return languages.create("cuda").build(
            make_solution("cuda", files),
            folder,
            cache=tmp_path / "cache",
            run=run_command,
            timeout_s=60.0,
            device=device,
        )

    built = build("cuda", {"model_new.py": text})
    assert built.ok and not built.unjudged
    assert all(d.severity == "note" for d in built.diagnostics)
    if "wgmma" in source:
        assert [r.target for r in built.resources] == ["sm_90a"]
    else:
        assert "not compiled ahead: " in built.log
    here = build("cpu", {"model_new.py": text})
    assert here.unjudged or not here.ok
    assert without_a_gpu in here.unjudged + here.log
    if "CUtensorMap" in source:  # what the runtime loads from the folder is decided ahead
        assert not build("cuda", {"model_new.py": text, "kernel.cu": source}).ok


_DOUBLED = "\n".join(f"a{i + 1} = a{i} + a{i}" for i in range(40))


@pytest.mark.parametrize(
    "given",
    [
        f"a40, KERNEL)\na0 = 'x'\n{_DOUBLED}",
        "a, KERNEL)\na = a + 'x'",
        "a, KERNEL)\na = [a]",
        "1 + 'x', KERNEL)",
        "5, KERNEL)",
        "[b'x'], KERNEL)",
        "''.join([1]), KERNEL)",
        "'', KERNEL, functions=[1])",
        "'', KERNEL, extra_cuda_cflags=3)",
        f"f'{{0x{'f' * 5000}}}', KERNEL)",
        f"{'x' * 3000!r}.replace('x', {'y' * 30000!r}, 3000), KERNEL)",
    ],
)
def test_reading_a_hostile_file_ends_and_says_so(given: str) -> None:
    with pytest.raises(NotLiteral):
        inline_calls({"m.py": f"KERNEL = '__global__ void k() {{}}'\nload_inline('m', {given}\n"})


def test_a_file_that_is_no_python_has_no_calls() -> None:
    assert inline_calls({"m.py": "load_inline((("}) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["dim3 ", "a<<<", "><<<1>>>", "(a)<<<"],
)
def test_rewriting_a_hostile_source_ends(text: str) -> None:
    rewritten_launches(without_shadows(text * 20_000))


def test_kernels_of_one_name_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {key: SimpleNamespace(cuda_on_cpu_launched=lambda said=said: said) for key, said in
               (("first", "add 2 mul 1 "), ("second", "add 0 "))}  # fmt: skip
    monkeypatch.setattr(inline_runtime, "_loaded", modules)
    assert inline_runtime.calls() == {"add": 2, "mul": 1}


def test_only_the_emulator_says_that_a_launch_is_too_slow() -> None:
    said = inline_runtime._located(
        RuntimeError("<slow> 1 of 9 blocks took 4 s (kernel k)"), Path("k.so"), "m.py"
    )
    assert type(said) is EmulatorTooSlow
    mine = RuntimeError("too slow: says the candidate's host code")
    assert inline_runtime._located(mine, Path("k.so"), "m.py") is mine


@pytest.mark.slow
@pytest.mark.skipif(
    compilers() is None or not compiler_version(), reason="needs NVRTC or nvcc, and a C++ compiler"
)
def test_a_file_runs_and_its_faults_have_lines(tmp_path: Path) -> None:
    (tmp_path / "model_new.py").write_text(FILE)
    built = tmp_path / "built"
    built.mkdir()
    result = languages.create("cuda").build(
        read_solution(tmp_path / "model_new.py", "0" * 40),
        built,
        cache=tmp_path,
        run=run_command,
        timeout_s=300.0,
    )
    assert result.ok and not result.unjudged and result.untimed, result.log
    assert [(usage.kernel, usage.target) for usage in result.resources] == [("scaled", "sm_90")]
    done = subprocess.run([sys.executable, "-c", RUN], cwd=built, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout or "{}")
    assert told, done.stderr
    lines = FILE.splitlines()
    load, launch = (
        1 + next(i for i, x in enumerate(lines) if part in x) for part in ("x[i + beyond]", "<<<")
    )
    assert told["right"] and told["calls"] == {"scaled": 2}
    assert told["resident"] == [32, 16, 2, 2, 0]
    assert told["past"].startswith(
        f"model_new.py:{load}: out of bounds: thread (39, 0, 0) of block (15, 0, 0)"
    )
    assert "0 bytes past the end of a tensor of 4000 bytes (pointer argument 1)" in told["past"]
    assert told["slow"].startswith("unsupportedthe emulator on the CPU is too slow: ")
    assert told["launch"].startswith(f"model_new.py:{launch}: launch out of range: block.x is 2048")

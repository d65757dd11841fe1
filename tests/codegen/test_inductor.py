"""The seed candidate from Inductor."""

from __future__ import annotations

import ast
import logging
import os
import resource
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.codegen.inductor import inductor_solution
from agentforge.codegen.inductor.convert import CannotConvert, contiguous, convert
from agentforge.codegen.inductor.generate import _generate
from agentforge.isolation.child_process import run_child
from agentforge.languages import languages, run_command
from agentforge.problems.kernelbench import import_source, load_problem
from agentforge.schema import Definition, Distribution, DType, ScalarInput, TensorInput, Workload


@pytest.fixture(autouse=True, scope="module")
def _inductor_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


OUTPUT = """
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu

cpp_fused_add_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    out_ptr0[0] = in_ptr0[0];
}
''')

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (4, 2), (1, 4), 'input')
        buf0 = empty_strided_cpu((4, 2), (2, 1), torch.float32)
        # Topologically Sorted Source Nodes: [add]
        cpp_fused_add_0(arg0_1, buf0)
        buf1 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
        extern_kernels.mm(buf0, reinterpret_tensor(arg1_1, (2, 4), (1, 2), 0), out=buf1)
        buf2 = buf1; del buf1  # reuse
        cpp_fused_add_0(buf2, reinterpret_tensor(buf2, (4, 4), (1, 4), 0))
        return (buf2, )
"""
LAYOUTS = [((4, 2), (1, 4)), ((4, 2), (2, 1))]


class TestConvert:
    def test_the_call_is_rewritten(self) -> None:
        got = convert(OUTPUT, LAYOUTS, "_7")
        assert got.function == textwrap.dedent("""\
            def _run_7(arg0_1, arg1_1):
                buf0 = _empty((4, 2), (2, 1), torch.float32)
                _lib.cpp_fused_add_0_7(_cpp.Strided(arg0_1), buf0)
                buf1 = _empty((4, 4), (4, 1), torch.float32)
                torch.mm(buf0, _view(arg1_1, (2, 4), (1, 2), 0), out=buf1)
                buf2 = buf1
                del buf1
                _lib.cpp_fused_add_0_7(buf2, _cpp.Strided(_view(buf2, (4, 4), (1, 4), 0)))
                return (buf2,)""")
        assert got.results == 1 and got.names == ("cpp_fused_add_0_7",)
        assert "cpp_fused_add_0_7(const float* in_ptr0" in got.kernels and "#include" not in got.kernels
        ast.parse(got.function)

    @pytest.mark.parametrize(
        ("old", "new", "why"),
        [
            ("async_compile.cpp_pybinding", "async_compile.triton", "a kernel made by async_compile.triton"),
            ("extern_kernels.mm", "extern_kernels.some_template", "calls extern_kernels.some_template"),
            ("(buf2, )", "(buf2, constant0)", "uses constant0"),
            ("return (buf2, )", "return helper(buf2)", "calls helper"),
            ("return (buf2, )", "return buf2", "does not return a tuple"),
            ("buf2 = buf1; del buf1", "buf2 = os.system('true')", "calls os.system"),
            ("buf2 = buf1; del buf1", "buf2 = buf1\n        if buf2: pass", "not straight-line code"),
            ("arg0_1, arg1_1 = args", "arg0_1, = args", "takes 1 arguments, but the graph has 2"),
            ("def call", "def other", "0 call functions"),
        ],
    )
    def test_what_is_unknown_is_refused(self, old: str, new: str, why: str) -> None:
        assert old in OUTPUT
        with pytest.raises(CannotConvert, match=why):
            convert(OUTPUT.replace(old, new), LAYOUTS, "_0")

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=4))
    def test_contiguous_agrees_with_torch(self, dims: list[tuple[int, int]]) -> None:
        import torch

        sizes, strides = tuple(s for s, _ in dims), tuple(t for _, t in dims)
        assert contiguous((sizes, strides)) == torch.empty_strided(sizes, strides).is_contiguous()


REFERENCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(d, d), torch.nn.GELU())
        self.register_buffer("scale", torch.rand(d))
    def forward(self, x, power, residual):
        h = self.net(x) * self.scale + residual.t()
        return torch.softmax(h, -1) ** power, (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6),)
def get_inputs():
    return [torch.randn(32, 48), 2, torch.randn(48, 32)]
def get_init_inputs():
    return [48]
"""
CHECK = """
import sys
sys.modules["agentforge"] = None
import torch, agentforge_cpp
import model_new as m
torch.manual_seed(0); old = m.Model(48).eval()
torch.manual_seed(1); new = m.ModelNew(48).eval()
new.load_state_dict(old.state_dict())
def check(*inputs):
    agentforge_cpp.reset_calls()
    (a, (b,)), (c, (d,)) = old(*inputs), new(*inputs)
    torch.testing.assert_close((c, d), (a, b), rtol=1e-4, atol=1e-5)
    assert (a.stride(), b.stride()) == (c.stride(), d.stride())
    return sum(agentforge_cpp.calls().values())
r = torch.randn(48, 32)
with torch.no_grad():
    assert check(torch.randn(32, 48), 2, r) > 0
    assert check(torch.randn(64, 48), 2, torch.randn(48, 64)) > 0      # the second workload
    assert check(torch.randn(32, 48), 3, r) == 0                       # another scalar
    assert check(torch.randn(5, 48), 2, torch.randn(48, 5)) == 0       # another shape
    assert check(torch.randn(48, 32).t(), 2, r) == 0                   # other strides
assert check(torch.randn(32, 48), 2, r) == 0                           # autograd is wanted
new(torch.randn(32, 48), 2, r)[0].sum().backward()
assert new.net[0].weight.grad is not None
"""


def workload(rows: int) -> Workload:
    normal = Distribution(kind="normal")
    return Workload(
        name=f"{rows}",
        inputs=(
            TensorInput(name="x", shape=(rows, 48), dtype=DType.FLOAT32, distribution=normal),
            ScalarInput(name="power", value=2),
            TensorInput(name="residual", shape=(48, rows), dtype=DType.FLOAT32),
        ),
    )


@pytest.mark.slow
def test_a_module_with_state_scalars_and_two_workloads(tmp_path: Path) -> None:
    definition = Definition(name="mixed", op_type="other", reference=REFERENCE)
    solution = inductor_solution(definition, Workload(name="own", source="reference"), workload(64))
    assert solution is not None
    assert (solution.author, solution.definition) == ("inductor", definition.hash)
    folder = tmp_path / "built"
    folder.mkdir()
    built = languages.create("cpp").build(
        solution, folder, cache=tmp_path / "cache", run=run_command, timeout_s=120
    )
    assert built.ok, built.log
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = run_command([sys.executable, "-c", CHECK], cwd=folder, timeout_s=120, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forward", "inputs", "why"),
    [
        ("return x.cumsum(0)", "", "library calls only"),
        ("return {'y': x + 1}", "", "an output is a dict"),
        ("raise RuntimeError('broken')", "", ""),
        ("return x * more[0]", "(2, 3)", "an input is a list, tuple or dict"),
    ],
)
def test_what_cannot_be_taken_over(
    forward: str, inputs: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    reference = (
        "import torch\nclass Model(torch.nn.Module):\n"
        f"    def forward(self, x, more=()):\n        {forward}\n"
        f"def get_inputs(): return [torch.rand(8, 8), {inputs}]\ndef get_init_inputs(): return []\n"
    )
    definition = Definition(name="odd", op_type="other", reference=reference)
    with caplog.at_level(logging.INFO, "agentforge.codegen"):
        assert inductor_solution(definition, Workload(name="w", source="reference")) is None
    assert "no inductor seed for odd" in caplog.text and why in caplog.text


@pytest.mark.slow
def test_kernels_do_not_keep_the_number_of_threads() -> None:
    reference = (
        "import torch\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x.exp() * 2, x.sum()\n"
        "def get_inputs(): return [torch.rand(512, 512)]\ndef get_init_inputs(): return []\n"
    )
    definition = Definition(name="exp", op_type="other", reference=reference)
    code = _generate(definition, Workload(name="w", source="reference"), 120.0)["code"]
    assert "#pragma omp parallel\n" in code
    assert "_arr[max_threads]" in code, "another machine may have more threads"


@pytest.mark.slow
def test_a_workload_that_the_reference_lists_is_drawn() -> None:
    from agentforge.codegen.inductor.child import _inputs  # it imports the compiler

    module = import_source("def get_inputs(workload):\n    return [workload]", "listed_for_inductor")
    assert _inputs(module, Workload(name="a", key="a", source="reference")) == (["a"], {})


def test_differentiable_definitions_get_none(caplog: pytest.LogCaptureFixture) -> None:
    definition = Definition(name="d", op_type="other", reference=REFERENCE, differentiable=True)
    with caplog.at_level(logging.INFO, "agentforge.codegen"):
        assert inductor_solution(definition, workload(8)) is None
    assert "no backward" in caplog.text


SURROUNDINGS = """
import os, resource, time
class Model: ...
def get_inputs(): return []
def get_init_inputs():
    if "AGENTFORGE_TEST_SLEEPS" in os.environ:
        time.sleep(60)
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    cache, files = os.environ["TORCHINDUCTOR_CACHE_DIR"], os.listdir()
    raise ValueError(f"in {os.getcwd()} with {files} and {cache} and {limit}")
"""


@pytest.mark.slow
def test_a_seed_is_generated_in_a_folder_of_its_own_with_the_callers_cache_and_limits(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = Definition(name="odd", op_type="other", reference=SURROUNDINGS)
    whole = Workload(name="w", source="reference")
    with caplog.at_level(logging.INFO, "agentforge.codegen"):
        assert inductor_solution(definition, whole) is None
        monkeypatch.setenv("AGENTFORGE_TEST_SLEEPS", "1")  # needs no other server
        assert inductor_solution(definition, whole, timeout_s=1.0) is None
    found, late = caplog.messages
    limit, cache = resource.getrlimit(resource.RLIMIT_AS)[0], os.environ["TORCHINDUCTOR_CACHE_DIR"]
    assert "agentforge-inductor-" in found and f" with ['.owner'] and {cache} and {limit}" in found
    assert not Path(found.partition(" in ")[2].partition(" with ")[0]).exists()
    assert "Inductor took longer than 1 s" in late


DRAWN = """
import random
import torch

class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.drawn = scale, random.random()

    def forward(self, x):
        return x * sum(self.drawn)

def get_inputs(): return [torch.randn(4)]
def get_init_inputs(): return [random.random()]
"""


def test_inductor_sees_the_constants_of_each_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentforge.codegen.inductor import child

    seen: list[Any] = []

    def compiled(model: Any, **_: object) -> Any:
        seen.append(model.drawn)
        return model

    monkeypatch.setattr("torch.compile", compiled)
    with pytest.raises(child._Refused, match="nothing to compile"):
        child.generate(DRAWN, Workload(name="reference", source="reference"))
    drawn: Any = load_problem(Definition(name="drawn", op_type="other", reference=DRAWN)).build(seed=5)
    assert seen == [drawn.drawn]


@pytest.mark.slow
def test_inductor_is_imported_once_for_all_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANOTHER_SERVER", "seeds")
    definition = Definition(name="odd", op_type="other", reference=SURROUNDINGS)
    modules = ["torch._inductor.compile_fx"]
    found = run_child("tests.isolation.child_tasks:inherited", {"modules": modules}, timeout_s=60.0)
    assert found["modules"] == []
    assert inductor_solution(definition, Workload(name="w", source="reference")) is None
    after = run_child("tests.isolation.child_tasks:inherited", {"modules": modules}, timeout_s=60.0)
    assert after == {"modules": modules, "server": found["server"]}

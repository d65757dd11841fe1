"""Kernels that a user brings become solutions; sequential loops get threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends.c_functions import choose_function
from agentforge.frontends.sequential import read_sequential, reference
from agentforge.runs.kinds.kernel import whole
from agentforge.runs.user_kernels import parallel_versions, read_kernel, with_parallel_loops
from agentforge.schema import Definition, UsageError, Workload

REFERENCE = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def get_inputs():
    return [torch.randn(32, 67), torch.rand(67)]


def get_init_inputs():
    return []
"""
KERNEL = """\
#include <cmath>

void rms(const float* x, const float* weight, float* out, int rows, int cols) {
    for (int i = 0; i < rows; i++) {
        float sum = 0;
        for (int j = 0; j < cols; j++) sum += x[i * cols + j] * x[i * cols + j];
        float scale = 1.0f / std::sqrt(sum / cols + 1e-6f);
        for (int j = 0; j < cols; j++) out[i * cols + j] = x[i * cols + j] * scale * weight[j];
    }
}
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Definition, Workload]:
    path = tmp_path_factory.mktemp("reference") / "ref.py"
    path.write_text(REFERENCE)
    target = load_target(str(path), FrontendOptions())
    return whole(target.definition), target.workloads[0]


@pytest.mark.slow
def test_bare_cpp_is_bound_to_the_inputs(problem: tuple[Definition, Workload], tmp_path: Path) -> None:
    path = tmp_path / "rms.cpp"
    path.write_text(KERNEL)
    given = read_kernel(path, *problem, "cpu")
    model = {s.path: s.content for s in given.solution.sources}["model_new.py"]
    assert "def forward(self, x, weight):" in model
    assert "out_0 = torch.empty([32, 67], dtype=torch.float32)" in model
    assert "lib.agentforge_run(x, weight, out_0, 32, 67)" in model
    assert given.solution.definition == problem[0].hash


@pytest.mark.parametrize(
    ("signature", "says"),
    [
        ("const float* x, float* out, int n", "reads 1 arrays"),
        (
            "const float* x, const float* weight, float* out, int n, float eps",
            "cannot infer the value of scalar parameter `eps`",
        ),
        ("const float* x, const float* weight, float* out, int a, int b, int c", "3 sizes do not fit"),
    ],
)
def test_what_cannot_be_told_is_asked_for(
    problem: tuple[Definition, Workload], tmp_path: Path, signature: str, says: str
) -> None:
    path = tmp_path / "rms.cpp"
    path.write_text(f"void rms({signature}) {{ }}\n")
    with pytest.raises(UsageError, match=rf"{says}.*model_new\.py"):
        read_kernel(path, *problem, "cpu")


def test_a_file_beside_model_new_is_read_with_it(
    problem: tuple[Definition, Workload], tmp_path: Path
) -> None:
    (tmp_path / "kernel.cu").write_text("__global__ void k() {}\n")
    with pytest.raises(UsageError, match=r"write model_new\.py"):
        read_kernel(tmp_path / "kernel.cu", *problem, "cpu")
    (tmp_path / "model_new.py").write_text(
        'import agentforge_cuda\n\nlib = agentforge_cuda.load(__file__, "kernel.cu")\n\n\n'
        "class ModelNew:\n    pass\n"
    )
    solution = read_kernel(tmp_path / "kernel.cu", *problem, "cpu").solution
    assert {s.path for s in solution.sources} == {"kernel.cu", "model_new.py"}
    assert solution.spec.language == "cuda"


def threads(body: str) -> str:
    source = f"void f(const float* x, float* out, int n) {{\n{body}\n}}\n"
    return with_parallel_loops(source, choose_function(source))


def test_outermost_loops_only() -> None:
    text = threads("for (int i = 0; i < n; i++) { for (int j = 0; j < 4; j++) { out[i] = j; } }\nout[0] = 1;")
    assert text.count("#pragma omp parallel for") == 1
    assert text.index("#pragma") < text.index("for (int i")


def test_loops_one_after_the_other_and_without_braces() -> None:
    text = threads("for (int i = 0; i < n; i++) out[i] = 1;\nfor (int i = 0; i < n; i++) out[i] += x[i];")
    assert text.count("#pragma omp parallel for\nfor") == 2


def test_sums_are_reduced() -> None:
    text = threads("float sum = 0;\nfor (int i = 0; i < n; i++) sum += x[i];\nout[0] = sum;")
    assert "#pragma omp parallel for reduction(+: sum)" in text


@pytest.mark.slow
def test_nothing_to_share_is_no_second_version(tmp_path: Path) -> None:
    (tmp_path / "one.cpp").write_text("void one(const float* x, float* out, int n) { out[0] = x[n - 1]; }\n")
    found = read_sequential(tmp_path / "one.cpp", {"n": (8,), "x": (8,), "out": (1,)})
    definition = Definition(name="one", op_type="custom", reference=reference(found))
    assert [g.strategy for g in parallel_versions(found, definition)] == ["native-code"]


@pytest.mark.slow
def test_the_original_may_have_parameters_with_names_that_python_uses_itself(tmp_path: Path) -> None:
    (tmp_path / "f.cpp").write_text("void f(const float* in, float* lib, int n) { lib[0] = in[n - 1]; }\n")
    found = read_sequential(tmp_path / "f.cpp", {"n": (8,), "in": (8,), "lib": (1,)})
    definition = Definition(name="f", op_type="custom", reference=reference(found))
    (version,) = parallel_versions(found, definition)
    text = version.solution.source("model_new.py")
    compile(text, "model_new.py", "exec")
    assert "def forward(self, in_):" in text and "lib.agentforge_run(in_, lib_, 8)" in text

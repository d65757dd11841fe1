"""Reading a file with CuPy before it runs, and which CuPy fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.languages import BuildResult, language_info, languages, run_command
from agentforge.languages.cuda import compilers
from agentforge.languages.cupy import language as cupy_language
from agentforge.languages.cupy.installed import cupy_problem
from agentforge.languages.cupy.sources import find_kernels
from agentforge.schema import MachineError
from agentforge.testing.language import make_solution

from .files import SCALE


def test_a_file_that_exhausts_the_parser_has_no_kernels() -> None:
    assert not find_kernels({"deep.py": f"import cupy\nx = {'-' * 100_000}1\n"}).sources


def test_literal_sources_are_found_with_their_lines_options_and_templates() -> None:
    text = """from cupy import RawKernel as Raw, RawModule
import cupy
NAME = "f"
a = Raw("extern \\"C\\" __global__ void f(float* x) {}", NAME, ("-std=c++14", "--use_fast_math"))
b = RawModule(code="template <class T> __global__ void g(T* x) {}", name_expressions=["g<float>"])
c = RawModule(code=open("k.cu").read())
d = cupy.ElementwiseKernel("T x", "T y", "y = x")
"""
    found = find_kernels({"model_new.py": text})
    assert [s.place for s in found.sources] == ["model_new.py:4", "model_new.py:5"]
    assert found.sources[0].options == ("--use_fast_math",)
    assert found.sources[1].instances == ("g<float>",)
    assert found.unknown == ["model_new.py:6"]
    assert found.names == ["f", "g", "RawModule in line 6", "ElementwiseKernel in line 7"]
    assert not found.unsupported and not found.on_torch_stream


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import cupyx.jit", "cupyx.jit"),
        ("from cupy.linalg import norm", "cupy.linalg"),
        ("import cupy\nk = cupy.RawKernel('__global__ void f() { asm(\"\"); }', 'f')", "inline PTX"),
    ],
)
def test_what_needs_a_gpu_is_said_in_one_sentence(text: str, what: str) -> None:
    unsupported = find_kernels({"model_new.py": text}).unsupported
    assert what in unsupported and unsupported.startswith("model_new.py:")


@given(st.text(max_size=200), st.sampled_from(["RawKernel", "RawModule", "ElementwiseKernel"]))
def test_any_text_is_read(text: str, kind: str) -> None:
    found = find_kernels({"a.py": f"import cupy\nk = cupy.{kind}({text!r}, 'f')", "b.py": f"cupy {text}"})
    assert found.names


@pytest.mark.skipif(compilers() is None, reason="needs a CUDA compiler")
def test_sources_are_compiled_for_the_named_targets(tmp_path: Path) -> None:
    solution = make_solution("cupy", {"model_new.py": SCALE}, ("--target=sm_80", "--target=sm_100"))
    built = languages.create("cupy").build(
        solution, tmp_path, cache=tmp_path / ".cache", run=run_command, timeout_s=60
    )
    assert built.ok and [(r.kernel, r.target) for r in built.resources] == [
        ("scale", "sm_80"),
        ("scale", "sm_100"),
    ]
    assert all(r.registers for r in built.resources)
    assert not list(tmp_path.glob("*.cubin")) and built.untimed and not built.unjudged


def test_launches_on_another_stream_are_warned_of(tmp_path: Path) -> None:
    text = SCALE.replace(
        "with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):", "if True:"
    )
    built = languages.create("cupy").build(
        make_solution("cupy", {"model_new.py": text}),
        tmp_path,
        cache=tmp_path / "c",
        run=run_command,
        timeout_s=60,
    )
    assert built.ok and [d.message for d in built.diagnostics if d.severity == "warning"] == [
        cupy_language._STREAM
    ]


@pytest.mark.parametrize(
    ("names", "cuda", "says"),
    [
        ([], "12.8", "CuPy is not installed: pip install cupy-cuda12x"),
        ([], "", "pip install cupy-cuda13x"),
        (["cupy-cuda13x", "cupy-cuda12x"], "13.0", "pip uninstall cupy-cuda12x cupy-cuda13x, then pip"),
        (["cupy-cuda12x"], "13.0", "is for CUDA 12 and torch for CUDA 13.0: pip uninstall cupy-cuda12x"),
        (["cupy-rocm-5-0"], "13.0", "AMD"),
    ],
)  # fmt: skip
def test_a_cupy_that_does_not_fit_is_refused(names: list[str], cuda: str, says: str) -> None:
    problem = cupy_problem(names, cuda)
    assert says in problem and "\n" not in problem


@pytest.mark.parametrize(
    ("names", "cuda"), [(["cupy-cuda13x"], "13.0"), (["cupy"], "13.0"), (["cupy-cuda12x"], "")]
)
def test_a_cupy_that_fits_is_taken(names: list[str], cuda: str) -> None:
    assert cupy_problem(names, cuda) == ""


def test_a_build_for_a_gpu_refuses_before_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Callable[[], dict[str, str]] = lambda: {"cupy": "14.2.0", "cupy-cuda12x": "14.2.0"}  # noqa: E731
    monkeypatch.setattr(cupy_language, "installed_cupy", found)
    with pytest.raises(MachineError, match="cupy and cupy-cuda12x are installed"):
        languages.create("cupy").build(
            make_solution("cupy", {"model_new.py": SCALE}),
            tmp_path, cache=tmp_path / "c", run=run_command, timeout_s=60, device="cuda",
        )  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_its_kernels_are_its_own() -> None:
    assert language_info("cupy").own_kernels


@pytest.mark.skipif(compilers() is None, reason="needs a CUDA compiler")
@pytest.mark.parametrize("name", ["INFINITY", "int64_t(1)"])
def test_what_cupys_compiler_lacks_is_an_error_at_its_line(name: str, tmp_path: Path) -> None:
    text = SCALE.replace("x[i] * by;", f"x[i] * by - float({name});")
    assert text != SCALE

    def built(source: str) -> BuildResult:
        return languages.create("cupy").build(
            make_solution("cupy", {"model_new.py": source}),
            tmp_path, cache=tmp_path / ".cache", run=run_command, timeout_s=60, device="cpu",
        )  # fmt: skip

    found = built(text)
    line = text[: text.index(name)].count("\n") + 1
    assert not found.ok
    assert any("undefined" in d.message and d.line == line for d in found.diagnostics), found.diagnostics
    assert built(text.replace('"scale"', '"scale", backend="nvcc"')).ok

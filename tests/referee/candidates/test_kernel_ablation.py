"""Kernels whose work is taken out return at once, whatever they are called and however they are found."""

from __future__ import annotations

import ast
import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.languages.cuda.compile.nvrtc import Nvrtc, find_toolkit
from agentforge.referee.candidates.kernel_ablation import disable_exported, disable_jitted, disable_kernels

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

INDIRECT = """
static void put(int* x) { *x = 7; }
static void (*choose())(int*) { return put; }
void chosen(int*) __attribute__((ifunc("choose")));
"""


def built(folder: Path, source: str) -> Path:
    """A shared object of C functions."""
    (folder / "k.cpp").write_text(f'extern "C" {{ {source} }}')
    path = folder / "k.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-O2", str(folder / "k.cpp"), "-o", str(path)], check=True)
    return path


def put_by(path: Path, name: str) -> int:
    """What a function writes, called from a fresh copy of the object."""
    copy = path.with_name(f"{name}-{path.stat().st_mtime_ns}.so")
    shutil.copy(path, copy)
    value = ctypes.c_int(0)
    ctypes.CDLL(str(copy))[name](ctypes.byref(value))
    return value.value


@needs_compiler
@pytest.mark.parametrize("name", ["put", "_put", "__put", "_Zput"])
def test_a_function_of_any_name(tmp_path: Path, name: str) -> None:
    path = built(tmp_path, f"void {name}(int* x) {{ *x = 7; }}")
    assert put_by(path, name) == 7
    assert disable_exported(path) == [name]
    assert put_by(path, name) == 0


@needs_compiler
def test_a_function_that_is_chosen_when_it_is_loaded(tmp_path: Path) -> None:
    path = built(tmp_path, INDIRECT)
    assert put_by(path, "chosen") == 7
    assert disable_exported(path) == ["chosen"]
    assert put_by(path, "chosen") == 0


@needs_compiler
def test_what_others_use_stays_where_there_is_more(tmp_path: Path) -> None:
    path = built(tmp_path, "void put(int* x) { *x = 7; } void _Zhelper(int* x) { *x = 5; }")
    assert disable_exported(path) == ["put"]
    assert put_by(path, "_Zhelper") == 5


@given(st.binary(max_size=400))
def test_rubbish_is_left_alone(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    path = tmp_path_factory.mktemp("rubbish") / "k.so"
    for content in (rubbish, b"\x7fELF\x02\x01" + rubbish):
        path.write_bytes(content)
        assert disable_exported(path) == []
        assert path.read_bytes() == content


@needs_compiler
def test_a_truncated_object_never_raises(tmp_path: Path) -> None:
    whole = built(tmp_path, "void put(int* x) { *x = 7; }").read_bytes()
    path = tmp_path / "part.so"
    for length in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:length])
        disable_exported(path)


JITTED = """
import triton
from triton import jit

@triton.jit
def one(x):
    x + 1

@jit
def two(x):
    x + 2

@triton.jit(do_not_specialize=["x"])
def three(x):
    x + 3

def other(x):
    return x + 4
"""


def test_jitted_functions_return_at_once(tmp_path: Path) -> None:
    path = tmp_path / "model_new.py"
    path.write_text(JITTED)
    assert disable_jitted(path) == ["one", "two", "three"]
    bodies = {n.name: n.body for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}
    assert all(isinstance(bodies[name][0], ast.Return) for name in ("one", "two", "three"))
    assert ast.unparse(bodies["other"][0]) == "return x + 4"


@pytest.mark.parametrize(
    "text", ["def broken(", "import torch\n@torch.jit.script\ndef f(x):\n    return x\n"]
)
def test_other_python_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model_new.py"
    path.write_text(text)
    assert disable_kernels(tmp_path) == []
    assert path.read_text() == text


CUDA = """
template <typename T> __device__ T twice(T x) { return 2 * x; }
__global__ void declared(float* x);
extern "C" __global__ void __launch_bounds__(256, 2) /* { */ first(const float* x, float* out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = twice(x[threadIdx.x]);
}
extern "C" void __global__ second(float* out)
{ out[0] = 1; }
"""


def test_cuda_kernels_return_at_once_and_still_compile(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(CUDA)
    assert disable_kernels(tmp_path) == ["first", "second"]
    text = source.read_text()
    assert "int n) { return; \n" in text and "\n{ return;  out[0]" in text
    assert text.count("return; ") == 2
    toolkit = find_toolkit()
    if toolkit is not None:
        done = Nvrtc(toolkit).compile(text, "kernel.cu", "sm_90", [])
        assert done.cubin, done.log


def test_a_cuda_source_whose_emulator_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(CUDA)
    (tmp_path / "kernel.0123.cpu.so").write_bytes(b"no object")
    assert disable_kernels(tmp_path) == []
    assert (tmp_path / "kernel.cu").read_text() == CUDA


def test_files_that_links_lead_to_stay_as_they_are(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    contents = {"k.so": b"\x7fELF\x02\x01 no more", "k.py": JITTED.encode(), "k.cu": CUDA.encode()}
    if shutil.which("g++"):
        contents["k.so"] = built(outside, "void put(int* x) { *x = 7; }").read_bytes()
    for name, content in contents.items():
        (outside / name).write_bytes(content)
        (folder / name).symlink_to(outside / name)
    os.mkfifo(folder / "pipe.py")
    assert disable_kernels(folder) == []
    assert disable_kernels(folder, "cupy") == []
    assert {name: (outside / name).read_bytes() for name in contents} == contents
    assert not [path for path in folder.iterdir() if path.is_file() and not path.is_symlink()]


@pytest.mark.parametrize("decorator", [f"@names[0x{'f' * 8000}]", "@triton.jit"])
def test_numbers_that_cannot_be_printed_are_no_failure(tmp_path: Path, decorator: str) -> None:
    path = tmp_path / "model_new.py"
    path.write_text(f"{decorator}\ndef f(x):\n    x\n\nlarge = 0x{'f' * 8000}\n")
    assert disable_kernels(tmp_path) == []


def test_a_cuda_source_with_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cu"
    path.write_bytes(CUDA.encode() + b"// \xed\xb3\xbf\n")
    assert disable_kernels(tmp_path) == ["first", "second"]
    assert path.read_bytes().endswith(b"// \xed\xb3\xbf\n")

"""Which compiler, headers and GPU CUDA C++ is compiled with."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
import torch

from agentforge.languages import languages, run_command, write_solution
from agentforge.languages.cuda import source
from agentforge.languages.cuda.compile import pipeline
from agentforge.languages.cuda.compile.diagnostics import parse_diagnostics, parse_resources
from agentforge.languages.cuda.compile.nvrtc import find_toolkit
from agentforge.languages.cuda.compile.pipeline import gpu_target
from agentforge.languages.cuda.shipped import agentforge_cuda
from agentforge.testing.language import make_solution


def _files(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_headers_that_torchs_packages_lack_come_from_the_toolkit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, toolkit = tmp_path / "site" / "nvidia" / "cu13", tmp_path / "toolkit"
    _files(packages / "lib" / "libnvrtc.so.13", packages / "include" / "cuda_fp16.h")
    _files(toolkit / "lib64" / "libnvrtc.so.12", toolkit / "include" / "cuda_fp16.h")
    _files(toolkit / "include" / "crt" / "mma.h", toolkit / "include" / "cccl" / "nv" / "target")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    found = find_toolkit()
    assert found is not None and found.library == str(packages / "lib" / "libnvrtc.so.13")
    includes = [packages / "include", toolkit / "include", toolkit / "include" / "cccl"]
    assert found.includes == tuple(map(str, includes))
    _files(packages / "include" / "crt" / "mma.h", packages / "include" / "nv" / "target")
    found = find_toolkit()
    assert found is not None and found.includes == (str(packages / "include"),)


@pytest.mark.parametrize(
    ("visible", "target"), [(None, "sm_90"), ("1,0", "sm_86"), ("MIG-1234", "sm_90"), ("7", "sm_90")]
)
def test_the_target_is_the_first_visible_gpus(
    visible: str | None, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$*" in\n*--id=1) echo 8.6 ;;\n*--id=*) echo "No devices were found"; exit 6 ;;\n'
        "*) echo 9.0; echo 8.6 ;;\nesac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpu_target.cache_clear()
    try:
        assert gpu_target() == target
    finally:
        gpu_target.cache_clear()


@pytest.mark.parametrize(
    ("named", "capability", "target"),
    [
        ((), (9, 0), "sm_90"),
        (("sm_80", "sm_90", "sm_100"), (9, 0), "sm_90"),
        (("sm_90a", "sm_100f"), (10, 0), "sm_100f"),
        (("sm_80", "sm_100"), (9, 0), "sm_90"),
        (("sm_100f",), (10, 3), "sm_100f"),
        (("sm_80",), (9, 0), "sm_90"),
        (("sm_86",), (8, 9), "sm_86"),
        (("sm_89",), (8, 6), "sm_86"),
        (("sm_100a",), (10, 3), "sm_103"),
    ],
)
def test_a_gpu_gets_the_named_target_that_fits_it(
    named: tuple[str, ...], capability: tuple[int, int], target: str, tmp_path: Path
) -> None:
    flags = [f"--target={one}" for one in named]
    assert agentforge_cuda.target_of(tmp_path / "scale.cu", flags, capability) == target


def test_an_argument_is_named_only_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch takes a few microseconds on the host: words for each argument took a part of them."""
    (tmp_path / "scale.cu").write_text('extern "C" __global__ void scale(float* x, int n, float by) {}\n')
    kernel = agentforge_cuda.load(str(tmp_path / "model_new.py"), "scale.cu").scale
    with monkeypatch.context() as patch:
        patch.setattr(agentforge_cuda, "_place", None)
        tensors, values = kernel._values((torch.ones(3), 3, 2.0))
    assert len(tensors) == 1 and [value.value for value in values[1:]] == [3, 2.0]
    with pytest.raises(TypeError, match=r"argument 3 \(float by\) of scale must be a number, not str"):
        kernel._values((torch.ones(3), 3, "2"))
    with pytest.raises(TypeError, match=r"argument 1 \(float\* x\) of scale must be torch\.float32"):
        kernel._values((torch.ones(3).double(), 3, 2.0))


@pytest.mark.parametrize("here", ["sm_103", "sm_999"])
def test_a_gpu_that_is_new_gets_architecture_specific_kernels(
    here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "// agentforge: arch-specific\n"
    (tmp_path / "scale.cu").write_text(text)
    monkeypatch.setattr(pipeline, "gpu_target", lambda: here)
    jobs = pipeline.Compiler(None, "nvcc", "", "")._jobs({"scale.cu": text}, [], tmp_path, "cuda", [])
    assert [job.target for job in jobs] == [f"{here}a"]


def test_a_cubin_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scale.cu").write_text('extern "C" __global__ void scale(float* x) { x[0] *= 2; }\n')
    kernels = agentforge_cuda.load(str(tmp_path / "model_new.py"), "scale.cu")
    monkeypatch.setattr(agentforge_cuda, "compile_here", lambda *_: b"machine code")

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:4])
        raise OSError("no space left")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(Path, "write_bytes", full)
        kernels._cubin("sm_90")
    assert kernels._cubin("sm_90") == b"machine code"
    assert [path.suffix for path in tmp_path.glob("scale.*.sm_90.cubin")] == [".cubin"]


SCALE = 'extern "C" __global__ void scale(float* x) { x[0] *= 2; }\n'
HOSTILE = """#!/bin/sh
for last; do :; done
ln -s {elsewhere}/secret "$last"
for name in model_new.py more.cu; do rm -f $name; ln -s {elsewhere}/secret $name; done
cd "$(dirname "$last")" && for name in *.cu; do rm -f $name; ln -s {elsewhere}/secret $name; done
"""


def test_a_program_that_nvcc_runs_changes_nothing_but_its_own_folder(tmp_path: Path) -> None:
    """Flags of nvcc name programs that it runs. Each job's source was written before the first one runs."""
    elsewhere, folder, nvcc = tmp_path / "elsewhere", tmp_path / "built", tmp_path / "nvcc"
    elsewhere.mkdir()
    (elsewhere / "secret").write_text("secret")
    nvcc.write_text(HOSTILE.format(elsewhere=elsewhere))
    nvcc.chmod(0o755)
    solution = make_solution(
        "cuda", {"model_new.py": "class ModelNew: pass", "scale.cu": SCALE, "more.cu": SCALE}
    )
    write_solution(solution, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = pipeline.Compiler(None, str(nvcc), "", "").compile(
        solution, folder, cache=tmp_path / "cache", run=run_command, deadline=time.monotonic() + 60,
        literals=[pipeline.LiteralSource(f"model_new.py:{n}", SCALE + f"// {n}") for n in range(2)],
    )  # fmt: skip
    assert not result.ok and all("not a regular file" in d.message for d in result.diagnostics)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert (elsewhere / "secret").read_text() == "secret"
    assert not list((tmp_path / "cache").rglob("*.so"))


NINES = "9" * 5000
ENTRY = "Compiling entry function 'k' for 'sm_90'\n"


@pytest.mark.parametrize(
    "log",
    [
        f"k.cu({NINES}): error: x",
        f"{ENTRY}{NINES} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n",
        f"{ENTRY}Used {NINES} registers",
        f"{ENTRY}Used 1 registers, {NINES} bytes smem",
    ],
)
def test_numbers_that_no_compiler_writes(log: str) -> None:
    parse_diagnostics(log)
    parse_resources(log, {})


def test_bounds_that_no_launch_has() -> None:
    text = "__global__ void __launch_bounds__({}) k(float* x) {{}}"
    for literal in ("256", "256u", "256UL", "256, 2"):
        assert source.launch_bounds(text.format(literal)) == {"k": 256}
    assert source.launch_bounds(text.format("0x100")) == {}, "only decimal literals are read"
    assert source.launch_bounds(text.format(NINES)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", ['R"(', '"\\', "'\\", "__", "__global__ "])
def test_long_sources_are_read_once(part: str) -> None:
    """Read again from each beginning, these take minutes."""
    text = (part * source.MOST_TEXT)[: source.MOST_TEXT]
    before = time.process_time()
    assert len(source.without_comments(text)) == len(text)
    source.launch_bounds(text)
    source.kernel_bodies(text)
    assert time.process_time() - before < 20


def test_a_source_that_is_too_long(tmp_path: Path) -> None:
    files = {"model_new.py": "class ModelNew: pass", "scale.cu": SCALE + " " * source.MOST_TEXT}
    result = languages.create("cuda").build(
        make_solution("cuda", files), tmp_path, cache=tmp_path / "cache", run=run_command, timeout_s=60
    )
    assert not result.ok and result.diagnostics[0].file == "scale.cu"

"""Which compiler, headers and GPU CUDA C++ is compiled with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentforge.languages.cuda.compile import pipeline
from agentforge.languages.cuda.compile.nvrtc import find_toolkit
from agentforge.languages.cuda.compile.pipeline import gpu_target
from agentforge.languages.cuda.shipped import agentforge_cuda


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
    ],
)
def test_a_gpu_gets_the_named_target_that_fits_it(
    named: tuple[str, ...], capability: tuple[int, int], target: str, tmp_path: Path
) -> None:
    flags = [f"--target={one}" for one in named]
    assert agentforge_cuda.target_of(tmp_path / "scale.cu", flags, capability) == target


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

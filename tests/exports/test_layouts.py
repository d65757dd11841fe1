"""Exported kernels, loaded as other projects load them: without AgentForge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentforge.exports import layouts, write_export
from agentforge.languages import read_solution
from agentforge.languages.cpp.language import compiler_version
from agentforge.schema import UsageError
from agentforge.testing.exports import ExportContract, winning_kernel

needs_compiler = pytest.mark.skipif(not compiler_version(), reason="needs g++")


class TestKernelBench(ExportContract):
    name = "kernelbench"


class TestGpuMode(ExportContract):
    name = "gpu-mode"


class TestFlashInfer(ExportContract):
    name = "flashinfer"


class TestHuggingFaceKernels(ExportContract):
    name = "hf-kernels"


def alone(program: str, folder: Path) -> None:
    """Run a program that cannot import AgentForge, with an empty cache."""
    head = "import sys; sys.modules['agentforge'] = None\nimport torch\nx = torch.randn(4, 8)\n"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / ".cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", head + program],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@needs_compiler
def test_kernelbenchs_file_is_imported_and_right(tmp_path: Path) -> None:
    (file,) = write_export("kernelbench", [winning_kernel()], tmp_path)
    alone("from scale_abc123 import ModelNew\nassert torch.equal(ModelNew()(x), 2 * x)", tmp_path)
    kept = winning_kernel().solution
    assert read_solution(file, kept.definition).hash == kept.hash


@needs_compiler
def test_gpu_modes_file_is_imported_and_right(tmp_path: Path) -> None:
    write_export("gpu-mode", [winning_kernel()], tmp_path)
    program = "from scale_abc123 import custom_kernel\n"
    alone(program + "assert torch.equal(custom_kernel((x,)), 2 * x) and custom_kernel(x).sum()", tmp_path)


@needs_compiler
def test_flashinfers_solution_runs_from_its_own_files(tmp_path: Path) -> None:
    write_export("flashinfer", [winning_kernel()], tmp_path)
    (place,) = tmp_path.glob("solutions/person/pointwise/scale_abc123/*.json")
    body = json.loads(place.read_text())
    for source in body["sources"]:
        (tmp_path / source["path"]).write_text(source["content"])
    file, _, function = body["spec"]["entry_point"].partition("::")
    alone(
        f"from {file.removesuffix('.py')} import {function}\nassert torch.equal({function}(x), 2 * x)",
        tmp_path,
    )
    definition = json.loads((tmp_path / "definitions/pointwise/scale_abc123.json").read_text())
    assert body["definition"] == definition["name"] == "scale_abc123"
    assert definition["reference"].startswith(winning_kernel().task()[0].reference)


def test_flashinfers_package_reads_both(tmp_path: Path) -> None:
    data = pytest.importorskip("flashinfer_bench.data", reason="flashinfer-bench is not installed")
    write_export("flashinfer", [winning_kernel()], tmp_path)
    for kind, place in ((data.Definition, "definitions"), (data.Solution, "solutions")):
        (file,) = (tmp_path / place).rglob("*.json")
        assert kind.model_validate_json(file.read_text()).name


_AS_KERNELS = """
import importlib.util
spec = importlib.util.spec_from_file_location("agentforge_kernels_1", "build/torch-cpu/__init__.py")
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert torch.equal(module.ScaleAbc123()(x), 2 * x) and module.__all__ == ["ScaleAbc123"]
"""


@needs_compiler
def test_a_variant_of_hf_kernels_is_a_package_by_any_name(tmp_path: Path) -> None:
    write_export("hf-kernels", [winning_kernel()], tmp_path)
    alone(_AS_KERNELS, tmp_path)
    metadata = json.loads((tmp_path / "build/torch-cpu/metadata.json").read_text())
    assert metadata["backend"] == {"type": "cpu"} and metadata["id"].startswith("agentforge_kernels_")


@needs_compiler
def test_the_package_kernels_loads_it(tmp_path: Path) -> None:
    pytest.importorskip("kernels", reason="the package kernels is not installed")
    write_export("hf-kernels", [winning_kernel()], tmp_path)
    program = """
import kernels
from pathlib import Path
module = kernels.get_local_kernel(Path(".").absolute(), backend="cpu", trust_remote_code=True)
assert torch.equal(module.ScaleAbc123()(x), 2 * x)
"""
    alone(program, tmp_path)


def test_kernels_of_two_backends_are_exported_apart() -> None:
    with pytest.raises(UsageError, match="one backend"):
        layouts.create("hf-kernels").files([winning_kernel(), winning_kernel("triton", "other")])


def test_a_gpu_kernel_is_for_cuda() -> None:
    files = layouts.create("hf-kernels").files([winning_kernel("triton")])
    assert json.loads(files["build/torch-cuda/metadata.json"])["backend"] == {"type": "cuda"}
    assert 'backends = ["cuda"]' in files["build.toml"]


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name another folder"):
        write_export("kernelbench", [winning_kernel()], tmp_path / "file")

"""Exported kernels, loaded as other projects load them: without AgentForge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentforge.exports import WinningKernel, layouts, leaderboard_limits, write_export
from agentforge.languages import read_solution
from agentforge.languages.cpp.language import compiler_version
from agentforge.schema import BuildSpec, SourceFile, UsageError
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


@pytest.mark.slow
@needs_compiler
def test_kernelbenchs_file_is_imported_and_right(tmp_path: Path) -> None:
    (file,) = write_export("kernelbench", [winning_kernel()], tmp_path)
    alone("from scale_abc123 import ModelNew\nassert torch.equal(ModelNew()(x), 2 * x)", tmp_path)
    kept = winning_kernel().solution
    assert read_solution(file, kept.definition).hash == kept.hash


@pytest.mark.slow
@needs_compiler
def test_gpu_modes_file_is_imported_and_right(tmp_path: Path) -> None:
    write_export("gpu-mode", [winning_kernel()], tmp_path)
    program = "from scale_abc123 import custom_kernel\n"
    alone(program + "assert torch.equal(custom_kernel((x,)), 2 * x) and custom_kernel(x).sum()", tmp_path)


@pytest.mark.slow
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


_AS_FLASHINFER_BENCH = """
import importlib
sys.path.insert(0, "build")
first, second = (importlib.import_module(f"{name}.agentforge_run").run for name in ("fib_one", "fib_two"))
assert torch.equal(second(x), 3 * x + 1) and torch.equal(first(x), 2 * x)
assert "helper" not in sys.modules and not {"build/fib_one", "build/fib_two"} & set(sys.path)
"""


@pytest.mark.slow
def test_flashinfers_solutions_are_packages_that_share_a_process(tmp_path: Path) -> None:
    """flashinfer-bench unpacks each into a package, and puts only the folder above it on the path."""
    whole = winning_kernel()
    for package, factor, offset in (("fib_one", "2.0", "0"), ("fib_two", "3.0", "1")):
        reference = (
            f"import torch\n\n\nclass Model(torch.nn.Module):\n    def __init__(self, factor):\n"
            "        super().__init__()\n\n    def forward(self, x):\n        return x\n\n\n"
            f"def get_init_inputs():\n    return [{factor}]\n"
        )
        entry = (
            "import torch\nfrom helper import OFFSET\n\n\nclass ModelNew(torch.nn.Module):\n"
            "    def __init__(self, factor):\n        super().__init__()\n        self.factor = factor\n\n"
            "    def forward(self, x):\n        return x * self.factor + OFFSET\n"
        )
        assert whole.definition is not None
        definition = whole.definition.model_copy(update={"reference": reference})
        sources = {"model_new.py": entry, "helper.py": f"OFFSET = {offset}\n"}
        solution = whole.solution.model_copy(
            update={
                "definition": definition.hash,
                "spec": BuildSpec(language="python"),
                "sources": tuple(SourceFile(path=path, content=text) for path, text in sources.items()),
            }
        )
        kernel = WinningKernel(package, solution, definition, whole.workload, whole.outputs)
        for path, text in layouts.create("flashinfer").files([kernel]).items():
            for source in json.loads(text)["sources"] if path.startswith("solutions/") else ():
                place = tmp_path / "build" / package / source["path"]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(source["content"])
    alone(_AS_FLASHINFER_BENCH, tmp_path)


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


@pytest.mark.slow
@needs_compiler
def test_a_variant_of_hf_kernels_is_a_package_by_any_name(tmp_path: Path) -> None:
    write_export("hf-kernels", [winning_kernel()], tmp_path)
    alone(_AS_KERNELS, tmp_path)
    metadata = json.loads((tmp_path / "build/torch-cpu/metadata.json").read_text())
    assert metadata["backend"] == {"type": "cpu"} and metadata["id"].startswith("agentforge_kernels_")


@pytest.mark.slow
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


def test_what_gpu_modes_leaderboards_refuse_is_said(tmp_path: Path) -> None:
    """kernelbot refuses each text with this word, wherever it is, and more than 1,000,000 bytes."""
    whole = winning_kernel()
    kernel = SourceFile(path="kernel.cpp", content="// STREAMING stores\n")
    sources = [kernel if s.path == kernel.path else s for s in whole.solution.sources]
    odd = whole.solution.model_copy(update={"sources": tuple(sources)})
    named = WinningKernel("odd_abc123", odd, whole.definition, whole.workload, whole.outputs)
    files = write_export("gpu-mode", [whole, named], tmp_path)
    (limit,) = leaderboard_limits(files)
    assert limit.endswith("odd_abc123.py: the word 'stream' is not allowed, and it is in kernel.cpp")
    files[0].write_text("#" * 1_000_001)
    (limit, _) = leaderboard_limits(files)
    assert limit.endswith("it has 1,000,001 bytes, and at most 1,000,000 are allowed")


def test_an_export_replaces_only_what_exports_wrote(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("my own")
    with pytest.raises(
        UsageError, match=r"README\.md is not .*, or that was of an earlier version: remove it, or"
    ):
        write_export("hf-kernels", [winning_kernel()], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert card.read_text() == "my own"
    for _ in range(2):
        write_export("hf-kernels", [winning_kernel()], tmp_path / "new")


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name another folder"):
        write_export("kernelbench", [winning_kernel()], tmp_path / "file")

"""An artifact on disk works without AgentForge."""

from __future__ import annotations

import copy
import json
import py_compile
import random
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from agentforge import stitch
from agentforge.devices import DeviceSpec
from agentforge.problems.kernelbench import Problem
from agentforge.schema import Profile, UsageError
from agentforge.stitch.artifact import write_artifact
from agentforge.stitch.report import report_data, report_markdown
from agentforge.stitch.select import Selection
from agentforge.stitch.variants import Variant

from .making import Stitched

ALONE = """
import sys
sys.modules["agentforge"] = None          # as on a machine that lacks it
sys.path.insert(0, {parent!r})
import torch
from {package} import optimize, calls
import {package}.reference_model as reference

torch.manual_seed(0)
model = reference.Model().eval()
torch.manual_seed(1)
inputs = reference.get_inputs()
with torch.inference_mode():
    expected = model(**inputs)
    got = optimize(model)(**inputs)
assert torch.allclose(got["logits"], expected["logits"], atol=1e-5)
assert calls() and all(calls().values()), calls()
print("ran", sum(calls().values()))
"""


@pytest.fixture(scope="module")
def artifact(block: Stitched, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("artifact")
    folder = root / "tiny_optimized"
    write_artifact(folder, block.target, block.solution, report(block), cache=root / "cache")
    return folder


def report(block: Stitched) -> dict[str, object]:
    variant = Variant("kernels", frozenset(block.kernels), block.solution)
    profile = Profile(
        target=block.target.definition.hash,
        device="cpu",
        architecture="x86-64",
        total_s=1.0,
        traces=5,
        attributed=1.0,
        call_sites=(),
        bottlenecks=(),
        notes=("a note",),
    )
    device = DeviceSpec(kind="cpu", name="a processor", architecture="x86-64", toolchain={"torch": "2"})
    selection = Selection(variant, None, (), "put in by a test")
    return report_data(block.target, profile, device, {}, {}, selection, {"some/site": "why"}, [])


def python(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **env},
    )


def run_alone(folder: Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    code = ALONE.format(parent=str(folder.parent), package=folder.name)
    return python("-c", code, cwd=cwd, **env)


@pytest.mark.slow
def test_it_imports_without_agentforge(artifact: Path, tmp_path: Path) -> None:
    assert list(artifact.glob("kernels/*/*.so"))
    done = run_alone(artifact, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ran")


@pytest.mark.slow
def test_it_rebuilds_a_library_that_is_gone(artifact: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(artifact, moved)
    for library in moved.glob("kernels/*/*.so"):
        library.unlink()
    done = run_alone(moved, tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(moved.glob("kernels/*/*.so"))


@pytest.mark.slow
def test_it_works_from_a_folder_that_cannot_be_written(artifact: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(artifact, moved)
    for path in [moved, *moved.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = run_alone(moved, tmp_path, PYTHONDONTWRITEBYTECODE="1")
    for path in [moved, *moved.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_verify_compares_and_counts(artifact: Path) -> None:
    done = python("verify.py", "--seeds", "2", "--rounds", "2", cwd=artifact)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the outputs agree" in done.stdout
    assert "norm_" in done.stdout


@pytest.mark.slow
def test_verify_notices_a_wrong_kernel(artifact: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(artifact, moved)
    (source,) = moved.glob("kernels/norm_*/kernel.cpp")
    source.write_text(source.read_text().replace("1e-6f", "1.0f"))
    done = python("verify.py", "--seeds", "1", "--rounds", "1", cwd=moved)
    assert done.returncode == 1
    assert "DIFFER" in done.stdout


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_verify_compares_values_that_are_not_finite_by_kind(dtype: torch.dtype) -> None:
    script = Path(stitch.__file__).parent / "templates" / "verify.py"
    worst_error = runpy.run_path(str(script))["worst_error"]
    expected = torch.tensor([1.0, float("-inf"), float("nan"), 2.0], dtype=dtype)
    nearby = torch.tensor([1.0, float("-inf"), float("nan"), 2.000001], dtype=dtype)
    assert worst_error({"x": nearby}, {"x": expected}) < 1e-5
    for place, value in ((0, float("inf")), (1, 3.0), (1, float("inf")), (2, 0.0), (3, 2.1)):
        wrong = expected.clone()
        wrong[place] = value
        assert worst_error({"x": wrong}, {"x": expected}) > 1e-2


def test_verify_builds_a_model_that_cannot_be_copied() -> None:
    script = Path(stitch.__file__).parent / "templates" / "verify.py"
    build = runpy.run_path(str(script))["build"]
    reference = SimpleNamespace(
        Model=lambda width: torch.nn.utils.weight_norm(torch.nn.Linear(width, 2)), get_init_inputs=lambda: [3]
    )
    first, second = build(reference, "cpu"), build(reference, "cpu")
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(first)
    assert torch.equal(first.weight_g, second.weight_g)


def test_verify_draws_the_same_arguments_for_both_models() -> None:
    script = Path(stitch.__file__).parent / "templates" / "verify.py"
    build = runpy.run_path(str(script))["build"]

    class Model(torch.nn.Module):
        def __init__(self, *drawn: float) -> None:
            super().__init__()
            self.drawn = (*drawn, random.random())

    def get_init_inputs() -> list[float]:
        return [float(torch.rand(())), random.random(), float(np.random.rand())]

    reference = SimpleNamespace(Model=Model, get_init_inputs=get_init_inputs)
    problem: Any = Problem(reference, Model, list, get_init_inputs)  # type: ignore[arg-type]
    first, second = build(reference, "cpu"), build(reference, "cpu")
    assert first.drawn == second.drawn == problem.build(seed=5).drawn, "generated code has them as constants"


@pytest.mark.slow
def test_the_single_file_is_a_solution(artifact: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['agentforge'] = None\n"
        f"sys.path.insert(0, {str(artifact)!r})\n"
        "import torch, kernelbench_solution, reference_model\n"
        "torch.manual_seed(0); ours = kernelbench_solution.ModelNew().eval()\n"
        "torch.manual_seed(0); theirs = reference_model.Model().eval()\n"
        "assert ours.state_dict().keys() == theirs.state_dict().keys()\n"
        "inputs = reference_model.get_inputs()\n"
        "with torch.no_grad():\n"
        "    a, b = ours(**inputs)['logits'], theirs(**inputs)['logits']\n"
        "assert torch.allclose(a, b, atol=1e-5)\n"
        "import agentforge_cpp; assert agentforge_cpp.calls()['rms'] == 2\n"
    )
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_reports_say_the_same(artifact: Path) -> None:
    data = json.loads((artifact / "report.json").read_text())
    text = (artifact / "report.md").read_text()
    assert report_markdown(data) == text
    assert "Inference only" in text
    assert "some/site keeps the original code: why" in text
    assert "a note" in text
    said = report_markdown({**data, "summary": "no GPU here runs RMSNorm"})
    assert "\nNo GPU here runs RMSNorm.\n" in said


@pytest.mark.parametrize(
    ("mode", "says", "not_so"),
    [
        (
            "kernels+compile",
            "Inference only: the kernels have no backward pass. The model's original",
            "anew",
        ),
        ("compile+max-autotune", "`torch.compile` runs every call, also with gradients", "original forward"),
        (
            "compile+max-autotune-freezing",
            "`torch.compile` runs every call. Weights are frozen",
            "original forward",
        ),
        ("compile+contiguous", "`torch.compile` runs calls whose tensors are all contiguous", "every call"),
        ("eager", "", "Inference only"),
    ],
)
def test_the_files_say_which_calls_run_what(
    block: Stitched, tmp_path: Path, mode: str, says: str, not_so: str
) -> None:
    data = report(block) | {"mode": mode}
    write_artifact(tmp_path / "a", block.target, block.solution, data, cache=tmp_path / "cache")
    readme = next(x for x in (tmp_path / "a" / "README.md").read_text().split("\n- ") if says in x)
    for text in (readme, (tmp_path / "a" / "report.md").read_text()):
        assert says in text
        assert not_so not in text


def test_an_earlier_artifact_is_replaced(block: Stitched, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    write_artifact(folder, block.target, block.solution, report(block), cache=tmp_path / "cache")
    (folder / "stale").write_text("")
    write_artifact(folder, block.target, block.solution, report(block), cache=tmp_path / "cache")
    assert not (folder / "stale").exists()
    assert (folder / "plan.json").is_file()
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".a")) == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_keeps_naming_the_folder(block: Stitched, tmp_path: Path, exists: bool) -> None:
    folder, link = tmp_path / "a", tmp_path / "link"
    if exists:
        folder.mkdir()
    link.symlink_to(folder)
    write_artifact(link, block.target, block.solution, report(block), cache=tmp_path / "cache")
    assert link.is_symlink()
    assert (folder / "plan.json").is_file()
    assert {p.name for p in tmp_path.iterdir()} == {"a", "link", "cache"}


def test_an_installation_with_compiled_files_writes_one(block: Stitched, tmp_path: Path) -> None:
    py_compile.compile(str(Path(stitch.__file__).parent / "templates" / "verify.py"), doraise=True)  # as pip
    folder = tmp_path / "a"
    write_artifact(folder, block.target, block.solution, report(block), cache=tmp_path / "cache")
    assert (folder / "verify.py").is_file()
    assert not (folder / "__pycache__").exists()


def test_a_folder_with_something_else_is_left_alone(block: Stitched, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="choose an empty or new folder"):
        write_artifact(tmp_path, block.target, block.solution, report(block), cache=tmp_path / "cache")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("latin_locale")
def test_names_and_sources_in_any_script_are_written_in_any_locale(block: Stitched, tmp_path: Path) -> None:
    target = block.target.model_copy(update={"name": "融合"})
    first, *rest = block.solution.sources
    first = first.model_copy(update={"content": f"{first.content}\n# 融合\n"})
    solution = block.solution.model_copy(update={"sources": (first, *rest)})
    data = {**report(block), "notes": ["融合"]}
    write_artifact(tmp_path / "a", target, solution, data, cache=tmp_path / "cache")
    for name in ("report.md", "kernelbench_solution.py", "README.md"):
        assert "融合" in (tmp_path / "a" / name).read_text(encoding="utf-8"), name

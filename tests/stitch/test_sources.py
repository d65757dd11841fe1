"""The user's modules travel with the model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from agentforge.languages import write_solution
from agentforge.problems.kernelbench import import_root, load_problem
from agentforge.schema import Definition, Target, Workload
from agentforge.stitch.files import as_solution, stitched_files
from agentforge.stitch.sources import local_modules

SOURCE = """
import torch
import numpy as np
from parts import norm
from parts.deep.block import Block as B
import single

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = B()

    def forward(self, x):
        return norm(self.block(x)) + single.ONE

def get_inputs():
    return [torch.randn(2, 3)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    files = {
        "parts/__init__.py": "from .norms import norm\n",
        "parts/norms.py": "def norm(x):\n    return x / x.norm()\n",
        "parts/unused.py": "",
        "parts/deep/__init__.py": "",
        "parts/deep/block.py": (
            "import torch\nfrom ..scale import FACTOR\n"
            "class Block(torch.nn.Module):\n    def forward(self, x):\n        return x * FACTOR\n"
        ),
        "parts/scale.py": "FACTOR = 3.0\n",
        "single.py": "import single\nONE = 1\n",
        "other.py": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_imports_are_followed_and_nothing_else(project: Path) -> None:
    assert sorted(local_modules(SOURCE, project)) == [
        "parts/__init__.py",
        "parts/deep/__init__.py",
        "parts/deep/block.py",
        "parts/norms.py",
        "parts/scale.py",
        "single.py",
    ]


def test_what_does_not_parse_imports_nothing(project: Path) -> None:
    assert local_modules("import single\ndef (", project) == {}


def test_the_model_loads_where_the_project_is_not(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = Definition(name="p", op_type="model", reference=SOURCE, import_root=str(project))
    target = Target(name="p", origin="p", definition=definition, workloads=(Workload(name="w"),))
    with import_root(str(project)):
        problem = load_problem(definition)
    x = torch.randn(2, 3)
    expected = problem.build(0)(x)
    for name in [m for m in sys.modules if m.partition(".")[0] in ("parts", "single")]:
        monkeypatch.delitem(sys.modules, name)
    folder = tmp_path / "artifact"
    write_solution(as_solution(target, "p", stitched_files(target, "eager", [], {}, {})), folder)
    project.rename(tmp_path / "gone")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "reference_model", raising=False)
    from model_new import ModelNew  # type: ignore[import-not-found]

    assert torch.equal(ModelNew()(x), expected)
    for name in ("model_new", "reference_model", "agentforge_stitch"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.slow
def test_the_package_finds_what_the_models_source_imports(project: Path, tmp_path: Path) -> None:
    definition = Definition(name="p", op_type="model", reference=SOURCE, import_root=str(project))
    target = Target(name="p", origin="p", definition=definition, workloads=(Workload(name="w"),))
    write_solution(as_solution(target, "p", stitched_files(target, "eager", [], {}, {})), tmp_path / "fast")
    project.rename(tmp_path / "gone")
    code = (
        "from fast import optimize\nfrom fast.reference_model import Model, get_inputs\n"
        "print(optimize(Model().eval())(*get_inputs()).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "torch.Size([2, 3])\n", done.stderr


def test_the_source_of_an_artifact_gets_no_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "import argparse\nimport torch\nargparse.ArgumentParser().parse_args()\n"
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
        "def get_inputs():\n    return [torch.ones(2)]\ndef get_init_inputs():\n    return []\n"
    )
    definition = Definition(name="p", op_type="model", reference=source)
    target = Target(name="p", origin="p", definition=definition, workloads=(Workload(name="w"),))
    folder = tmp_path / "artifact"
    write_solution(as_solution(target, "p", stitched_files(target, "eager", [], {}, {})), folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "argv", ["program", "--fast"])
    sys.modules.pop("model_new", None)
    from model_new import ModelNew  # type: ignore[import-not-found]

    assert ModelNew()(torch.ones(2)).tolist() == [2, 2]
    assert sys.argv == ["program", "--fast"]
    sys.modules.pop("model_new")

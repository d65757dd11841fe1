"""`agentforge verify` on files that are not what they should be: one sentence and exit code 2, or a verdict
and exit code 1; never a traceback, never a pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return [64]
"""
SOLUTION = REFERENCE.replace("Model", "ModelNew")
QUICK = ("--level", "quick", "--device", "cpu", "-c", "referee.compile_baseline=false",
         "-c", "referee.quick_seconds=0.1", "-c", "referee.quick_blocks=2",
         "-c", "referee.threads=2")  # fmt: skip
Write = Callable[[Path], object]


def text(content: str) -> Write:
    return lambda path: path.write_text(content)


def replaced(*pairs: tuple[str, str], source: str = REFERENCE) -> Write:
    for old, new in pairs:
        assert old in source
        source = source.replace(old, new)
    return text(source)


def sparse(path: Path) -> None:
    """Two gigabytes that take no room on the disk."""
    with path.open("wb") as file:
        file.truncate(2 << 30)


def binary(path: Path) -> None:
    path.write_bytes(b"\x7fELF" + bytes(range(256)) * 16)


BROKEN_REFERENCES: dict[str, tuple[Write, str]] = {
    "empty": (text(""), "is empty"),
    "blank": (text("\n \n"), "is empty"),
    "not Python": (text(REFERENCE + "\ndef ("), "not valid Python"),
    "binary": (binary, "cannot be read"),
    "2 GB": (sparse, "2048 MiB"),
    "nested too deep": (text("x = " + "(" * 100_000), "not valid Python"),
    "lacks an import": (text("import nothing_like_this\n" + REFERENCE), "nothing_like_this"),
    "random": (replaced(("torch.relu", "torch.nn.functional.dropout")), "random"),
    "needs a GPU": (replaced(("(32, 64)", "(32, 64, device='cuda')")), "get_inputs"),
    "leaves": (text("import os\nos._exit(0)\n" + REFERENCE), "crashed its process"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN_REFERENCES)
def test_broken_references(run: Run, name: str) -> None:
    write, said = BROKEN_REFERENCES[name]
    write(Path("reference.py"))
    Path("solution.py").write_text(SOLUTION)
    answer = run("verify", "reference.py", "solution.py", "--json", *QUICK)
    assert answer.code == 2
    assert said in answer.json["error"]
    assert "Traceback" not in answer.out + answer.err


def test_a_broken_reference_is_one_sentence_for_a_person(run: Run) -> None:
    Path("reference.py").write_text("")
    answer = run("verify", "reference.py", "reference.py")
    assert answer.code == 2
    assert "is empty" in answer.err
    assert "Traceback" not in answer.out + answer.err


def test_a_class_without_inputs_is_no_reference(run: Run) -> None:
    Path("reference.py").write_text(REFERENCE)
    Path("solution.py").write_text(SOLUTION)
    error = run("verify", "reference.py:Model", "solution.py", "--json", *QUICK).json["error"]
    assert "give a file with class Model, get_inputs() and get_init_inputs()" in error


def folder_with(write: Write, name: str) -> Write:
    """A solution's folder that holds one more file."""

    def make(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.mkdir()
        (path / "model_new.py").write_text(SOLUTION)
        write(path / name)

    return make


UNUSABLE_SOLUTIONS: dict[str, tuple[Write, str]] = {
    "empty": (text(""), "is empty"),
    "not Python": (text("this is no Python !!"), "not Python"),
    "no ModelNew": (text("x = 1\n"), "no class ModelNew"),
    "binary": (binary, "not UTF-8"),
    "NUL characters": (lambda path: path.write_bytes(b"\0" * 64), "NUL"),
    "2 GB": (sparse, "2048 MiB"),
    "an empty folder": (lambda path: path.mkdir(), "solution.py"),
    "a folder with 2 GB": (folder_with(sparse, "kernel.cpp"), "MiB"),
}


@pytest.mark.parametrize("name", UNUSABLE_SOLUTIONS)
def test_unusable_solutions(run: Run, name: str) -> None:
    write, said = UNUSABLE_SOLUTIONS[name]
    Path("reference.py").write_text(REFERENCE)
    write(Path("solution.py"))
    answer = run("verify", "reference.py", "solution.py", "--json", *QUICK)
    assert answer.code == 2
    assert said in answer.json["error"]
    assert "Traceback" not in answer.out + answer.err


REFUSED_SOLUTIONS: dict[str, tuple[Write, str]] = {
    "a state_dict of other shapes": (
        replaced(("(n, n)", "(n, 2 * n)"), ("(self.linear(x))", "(self.linear(x)[:, :64])"), source=SOLUTION),
        "INCORRECT_NUMERICAL",
    ),
    "a ModelNew that is no class": (text("ModelNew = 3\n"), "RUNTIME_ERROR"),
    "an exit with success": (text("import os\nos._exit(0)\n" + SOLUTION), "CRASHED"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED_SOLUTIONS)
def test_refused_solutions(run: Run, name: str) -> None:
    write, status = REFUSED_SOLUTIONS[name]
    Path("reference.py").write_text(REFERENCE)
    write(Path("solution.py"))
    answer = run("verify", "reference.py", "solution.py", "--json", *QUICK)
    assert (answer.json["status"], answer.code) == (status, 1)
    assert answer.json["reasons"]
    assert ("state_dict" in answer.json["reasons"][-1]) == ("state_dict" in name)
    assert "Traceback" not in answer.err


@pytest.mark.slow
def test_a_weak_task_is_told_on_the_command_line(run: Run) -> None:
    weak = REFERENCE.replace("torch.relu(self.linear(x))", "torch.softmax(self.linear(x)[:, :1], dim=1)")
    Path("reference.py").write_text(weak)
    Path("solution.py").write_text(weak.replace("Model", "ModelNew"))
    answer = run("verify", "reference.py", "solution.py", "--json", *QUICK)
    assert (answer.json["status"], answer.json["evidence"], answer.code) == ("PASSED", "suspicious", 1)
    assert any("the task cannot tell" in reason for reason in answer.json["reasons"])

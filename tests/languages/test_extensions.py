"""`load_inline` in a process of its own: what one built, the next loads."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from agentforge.languages import PRELUDE, languages, run_command
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.python.extensions import install
from agentforge.testing.language import make_solution

SOURCE = """
#include <Python.h>
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "tiny", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_tiny() { return PyModule_Create(&module); }
"""


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kept"))
    for name in ("load_inline", "load"):
        monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))
    return monkeypatch


@pytest.mark.skipif(
    not compiler_version() or shutil.which("ninja") is None, reason="needs a C++ compiler and ninja"
)
def test_the_next_process_loads_what_the_first_one_built(plain: pytest.MonkeyPatch, tmp_path: Path) -> None:
    original = cpp_extension.load_inline
    install()

    def load(answer: int) -> int:
        source = SOURCE.replace("ANSWER", str(answer))
        module = cpp_extension.load_inline("tiny", cpp_sources=[source], no_implicit_headers=True)
        return int(module.answer())

    assert load(42) == 42
    assert len(list((tmp_path / "kept").rglob("tiny.so"))) == 1

    def compiles(*_: object, **__: object) -> None:
        raise AssertionError("it was compiled again")

    plain.setattr(cpp_extension, "load_inline", original)
    plain.setattr(cpp_extension, "_jit_compile", compiles)
    install()
    assert load(42) == 42
    with pytest.raises(AssertionError, match="compiled again"):
        load(43)


@pytest.mark.skipif(
    not compiler_version() or shutil.which("ninja") is None, reason="needs a C++ compiler and ninja"
)
def test_the_next_process_loads_what_was_built_of_a_file(plain: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install()
    source = tmp_path / "of_a_file.cpp"

    def load(answer: int) -> int:
        source.write_text(SOURCE.replace("ANSWER", str(answer)).replace("tiny", "of_a_file"))
        return int(cpp_extension.load("of_a_file", [str(source)]).answer())

    assert load(42) == 42
    assert len(list((tmp_path / "kept").rglob("of_a_file.so"))) == 1

    def compiles(*_: object, **__: object) -> None:
        raise AssertionError("it was compiled again")

    plain.setattr(cpp_extension, "_jit_compile", compiles)
    assert load(42) == 42
    with pytest.raises(AssertionError, match="compiled again"):
        load(43)


def test_a_solution_that_builds_when_it_is_imported_gets_the_prelude(tmp_path: Path) -> None:
    for name, text in {"inline": "from torch.utils.cpp_extension import load_inline\n", "plain": ""}.items():
        solution = make_solution("python", {"model_new.py": f"{text}class ModelNew: ...\n"})
        built = languages.create("python").build(
            solution, tmp_path / name, cache=tmp_path / "cache", run=run_command, timeout_s=10
        )
        assert built.ok
        assert (tmp_path / name / PRELUDE).is_file() == (name == "inline")

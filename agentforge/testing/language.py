"""The contract of a `Language`, as tests that every implementation inherits.

class TestCpp(LanguageContract):
    name = "cpp"
    working = {"model_new.py": ..., "kernel.cpp": ...}
    broken = {"model_new.py": ..., "kernel.cpp": ...}
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest

from agentforge.languages import (
    PRELUDE,
    BuildResult,
    Language,
    language_info,
    languages,
    read_solution,
    run_command,
)
from agentforge.referee.candidates.kernel_ablation import disable_kernels
from agentforge.schema import BuildSpec, Solution, SourceFile


def make_solution(
    language: str, files: Mapping[str, str], flags: tuple[str, ...] = (), definition: str = "0" * 16
) -> Solution:
    """A solution entered at `model_new.py::ModelNew`, without a `definition` that of an imaginary one."""
    return Solution(
        name="contract",
        definition=definition,
        author="person",
        spec=BuildSpec(language=language, flags=flags),
        sources=tuple(SourceFile(path=path, content=content) for path, content in files.items()),
    )


class LanguageContract:
    """Inherit, name the language, and give sources that build and sources that do not."""

    name: ClassVar[str]
    working: ClassVar[Mapping[str, str]]
    """`model_new.py` imports with the folder on `sys.path` and defines `ModelNew`."""
    broken: ClassVar[Mapping[str, str]]
    """The same with an error that the build finds."""
    broken_file: ClassVar[str]
    broken_line: ClassVar[int]
    """Where the error is."""

    @property
    def language(self) -> Language:
        """The implementation under test."""
        return languages.create(self.name)

    def build(self, files: Mapping[str, str], folder: Path, cache: Path) -> BuildResult:
        """Build `files` in a new folder."""
        folder.mkdir()
        return self.language.build(
            make_solution(self.name, files), folder, cache=cache, run=run_command, timeout_s=60.0
        )

    def test_says_whether_it_is_available(self) -> None:
        language = self.language
        language.available()
        start = time.perf_counter()
        availability = language.available()
        assert time.perf_counter() - start < 0.5
        assert availability.detail

    def test_a_solution_without_a_manifest_is_recognised(self, tmp_path: Path) -> None:
        for path, content in self.working.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        assert read_solution(tmp_path, "0" * 16).spec.language == self.name

    def test_its_facts_are_true(self) -> None:
        info = self.language.info
        assert info == language_info(self.name)
        assert all(file.is_file() for file in info.runtime_files.values())
        if info.suffixes:
            assert info.kernel_file.endswith(info.suffixes)
        if info.prompts is not None:
            assert (info.prompts / "language.md.j2").is_file()
            assert (info.prompts / "examples" / "pointwise.md.j2").is_file()

    def test_a_language_model_can_be_asked_for_it(self) -> None:
        """Needs a prompt: AgentForge's own, or the files below `LanguageInfo.prompts`."""
        from agentforge.agents.llm import prompts

        assert prompts.render(f"coder/languages/{self.name}.md.j2")
        assert "ModelNew" in prompts.render(f"coder/examples/{self.name}/pointwise.md.j2")

    def test_empty_kernels_do_nothing(self, tmp_path: Path) -> None:
        """Ablation: the referee must be able to take the work out of the built kernels."""
        if self.name == "python":
            pytest.skip("plain Python has no kernels of its own")
        assert self.build(self.working, tmp_path / "built", tmp_path / "cache").ok
        assert disable_kernels(tmp_path / "built", self.name)

    def test_working_sources_build_and_import(self, tmp_path: Path) -> None:
        result = self.build(self.working, tmp_path / "built", tmp_path / "cache")
        assert result.ok, result.log
        assert not result.cached and not result.timed_out and result.seconds >= 0
        assert not [d for d in result.diagnostics if d.severity == "error"]
        for file in result.files:
            assert file.is_file() and file.is_relative_to(tmp_path / "built")
        for path, content in self.working.items():
            assert (tmp_path / "built" / path).read_text() == content
        prelude = f"import {PRELUDE.removesuffix('.py')}; " if (tmp_path / "built" / PRELUDE).exists() else ""
        program = f"import sys; sys.path.insert(0, '.'); {prelude}import model_new; model_new.ModelNew"
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "built", check=True, timeout=60)

    def test_broken_sources_are_data(self, tmp_path: Path) -> None:
        result = self.build(self.broken, tmp_path / "built", tmp_path / "cache")
        assert not result.ok and not result.timed_out and not result.files
        first = next(d for d in result.diagnostics if d.severity == "error")
        assert (first.file, first.line) == (self.broken_file, self.broken_line)
        assert first.message and first.message in result.log

    def test_failures_are_not_cached(self, tmp_path: Path) -> None:
        self.build(self.broken, tmp_path / "one", tmp_path / "cache")
        again = self.build(self.broken, tmp_path / "two", tmp_path / "cache")
        assert not again.ok and not again.cached

    def test_concurrent_builds_share_a_cache(self, tmp_path: Path) -> None:
        with ThreadPoolExecutor(4) as pool:
            results = list(
                pool.map(lambda i: self.build(self.working, tmp_path / f"b{i}", tmp_path / "cache"), range(4))
            )
        assert all(r.ok for r in results)
        assert not list(tmp_path.rglob(".new-*")), "half-written files are left"

    def test_clashing_file_names_are_data(self, tmp_path: Path) -> None:
        files = {**self.working, "extra": "a file", "extra/inner": "below a file", "x" * 300: "too long"}
        result = self.build(files, tmp_path / "built", tmp_path / "cache")
        assert not result.ok and result.diagnostics

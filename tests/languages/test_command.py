"""Commands outside of a sandbox."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentforge.languages.command import interpreter, run_command


def test_the_interpreter_has_a_path_that_goes_through_no_other_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/project/tests/../.venv/bin/python")
    assert interpreter() == "/project/.venv/bin/python"


def test_this_interpreter_runs(tmp_path: Path):
    done = run_command([interpreter(), "-c", "print(6 * 7)"], cwd=tmp_path, timeout_s=60.0)
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_a_program_that_is_not_there_ends_as_in_a_shell(tmp_path: Path):
    assert run_command(["no-such-program"], cwd=tmp_path, timeout_s=5.0).returncode == 127

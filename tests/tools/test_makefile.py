"""The Makefile on machines that lack something."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_an_old_python_is_named_before_an_environment_is_made(tmp_path: Path) -> None:
    """`venv` keeps the interpreter that it finds, so an environment of an old one would stay broken."""
    old, venv = tmp_path / "python3.10", tmp_path / "venv"
    old.write_text(f'#!/bin/sh\n[ "$1" = -m ] && exec mkdir {venv}\nexit 1\n')
    old.chmod(0o755)
    command = ["make", f"PYTHON={old}", f"VENV={venv}", f"{venv}/.installed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs Python 3.11 or newer: add PYTHON=" in done.stdout
    assert not venv.exists()


def test_missing_headers_of_python_are_installed_or_named(tmp_path: Path) -> None:
    bare, venv, tools = tmp_path / "python3", tmp_path / "venv", tmp_path / "bin"
    tools.mkdir()
    bare.write_text('#!/bin/sh\n[ "$1" = -m ] && exit 3\ncase "$2" in *Python.h*) exit 1;; esac\n')
    (tools / "apt-get").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nexec test $1 = update\n')
    for program in (bare, tools / "apt-get"):
        program.chmod(0o755)
    command = ["make", f"PYTHON={bare}", f"VENV={venv}", f"{venv}/.installed"]
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert (tmp_path / "asked").read_text().splitlines()[-1] == "install -yq python3-dev python3-venv"
    assert "without Python's headers torch.compile fails" in done.stdout
    assert "-m venv" in done.stdout  # it goes on

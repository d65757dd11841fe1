"""The Makefile on machines that lack something."""

from __future__ import annotations

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

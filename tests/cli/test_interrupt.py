"""Ctrl-C and SIGTERM in front of the real pipeline."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.sigmoid(x) * x + torch.tanh(y)

def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512)]

def get_init_inputs():
    return []
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on(run: Run, home: Path, number: signal.Signals) -> None:
    model = home.parent / "model.py"
    model.write_text(MODEL)
    command = [sys.executable, "-m", "agentforge.cli", "optimize", str(model), "--device", "cpu"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("profiled"):
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in errors
    (listed,) = run("runs", "list", "--json").json["runs"]
    assert listed["status"] == "interrupted"
    assert f"agentforge runs resume {listed['id']}" in errors

    shown = run("runs", "show", listed["id"])
    assert shown.code == 0
    assert listed["id"] in shown.out

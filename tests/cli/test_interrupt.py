"""Ctrl-C and SIGTERM in front of the real pipeline."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Run

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return (torch.sigmoid(x) * x + torch.tanh(y)).sort(-1).values  # two regions: the model is judged too

def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512)]

def get_init_inputs():
    return []
"""


MOST_S = 3.0
"""Seconds from the signal to the end."""


HELD = """
import agentforge.schema  # later, its own use of exec would make Python forget the interruption
from agentforge.cli import _main

_main._invoke = lambda _: exec("import sys, time; print('held', file=sys.stderr, flush=True); time.sleep(60)")
_main.main()
"""


STUCK = """
import sys, time
from agentforge.cli import _main

def wait(_):
    print("held", file=sys.stderr, flush=True)
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

_main._invoke = wait
_main.main()
"""


def interrupted(
    folder: Path, source: str, *arguments: str, number: signal.Signals = signal.SIGINT
) -> tuple[str, str]:
    """Output and errors of a program that is interrupted after it said `held`, and ends with its code."""
    (folder / "program.py").write_text(source)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    process = subprocess.Popen(
        [sys.executable, "-m", "program", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "held\n"
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    return out, errors


def check_said(out: str, errors: str, *, as_json: bool) -> None:
    if as_json:
        assert json.loads(out) == {"error": "interrupted", "exit_code": 130}
    else:
        assert (out, errors.splitlines()[-1]) == ("", "agentforge: interrupted")


def test_a_command_that_is_interrupted_in_source_text_ends_with_its_code(tmp_path: Path) -> None:
    _, errors = interrupted(tmp_path, HELD)
    assert "agentforge: interrupted" in errors


@pytest.mark.parametrize("source", [HELD, STUCK])
def test_a_closed_terminal_ends_a_command_as_ctrl_c_does(tmp_path: Path, source: str) -> None:
    own = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run after nohup\n"
    _, errors = interrupted(tmp_path, own + source, number=signal.SIGHUP)
    assert "agentforge: interrupted" in errors


NOHUP = """
import os, signal, sys, time

signal.signal(signal.SIGHUP, signal.SIG_IGN)
from agentforge.cli import _main

def wait(_):
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(0.5)
    print("held", file=sys.stderr, flush=True)
    time.sleep(60)

_main._invoke = wait
_main.main()
"""


def test_a_command_after_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    interrupted(tmp_path, NOHUP)


@pytest.mark.slow
@pytest.mark.parametrize("option", [(), ("--json",)])
def test_an_interrupt_is_said(home: Path, option: tuple[str, ...]) -> None:
    model, begun = home.parent / "model.py", home.parent / "begun"
    model.write_text(f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "agentforge.cli", "profile", str(model), "--device", "cpu", *option]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    check_said(out, errors, as_json=bool(option))


@pytest.mark.slow
@pytest.mark.parametrize("option", [(), ("--json",)])
def test_an_interrupt_is_said_if_the_command_does_not_end_by_itself(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    out, errors = interrupted(tmp_path, STUCK, "profile", *option)
    check_said(out, errors, as_json=bool(option))


AUDIT = """
import sys, time
from agentforge.campaigns import audit
from agentforge.cli import _main

def wait(*_, **__):
    print("held", file=sys.stderr, flush=True)
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

audit.read_submissions, audit.audit = lambda *_, **__: ("claims", []), wait
_main.main()
"""


@pytest.mark.slow
def test_an_audit_that_is_cut_short_answers_in_json(home: Path, tmp_path: Path) -> None:
    out, errors = interrupted(tmp_path, AUDIT, "audit", ".", "--json")
    assert json.loads(out) == {"error": "interrupted", "exit_code": 130}
    assert "the same command continues the audit" in errors


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.parametrize(
    ("number", "until"),
    [
        (signal.SIGINT, "profiled"),
        (signal.SIGTERM, "profiled"),
        (signal.SIGINT, "#1"),
        (signal.SIGINT, "integ"),
    ],
)
def test_an_interrupted_run_says_how_to_go_on(
    run: Run, home: Path, tmp_path: Path, number: signal.Signals, until: str
) -> None:
    model = home.parent / "model.py"
    model.write_text(MODEL)
    command = [sys.executable, "-m", "tests.quick", "optimize", str(model), "--device", "cpu"]
    command += ["--attempts", "1"]
    if until != "profiled":  # two of the runs have a baseline that compiles
        command += ["-c", "referee.compile_baseline=false"]
    (tmp_path / "tmp").mkdir()
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": root}
    for _ in range(3):  # a busy machine may verify nothing, and then nothing is integrated
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert process.stderr is not None
        if any(line.startswith(until) for line in process.stderr):
            break
    time.sleep(1.0)  # into an evaluation
    process.send_signal(number)
    sent = time.monotonic()
    _, errors = process.communicate(timeout=120)
    assert time.monotonic() - sent < MOST_S
    assert "agentforge: stopping" in errors
    assert not list((tmp_path / "tmp").glob("agentforge-referee-*"))
    assert process.returncode == 130
    assert "Traceback" not in errors
    listed = run("runs", "list", "--json").json["runs"][0]
    assert listed["status"] == "interrupted"
    assert f"agentforge runs resume {listed['id']}" in errors

    shown = run("runs", "show", listed["id"])
    assert shown.code == 0
    assert listed["id"] in shown.out

"""The referee by a user without rights, who needs a user namespace for every sandbox."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.isolation.sandboxes.namespaces import probe_command
from agentforge.languages.cpp.sanitizers.sanitizers import RACES
from agentforge.referee.candidates.sanitizer_pool import in_place

from .. import ordinary

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Skipped by anybody but root, and where root may not become another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other tests of the referee run as this one")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = ordinary.run(folder, sys.executable, "-c", "import os, torch, agentforge; print(os.getuid())")
        if done.stdout.strip() != str(ordinary.USER):
            pytest.skip(f"no ordinary user can be made here: {done.stderr[-300:]}")
        yield folder


def verify(home: Path, candidate: str, sandbox: str) -> tuple[str, str]:
    """Status and reasons of `agentforge verify --level quick`."""
    (home / "reference.py").write_text(REFERENCE)
    (home / "right.py").write_text(REFERENCE.replace("class Model(", "class ModelNew("))
    (home / "wrong.py").write_text((home / "right.py").read_text().replace("relu(x)", "relu(x) + 1e-3"))
    options = ["compile_baseline=false", "quick_seconds=0.1", "quick_blocks=2", "threads=1"]
    overrides = [part for x in [*options, f"sandbox={sandbox}"] for part in ("-c", f"referee.{x}")]
    command = [sys.executable, "-m", "agentforge.cli", "verify", "reference.py", candidate, "--json"]
    done = ordinary.run(home, *command, "--level", "quick", *overrides)
    assert done.stdout, done.stderr
    verdict = json.loads(done.stdout)
    return verdict["status"], str(verdict["reasons"])


def doctor_finds(home: Path, sandbox: str) -> bool:
    """What `agentforge doctor` asks."""
    code = (
        "from agentforge.isolation.sandboxes import sandboxes\n"
        f"print(sandboxes.create({sandbox!r}).available().ok)"
    )
    done = ordinary.run(home, sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() == "True"


def scratch(home: Path) -> str:
    """A new folder of the user's."""
    folder = tempfile.mkdtemp(dir=home)
    os.chown(folder, ordinary.USER, ordinary.USER)
    return folder


@pytest.mark.slow
def test_a_sandbox_that_the_doctor_finds_works(home: Path) -> None:
    if not doctor_finds(home, "namespaces"):
        pytest.skip("namespaces do not work here for an ordinary user")
    assert verify(home, "right.py", "namespaces")[0] == "PASSED"


@pytest.mark.slow
def test_a_wrong_answer_is_found_by_an_ordinary_user_too(home: Path) -> None:
    assert verify(home, "wrong.py", "auto")[0] == "INCORRECT_NUMERICAL"


def test_the_doctor_tries_it_as_the_forkserver_does(home: Path) -> None:
    """From a process that is not dumpable: root owns its files in /proc, which must be written to."""
    if not doctor_finds(home, "namespaces"):
        pytest.skip("namespaces do not work here for an ordinary user")
    careless = (
        "import pathlib\n"
        "from agentforge.isolation.sandboxes import namespaces\n"
        "def write(uid, gid):\n"
        "    pathlib.Path('/proc/self/setgroups').write_text('deny')\n"
        "namespaces.map_user = write\n"
    )
    python, dash_c, code, *rest = probe_command(scratch(home))
    done = ordinary.run(home, python, dash_c, careless + code, *rest)
    assert "inside" not in done.stdout
    assert "PermissionError" in done.stderr


def test_a_process_of_the_thread_sanitizer_can_be_confined(home: Path) -> None:
    """Its run time has a thread, also after a fork; only a process with one thread gets a user namespace."""
    if not doctor_finds(home, "namespaces"):
        pytest.skip("namespaces do not work here for an ordinary user")
    library = RACES.available()
    if not library:
        pytest.skip("the compiler brings no ThreadSanitizer")
    prefix = [*in_place(), "env", f"LD_PRELOAD={library}"]
    python, dash_c, code, *rest = probe_command(scratch(home))
    fork = (
        "import os, threading, time\n"
        "thread = threading.Thread()\n"
        "thread.start()\n"
        "while len(os.listdir('/proc/self/task')) != 2: time.sleep(0.01)\n"
        "if child := os.fork():\n"
        "    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "assert len(os.listdir('/proc/self/task')) == 2\n"
    )
    done = ordinary.run(home, *prefix, python, dash_c, fork + code, *rest)
    assert done.stdout == "inside", done.stderr


CURIOUS = """
import os

def opens(pid):
    try:
        return bool(os.listdir(f"/proc/{pid}/fd")) and bool(os.open(f"/proc/{pid}/mem", os.O_RDWR))
    except OSError:
        return False

def ancestors(pid):
    while pid > 1:
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
        yield pid

FOUND = any(map(opens, ancestors(os.getpid())))
"""


@pytest.mark.slow
def test_the_referee_s_memory_is_closed_to_a_candidate_of_its_user(home: Path) -> None:
    """Without a namespace of processes it sees the referee's."""
    source = REFERENCE.replace("class Model(", "class ModelNew(").replace(
        "relu(x)", "relu(x) if FOUND else x"
    )
    (home / "curious.py").write_text(CURIOUS + source)
    assert verify(home, "curious.py", "rlimits")[0] == "INCORRECT_NUMERICAL"
    assert verify(home, "right.py", "rlimits")[0] == "PASSED"

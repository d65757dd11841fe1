"""What the children of `test_child_process.py` and `test_child_server.py` run; none of it needs torch."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from agentforge.isolation.child_process import run_child
from agentforge.schema import TargetError


def echo(payload, report):
    return payload


def talk(payload, report):
    for word in ("one", "two", "three"):
        print("noise")
        report(word)


def large(payload, report):
    return "x" * 3_000_000


def refuse(payload, report):
    raise TargetError("it is odd; mend it")


def fail(payload, report):
    raise KeyError("lost")


def odd(payload, report):
    report("half a pair \udcff")
    raise RuntimeError("half a pair \udcff")


def leave(payload, report):
    sys.exit(4)


def vanish(payload, report):
    os._exit(7)


def crash(payload, report):
    os.kill(os.getpid(), signal.SIGSEGV)


def killed(payload, report):
    os.kill(os.getpid(), signal.SIGKILL)


def hoard(payload, report):
    return len(bytearray(1 << 30))


def spawn_and_hang(payload, report):
    child = subprocess.Popen(["sleep", "600"], start_new_session=payload.get("detached", False))
    Path(payload["pid_file"]).write_text(str(child.pid))
    report("hanging")
    time.sleep(600)


def surroundings(payload, report):
    return {
        "cwd": str(Path.cwd()),
        "environment": dict(os.environ),
        "server": psutil.Process().parent().ppid(),
        "temporary": tempfile.gettempdir(),
        "draw": random.random(),
    }


def inherited(payload, report):
    """Which of some modules this process had before its task began, and the process that forked it."""
    found = [name for name in payload["modules"] if name in sys.modules]
    return {"modules": found, "server": psutil.Process().parent().ppid()}


def below(payload, report):
    """Another child's surroundings, and the pid of its server's parent."""
    found = run_child(f"{__name__}:surroundings", {}, timeout_s=60.0)
    return found | {"above": psutil.Process(found["server"]).ppid(), "own": os.getpid()}


def leave_a_daemon(payload, report):
    """Fork twice, so that the grandchild has no mark of this process except its ancestors."""
    if not (child := os.fork()):
        os.setsid()
        if not (grandchild := os.fork()):
            time.sleep(600)
        Path(payload["pid_file"]).write_text(str(grandchild))
        os._exit(0)
    os.waitpid(child, 0)

"""What the children of `test_child.py` run; none of it needs torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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

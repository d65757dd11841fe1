"""What the filter lets through, in a process of its own: it stays."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentforge.isolation import seccomp

OWNERS = """
import fcntl, os, socket, struct, sys
from agentforge.isolation import linux, seccomp

if sys.argv[1:]:
    linux.no_new_privileges()
    assert seccomp.confine(signals_only_to=os.getpid())
ours, _ = socket.socketpair()
owner = struct.pack("i", 1)
for call in (
    lambda: fcntl.ioctl(ours, 0x8901, owner),
    lambda: fcntl.ioctl(ours, 0x8902, owner),
    lambda: fcntl.fcntl(ours, fcntl.F_SETOWN, 1),
):
    fcntl.fcntl(ours, fcntl.F_GETFL)
    try:
        call()
    except PermissionError:
        print("refused")
    else:
        print(fcntl.fcntl(ours, fcntl.F_GETOWN))
"""


@pytest.mark.skipif(os.uname().machine not in seccomp._AUDIT_ARCH, reason="no filter for this processor")
@pytest.mark.parametrize(("arguments", "said"), [((), "1"), (("confined",), "refused")])
def test_no_file_gets_another_owner_whom_it_could_signal(arguments: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWNERS, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [said] * 3


SLOWS = """
import ctypes, os, subprocess, sys
from agentforge.isolation import linux, seccomp

other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
linux.no_new_privileges()
assert seccomp.confine(signals_only_to=os.getpid())
processors, parameters = os.sched_getaffinity(0), os.sched_param(0)
syscall = ctypes.CDLL(None, use_errno=True).syscall
for pid in (0, os.getpid(), other.pid):
    for call in (
        lambda: os.sched_setaffinity(pid, processors),
        lambda: os.sched_setscheduler(pid, os.SCHED_OTHER, parameters),
        lambda: os.sched_setparam(pid, parameters),
    ):
        try:
            call()
            print("done", end=" ")
        except PermissionError:
            print("refused", end=" ")
    print()
for which in (os.PRIO_PROCESS, os.PRIO_USER):
    try:
        os.setpriority(which, 0, os.getpriority(which, 0))
        print("done")
    except PermissionError:
        print("refused")
own, number = seccomp._SCHEDULING[os.uname().machine], seccomp._PRIORITIES[os.uname().machine]["ioprio_set"]
fields = (ctypes.c_uint32 * 12)(48)
print(syscall(own["sched_setattr"], other.pid, fields, 0), syscall(own["sched_setattr"], 0, fields, 0))
print(syscall(number, 3, 0, 4 << 13), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(os.uname().machine not in seccomp._AUDIT_ARCH, reason="no filter for this processor")
def test_no_other_process_is_made_slower() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOWS], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    own, itself, other, process, user, attributes, input_output = done.stdout.splitlines()
    assert own.split() == itself.split() == ["done"] * 3
    assert other.split() == ["refused"] * 3 and [process, user] == ["refused"] * 2
    assert (attributes, input_output) == ("-1 0", "-1")

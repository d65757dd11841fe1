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

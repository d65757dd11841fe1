"""The number of threads that a user may have more."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

COUNTS = """
import resource, sys
from agentforge.isolation import procfs
from agentforge.isolation.sandboxes import rlimits

procfs.threads_of_user = lambda uid: int(sys.argv[1])
before = resource.getrlimit(resource.RLIMIT_NPROC)
print(rlimits._running_threads(), resource.getrlimit(resource.RLIMIT_NPROC) == before)
"""


@pytest.mark.skipif(os.getuid() == 0, reason="the kernel never limits root")
def test_threads_outside_of_a_container_are_counted() -> None:
    from agentforge.isolation import procfs

    visible = procfs.threads_of_user(os.getuid())
    done = subprocess.run([sys.executable, "-c", COUNTS, "1"], capture_output=True, text=True, check=True)
    found, kept = done.stdout.split()
    assert kept == "True" and int(found) >= visible


@pytest.mark.parametrize("seen", [3, 1000])
def test_a_count_that_is_enough_stays(seen: int) -> None:
    if os.getuid() and resource.getrlimit(resource.RLIMIT_NPROC)[1] >= 0:
        pytest.skip("this user is limited already")
    done = subprocess.run(
        [sys.executable, "-c", COUNTS, str(seen)], capture_output=True, text=True, check=True
    )
    found, kept = done.stdout.split()
    assert kept == "True" and int(found) >= seen

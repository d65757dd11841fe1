"""Workers on this machine, each a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

STOP_S = 1.3
"""Seconds that workers have to give their items back at Ctrl-C."""


def run_workers(
    campaign: str, count: int, overrides: Sequence[str], options: Sequence[str] = ()
) -> list[int]:
    """Start workers and wait until all have ended; they tell their progress on stderr.

    A worker ends as by Ctrl-C if this process dies.

    Args:
        options: more options of `agentforge campaign work`.

    Returns:
        Their exit codes.

    Raises:
        KeyboardInterrupt: the workers were told to give their items back.
    """
    command = [sys.executable, "-m", "agentforge.cli", "campaign", "work", campaign, *options]
    command += ["--parent", str(os.getpid()), *(part for flag in overrides for part in ("-c", flag))]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            # In a session of its own, a worker gets Ctrl-C once: from here, and not from the terminal too.
            nothing = subprocess.DEVNULL
            processes.append(subprocess.Popen(command, stdin=nothing, stdout=nothing, start_new_session=True))
        return [process.wait() for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)  # what a script has in the background ignores SIGINT
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)

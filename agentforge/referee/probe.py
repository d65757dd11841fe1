"""Does the referee's way to confine a worker work on this machine? `agentforge doctor` asks."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace

from agentforge.isolation.sandboxes import Limits, Sandbox
from agentforge.isolation.scratch import Scratch
from agentforge.schema import HarnessError

from .candidates.build import writable_box
from .workers.device_backend import CPU, DeviceBackend
from .workers.environment import worker_environment
from .workers.process import Forkserver
from .workers.worker import Worker

_PROGRAM = "import os; open('file', 'w').write('x'); os.write(1, b'inside')"
_MEMORY, _TOTAL = 1 << 30, 2 << 30
_TIMEOUT_S = 60.0


def probe_worker(
    sandbox: Sandbox, *, backend: DeviceBackend = CPU, program: str = "", total_bytes: int = _TOTAL
) -> str:
    """Start a forkserver, confine a worker as every build and every candidate is, and run Python in it.

    Args:
        sandbox: what confines it.
        backend: the device that it may use, and whether system calls are filtered.
        program: Python that must run in it, on one line that ends in `; `.
        total_bytes: limit on the memory of all its processes; 0 for none.

    Returns:
        What limits its memory, in words.

    Raises:
        HarnessError: it could not be confined, or the program could not run inside.
    """
    grouped: list[bool] = []

    def wait(worker: Worker, timeout_s: float) -> int | None:
        grouped.append(worker.group is not None)
        return worker.wait(timeout_s)

    with closing(Scratch("probe")) as own:
        folder = own.path
        folder.chmod(0o711)
        work = folder / "work"
        work.mkdir()
        limits = Limits(memory_bytes=backend.address_space or _MEMORY, total_bytes=total_bytes)
        environment = worker_environment(1, folder, backend.environment)
        with closing(Forkserver("builder", sandbox, folder, environment)) as server:
            server.ready()
            with writable_box(work, folder) as box:
                done = server.execute(
                    [sys.executable, "-c", program + _PROGRAM], cwd=work, scratch=box.scratch, limits=limits,
                    box=replace(box, devices=backend.nodes, filtered=backend.filtered),
                    timeout_s=_TIMEOUT_S, wait=wait,
                )  # fmt: skip
    if done.returncode != 0 or not done.stderr.endswith("inside"):
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise HarnessError(f"a worker could not be confined by {sandbox.name} ({reason})")
    return (
        "a memory control group" if any(grouped) else "address space and resident memory, process by process"
    )

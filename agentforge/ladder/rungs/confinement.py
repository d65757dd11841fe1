"""Candidates on a GPU: the system-call filter, the sandbox, memory limits, a kernel that hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from agentforge.isolation.sandboxes import Sandbox

from .._failure import RungFailure

if TYPE_CHECKING:
    from agentforge.referee.workers.device_backend import DeviceBackend

_USE = "import torch; x = torch.ones(1024, device='cuda'); assert float((x * 2).sum()) == 2048"
_FILTERED = (
    "import os; from agentforge.isolation import linux, seccomp; linux.no_new_privileges(); "
    f"seccomp.confine(memory_files=True); {_USE}; print('inside')"
)
_HANG = (
    "import torch; x = torch.ones(1, device='cuda'); torch.cuda.synchronize(); print('hangs', flush=True); "
    "torch.cuda._sleep(1 << 62); torch.cuda.synchronize()"
)
_MEMORY = 8 << 30
_RECOVERED_S = 30.0


def filter_() -> str:
    """Start CUDA in a process with the candidates' system-call filter and nothing else."""
    _inside(_FILTERED)
    return "CUDA starts under the filter"


def worker() -> str:
    """Start CUDA in a confined worker of the referee, without a limit on its memory."""
    return _probe(_sandbox(), 0)


def memory_limit() -> str:
    """Start CUDA in a worker with the least memory that candidates are given."""
    try:
        return _probe(_sandbox(), _MEMORY)
    except RungFailure:
        from agentforge.referee import choose_sandbox

        return _probe(choose_sandbox("rlimits"), _MEMORY)


def recovery() -> str:
    """Kill a process whose kernel never ends; then use the GPU."""
    child = subprocess.Popen([sys.executable, "-c", _HANG], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        if not child.stdout.readline():
            raise RungFailure("the kernel that hangs could not be launched")
        time.sleep(1.0)
    finally:
        child.kill()
    begin = time.monotonic()
    try:
        child.wait(timeout=_RECOVERED_S)
        subprocess.run([sys.executable, "-c", _USE], timeout=_RECOVERED_S, check=True, capture_output=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise RungFailure(
            f"the GPU cannot be used after a hung kernel was killed ({error})", "nvidia-smi --gpu-reset"
        ) from error
    return f"usable {time.monotonic() - begin:.1f} s after the kill"


def _sandbox() -> Sandbox:
    from agentforge.referee import choose_sandbox

    return choose_sandbox("auto")


def _probe(sandbox: Sandbox, total_bytes: int) -> str:
    """Probe a worker; without the system-call filter if that alone keeps CUDA from starting."""
    from agentforge.devices import detect
    from agentforge.referee.workers.device_backend import backend_for

    backend = backend_for(detect("cuda"))
    try:
        return _confined(sandbox, backend, total_bytes)
    except RungFailure:
        try:
            filter_()
        except RungFailure:
            return _confined(sandbox, replace(backend, filtered=False), total_bytes)
        raise


def _confined(sandbox: Sandbox, backend: DeviceBackend, total_bytes: int) -> str:
    from agentforge.referee.probe import probe_worker
    from agentforge.schema import HarnessError

    try:
        held = probe_worker(sandbox, backend=backend, program=f"{_USE}; ", total_bytes=total_bytes)
    except HarnessError as error:
        raise RungFailure(str(error)) from error
    return f"in {sandbox.name}; limited by {held}"


def _inside(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    if done.returncode or "inside" not in done.stdout:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RungFailure(lines[-1])

"""Device of the measurements: a GPU, or in a dry run the CPU with Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from agentforge.referee.timing.gpu.device import CallTime, Gpu, HostClock, TorchGpu

_SPIN_CYCLES = 1_000_000
"""About half a millisecond: longer than the host needs to launch one operator."""


class Queued:
    """Times the GPU's work without the host's launch time, by keeping the GPU busy meanwhile.

    Args:
        gpu: the timer.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def prepare(self) -> None:
        """See `Gpu.prepare`."""
        self._gpu.prepare()

    def time(self, call: Callable[[], Any]) -> CallTime:
        """See `Gpu.time`; the host's clock includes the wait, equally for every call."""
        torch.cuda._sleep(_SPIN_CYCLES)
        return self._gpu.time(call)

    def release(self) -> None:
        """See `Gpu.release`."""
        self._gpu.release()

    def usable(self) -> bool:
        """See `Gpu.usable`."""
        return self._gpu.usable()


def set_stage(dry: bool) -> tuple[Gpu, int]:
    """The timer, and the bytes of its L2. Call it before anything imports Triton."""
    if dry:
        from agentforge.languages.triton.interpreter import install as interpreted

        interpreted.install()
        return HostClock(), 1 << 10
    gpu = TorchGpu()
    return Queued(gpu), gpu.l2_bytes


def compiled(function: Callable[..., torch.Tensor], dry: bool) -> Callable[..., torch.Tensor]:
    """torch.compile's best code for exactly these sizes."""
    torch._dynamo.reset()
    how = {"backend": "eager"} if dry else {"mode": "max-autotune-no-cudagraphs"}
    found: Callable[..., torch.Tensor] = torch.compile(function, dynamic=False, **how)
    return found

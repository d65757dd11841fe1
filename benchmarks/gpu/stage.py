"""What measurements run on: a GPU, or for a dry run the CPU with Triton's interpreter in the place of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from agentforge.harness.gpu import Gpu, TorchGpu
from agentforge.harness.gpu.device import CallTime, HostClock

_SPIN_CYCLES = 1_000_000
"""About half a millisecond: longer than the host takes to launch one operator."""


class Queued:
    """Times what the GPU does, not how long the host takes to launch it: the GPU is kept busy meanwhile.

    Args:
        gpu: that does the timing.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def prepare(self) -> None:
        """See `Gpu.prepare`."""
        self._gpu.prepare()

    def time(self, call: Callable[[], Any]) -> CallTime:
        """See `Gpu.time`; the host's clock has the wait in it, for every call alike."""
        torch.cuda._sleep(_SPIN_CYCLES)
        return self._gpu.time(call)


def set_stage(dry: bool) -> tuple[Gpu, int]:
    """What times calls, and the bytes of its L2. Call it before anything imports Triton."""
    if dry:
        from agentforge.languages.triton import interpreted

        interpreted.install()
        return HostClock(), 1 << 10
    gpu = TorchGpu()
    return Queued(gpu), gpu.l2_bytes


def compiled(function: Callable[..., torch.Tensor], dry: bool) -> Callable[..., torch.Tensor]:
    """torch.compile's best answer for the very sizes that it is called with."""
    torch._dynamo.reset()
    how = {"backend": "eager"} if dry else {"mode": "max-autotune-no-cudagraphs"}
    found: Callable[..., torch.Tensor] = torch.compile(function, dynamic=False, **how)
    return found

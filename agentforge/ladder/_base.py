"""The rungs: what each one tries, what it needs, and what AgentForge does without it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentforge.devices import Fallback
from agentforge.schema import FrozenModel


@dataclass(frozen=True)
class Rung:
    """One thing that a GPU machine may be able to do. It is tried in a process of its own."""

    name: str
    program: str
    """Function that tries it: `basics:driver` is `driver` in `agentforge.ladder.rungs.basics`."""
    tries: str
    """In words."""
    needs: tuple[str, ...] = ()
    """Rungs without which it is not tried."""
    fallback: Fallback | None = None
    """What AgentForge does without it; None if no kernel can be judged on this GPU without it."""
    limit_s: float = 60.0
    optional: bool = False
    """It needs something that not every machine has: without it nothing is broken."""
    alone: bool = False
    """No other rung is tried meanwhile: it measures time, or hangs the GPU for a while."""


class RungOutcome(StrEnum):
    """How a rung ended."""

    WORKS = "works"
    FAILS = "fails"
    NOT_TRIED = "not tried"
    """A rung that it needs does not work."""


class RungResult(FrozenModel):
    """What became of one rung."""

    rung: str
    outcome: RungOutcome
    detail: str = ""
    """What was found, or the error in the words of the vendor."""
    fix: str = ""
    """What to do about a failure, if that is known."""
    seconds: float = 0.0
    fallback: str = ""
    """Value of the `Fallback` that follows from a failure."""


_BASE = ("driver", "torch", "allocation")

LADDER: tuple[Rung, ...] = (
    Rung("driver", "basics:driver", "the driver answers and sees a GPU"),
    Rung("torch", "basics:torch_sees", "torch can use the GPU", ("driver",), limit_s=120),
    Rung("allocation", "basics:allocation", "memory can be allocated, written and read", ("driver", "torch"),
         limit_s=120),
    Rung("nvrtc", "languages:nvrtc", "a CUDA C++ kernel is compiled, launched and right", _BASE,
         Fallback.NO_CUDA, 120),
    Rung("cupy", "languages:cupy", "CuPy launches a kernel on a tensor of torch", _BASE,
         Fallback.NO_CUPY, 120, optional=True),
    Rung("triton", "languages:triton", "a Triton kernel is compiled, launched and right", _BASE,
         Fallback.NO_TRITON, 180),
    Rung("filter", "confinement:filter_", "CUDA starts under the system-call filter", _BASE,
         Fallback.NO_FILTER, 120),
    Rung("worker", "confinement:worker", "a worker in the strongest sandbox opens the GPU", _BASE,
         Fallback.WEAK_SANDBOX, 180),
    Rung("memory limit", "confinement:memory_limit", "CUDA starts below a limit on a worker's memory", _BASE,
         Fallback.NO_MEMORY_LIMIT, 180),
    Rung("nvml", "clocks:nvml", "NVML tells clocks and temperature", ("driver",), Fallback.NO_CLOCKS),
    Rung("counters", "profilers:counters", "Nsight Compute reads hardware counters", _BASE,
         Fallback.NO_COUNTERS, 180, optional=True),
    Rung("cupti", "profilers:cupti", "torch's profiler sees kernels (CUPTI)", _BASE,
         Fallback.NO_KERNEL_TIMES, 120),
    Rung("graphs", "launches:graphs", "a CUDA graph is captured and replayed", _BASE, Fallback.NO_GRAPHS),
    Rung("streams", "launches:streams", "two streams and events order work", _BASE, Fallback.NO_STREAMS),
    Rung("events", "clocks:events", "CUDA events and the host's clock agree", _BASE,
         Fallback.HOST_CLOCK, alone=True),
    Rung("recovery", "confinement:recovery", "after a kernel that hangs is killed, the GPU works", _BASE,
         Fallback.NO_RECOVERY, 120, alone=True),
)  # fmt: skip
"""All rungs. Consecutive ones that do not need each other are tried side by side."""

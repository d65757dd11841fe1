"""The process that a profiler looks at: a worker of the referee whose requests lie in files.

Run as `python -m agentforge.harness.profiled_main REQUESTS [TIMES]`. It warms up (compilation, autotuning,
caches), then calls the model once between `cudaProfilerStart` and `cudaProfilerStop`, which is when `ncu`
looks. With `TIMES`, a file, some calls run under `torch.profiler` instead, whose records need no counters.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from agentforge.schema import FrozenModel

from .memory import in_pages
from .server import Server
from .wire import pair

REQUESTS, WEIGHTS, INPUTS = "requests.json", "weights", "inputs"
_WARM_UP = 10
_TIMED_CALLS = 10


class KernelTime(FrozenModel):
    """Of one kernel."""

    name: str
    seconds: float
    """In all calls."""
    launches: int


class Times(FrozenModel):
    """What `TIMES` holds."""

    calls: int
    kernels: tuple[KernelTime, ...]


class Profiled(Server):
    """A worker that is asked in writing.

    Args:
        folder: of the requests.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(pair()[0])
        self._folder = folder
        load, workload = json.loads((folder / REQUESTS).read_text())
        self._on_gpu = str(load["device"]).startswith("cuda")
        self._ask(load, self._file(WEIGHTS))
        outputs = os.memfd_create("outputs")  # every worker has room for them; nobody asks for these
        os.ftruncate(outputs, in_pages(1))
        self._ask(workload, outputs)

    def warm_up(self) -> None:
        """Call the model as the referee does."""
        for _ in range(_WARM_UP):
            self._ask({"op": "ready", "slot": 0, "keep": 0})
            self._ask({"op": "call", "slot": 0}, self._file(INPUTS))

    def call(self) -> Callable[[], Any]:
        """The call to look at: the model's alone, its inputs already where it reads them."""
        args, kwargs = self._inputs(0)
        model = self._model
        assert model is not None
        return lambda: model(*args, **kwargs)

    def marked(self) -> None:
        """One call between the marks that `ncu` waits for."""
        call = self.call()
        if not self._on_gpu:
            call()
            return
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()

    def timed(self) -> Times:
        """Some calls under torch's profiler."""
        call = self.call()
        activities = [torch.profiler.ProfilerActivity.CPU]
        if self._on_gpu:
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(_TIMED_CALLS):
                call()
            if self._on_gpu:
                torch.cuda.synchronize()
        kind = torch.autograd.DeviceType.CUDA if self._on_gpu else torch.autograd.DeviceType.CPU
        return Times(calls=_TIMED_CALLS, kernels=kernel_times(profiler.events(), kind))

    def _file(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)

    def _ask(self, body: dict[str, Any], *fds: int) -> None:
        error = self.answer(body, fds).get("error")
        if error is not None:
            raise SystemExit(f"{error['type']}: {error['message']}")


def kernel_times(events: Iterable[Any], kind: Any) -> tuple[KernelTime, ...]:
    """Time of each kernel, most first.

    The profiler shows the time of a kernel twice: as its own, and as its operator's device time. Only events
    that ran on the device count.

    Args:
        events: `FunctionEvent`s.
        kind: the device's; on a device that is none, operators are its kernels.
    """
    seconds: dict[str, float] = {}
    launches: dict[str, int] = {}
    for event in events:
        if event.device_type != kind or event.is_user_annotation:
            continue
        on_host = kind == torch.autograd.DeviceType.CPU  # where operators run within operators
        spent_us = event.self_cpu_time_total if on_host else event.time_range.elapsed_us()
        seconds[event.name] = seconds.get(event.name, 0.0) + spent_us / 1e6
        launches[event.name] = launches.get(event.name, 0) + 1
    order = sorted(seconds, key=lambda name: -seconds[name])
    return tuple(KernelTime(name=n, seconds=seconds[n], launches=launches[n]) for n in order)


def main(argv: list[str]) -> None:
    """Run the requests."""
    worker = Profiled(Path(argv[1]))
    worker.warm_up()
    if len(argv) > 2:
        Path(argv[2]).write_text(worker.timed().model_dump_json())
    else:
        worker.marked()


if __name__ == "__main__":
    main(sys.argv)

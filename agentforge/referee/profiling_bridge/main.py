"""The process that a profiler looks at: a worker of the referee whose requests are files.

Run as `python -m agentforge.referee.profiling_bridge.main REQUESTS [TIMES]`. It warms up, then calls the
model once between `cudaProfilerStart` and `cudaProfilerStop`. With `TIMES`, a file, some calls run under
`torch.profiler` instead.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from agentforge.schema import FrozenModel

from ..workers.memory.shared_memory import in_pages
from ..workers.protocol import pair
from ..workers.server import Server

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
    """Content of `TIMES`."""

    calls: int
    kernels: tuple[KernelTime, ...]


class Profiled(Server):
    """A worker that is asked in writing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(pair()[0])
        self._folder = folder
        load, workload = json.loads((folder / REQUESTS).read_text())
        self._on_gpu = str(load["device"]).startswith("cuda")
        self._ask(load, self._file(WEIGHTS))
        # Every worker has room for its outputs; these are never read.
        outputs = _nameless_file()
        os.ftruncate(outputs, in_pages(1))
        self._ask(workload, self._inputs_of_its_own(), outputs)

    def warm_up(self) -> None:
        """Call the model as the referee does."""
        for _ in range(_WARM_UP):
            self._ask({"op": "call", "slot": 0, "keep": 0})

    def call(self) -> Callable[[], Any]:
        """The call to profile: only the model's, with its inputs already in place."""
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

    def _inputs_of_its_own(self) -> int:
        """The inputs in a file that may be written to, as the referee's workers have them."""
        inputs = _nameless_file()
        content = (self._folder / INPUTS).read_bytes()
        while content:
            content = content[os.write(inputs, content) :]
        return inputs

    def _file(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)

    def _ask(self, body: dict[str, Any], *fds: int) -> None:
        error = self.answer(body, fds).get("error")
        if error is not None:
            raise SystemExit(f"{error['type']}: {error['message']}")


def _nameless_file() -> int:
    return os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR)


def kernel_times(events: Iterable[Any], kind: Any) -> tuple[KernelTime, ...]:
    """Time of each kernel, most first.

    Args:
        kind: the device's; on a device that is none, operators are its kernels.
    """
    seconds: dict[str, float] = {}
    launches: dict[str, int] = {}
    for event in events:
        if event.device_type != kind or event.is_user_annotation:
            continue
        on_host = kind == torch.autograd.DeviceType.CPU  # operators run within operators there
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

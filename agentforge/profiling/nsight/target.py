"""The process that is profiled: it runs one built solution on its workload.

Run as `python -m agentforge.profiling.nsight.target SPEC.json`. It makes no verdict: the referee
has judged the solution before.

Warm-up first (compilation, autotuning, caches), then a few calls between `cudaProfilerStart` and
`cudaProfilerStop`, which is what `ncu` looks at. With `times` the same calls run under `torch.profiler`
instead, whose CUPTI activity records need no counters.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from agentforge.harness.convention import load_problem
from agentforge.harness.inputs import draw
from agentforge.harness.server import import_entry
from agentforge.languages import PRELUDE
from agentforge.schema import Definition, FrozenModel, TensorInput, Workload

_SEED = 0


class Spec(FrozenModel):
    """What to run."""

    folder: str
    """Of the built solution."""
    entry_file: str
    entry_class: str
    definition: Definition
    workload: Workload
    device: str = "cuda"
    warmup: int = 10
    calls: int = 1
    times: str = ""
    """File for the kernels' times; empty where ncu looks on."""


class KernelTime(FrozenModel):
    """Of one kernel."""

    name: str
    seconds: float
    """In all calls."""
    launches: int


class Times(FrozenModel):
    """What `times` holds."""

    calls: int
    kernels: tuple[KernelTime, ...]


def main(path: str) -> None:
    """Run a spec."""
    spec = Spec.model_validate_json(Path(path).read_text())
    call = prepare(spec)
    with torch.no_grad():
        for _ in range(spec.warmup):
            call()
        if spec.times:
            Path(spec.times).write_text(_timed(call, spec).model_dump_json())
        else:
            _profiled(call, spec)


def prepare(spec: Spec) -> Callable[[], Any]:
    """Construct the solution's model with the reference's init arguments; the call to profile.

    Raises:
        whatever the solution raises.
    """
    problem = load_problem(spec.definition)
    folder = Path(spec.folder)
    sys.path.insert(0, str(folder))
    if (folder / PRELUDE).is_file():
        importlib.import_module(PRELUDE.removesuffix(".py"))
    module = import_entry(folder, spec.entry_file.removesuffix(".py").replace("/", "."))
    init = problem.get_init_inputs()
    torch.manual_seed(_SEED)
    made = getattr(module, spec.entry_class)
    model = (made(**init) if isinstance(init, dict) else made(*init)).eval().to(spec.device)
    if spec.workload.source == "reference" or not spec.workload.inputs:
        args, kwargs = problem.inputs(_SEED)
    else:
        args, kwargs = _drawn(spec.workload)
    args = tuple(_on(a, spec.device) for a in args)
    kwargs = {k: _on(v, spec.device) for k, v in kwargs.items()}
    return lambda: model(*args, **kwargs)


def _drawn(workload: Workload) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by specification, under a fixed seed."""
    generator = torch.Generator().manual_seed(_SEED)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for given in workload.inputs:
        if isinstance(given, TensorInput):
            dtype = getattr(torch, given.dtype.value)
            value: Any = (
                torch.empty(given.shape, dtype=dtype)
                if given.strides is None
                else torch.empty_strided(given.shape, given.strides, dtype=dtype)
            )
            draw(value, given.distribution, generator)
        else:
            value = given.value
        if given.keyword:
            kwargs[given.name] = value
        else:
            args.append(value)
    return tuple(args), kwargs


def _on(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _profiled(call: Callable[[], Any], spec: Spec) -> None:
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for _ in range(spec.calls):
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def _timed(call: Callable[[], Any], spec: Spec) -> Times:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if spec.device.startswith("cuda"):
        torch.cuda.synchronize()
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(spec.calls):
            call()
        if spec.device.startswith("cuda"):
            torch.cuda.synchronize()
    return Times(calls=spec.calls, kernels=kernel_times(profiler.events()))


def kernel_times(events: Iterable[Any]) -> tuple[KernelTime, ...]:
    """Time of each kernel, most first.

    The profiler shows the time of a kernel twice: as its own, and as its operator's device time. Only events
    that ran on the device count.

    Args:
        events: `FunctionEvent`s.
    """
    seconds: dict[str, float] = {}
    launches: dict[str, int] = {}
    for event in events:
        if event.device_type != torch.autograd.DeviceType.CUDA or event.is_user_annotation:
            continue
        seconds[event.name] = seconds.get(event.name, 0.0) + event.time_range.elapsed_us() / 1e6
        launches[event.name] = launches.get(event.name, 0) + 1
    order = sorted(seconds, key=lambda name: -seconds[name])
    return tuple(KernelTime(name=n, seconds=seconds[n], launches=launches[n]) for n in order)


if __name__ == "__main__":
    main(sys.argv[1])

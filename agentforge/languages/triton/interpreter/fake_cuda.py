"""Make torch behave as if a GPU were present; its tensors lie in CPU memory."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

NAME = "NVIDIA H100 80GB HBM3"
CAPABILITY = (9, 0)
PROPERTIES = {
    "name": NAME,
    "major": CAPABILITY[0],
    "minor": CAPABILITY[1],
    "total_memory": 80 << 30,
    "multi_processor_count": 132,
    "max_threads_per_multi_processor": 2048,
    "max_threads_per_block": 1024,
    "shared_memory_per_block": 49152,
    "shared_memory_per_block_optin": 232448,
    "shared_memory_per_multiprocessor": 233472,
    "regs_per_multiprocessor": 65536,
    "warp_size": 32,
    "L2_cache_size": 50 << 20,
    "is_integrated": 0,
    "is_multi_gpu_board": 0,
    "clock_rate": 1980000,
    "memory_clock_rate": 2619000,
    "memory_bus_width": 5120,
}
"""Properties of an H100, under torch's names."""
_GPU = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_NAMED = re.compile(r"cuda(:\d+)?")
_QUERIES: dict[Any, Callable[[torch.Tensor, Any], Any]] = {
    torch.Tensor.is_cuda.__get__: lambda tensor, found: found or tensor.is_cpu,
    torch.Tensor.device.__get__: lambda tensor, found: _GPU if tensor.is_cpu else found,
    torch.Tensor.get_device: lambda tensor, found: 0 if tensor.is_cpu else found,
}
"""Replacements for queries of a tensor, computed from the tensor and the true answer."""
_DEVICE_MOVES: dict[Any, Callable[..., Any]] = {
    torch.Tensor.cuda: lambda tensor, *_, **__: tensor,
    torch.Tensor.pin_memory: lambda tensor, *_, **__: tensor,
    torch.Tensor.record_stream: lambda *_, **__: None,
}
"""Replacements for operations that need a GPU tensor."""


class FakeCudaMode(TorchFunctionMode):
    """Makes CPU tensors claim to be on the GPU, and maps requests for the GPU to the CPU."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        if func in _DEVICE_MOVES:
            return _DEVICE_MOVES[func](*args, **(kwargs or {}))
        found = func(*map(_to_cpu, args), **{k: _to_cpu(v) for k, v in (kwargs or {}).items()})
        return _QUERIES[func](args[0], found) if func in _QUERIES else found


def _to_cpu(value: Any) -> Any:
    """Map a GPU device to the CPU."""
    if isinstance(value, torch.device):
        return _CPU if value.type == "cuda" else value
    if isinstance(value, str) and _NAMED.fullmatch(value):
        return "cpu"
    return value


class Stream:
    """Fake `torch.cuda.Stream`; work completes immediately."""

    cuda_stream = 0
    device = _GPU
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        return None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def wait_stream(self, _: Any) -> None:
        """Return at once: all work is complete."""

    def wait_event(self, _: Any) -> None:
        """Return at once: all work is complete."""

    def synchronize(self) -> None:
        """Return at once: all work is complete."""

    def query(self) -> bool:
        """Return True: all work is complete."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Return an event."""
        return event or Event()


class Event(Stream):
    """Fake `torch.cuda.Event`; no time passes between two events."""

    def record(self, _: Any = None) -> None:
        """Do nothing: the event is complete."""

    def wait(self, _: Any = None) -> None:
        """Return at once: the event is complete."""

    def elapsed_time(self, _: Any) -> float:
        """Return 1 ms, as no time is measured."""
        return 1.0


class Generator(torch.Generator):
    """Draws random numbers for GPU tensors as for CPU tensors."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        """Create a CPU generator for any device."""
        return super().__new__(cls, "cpu")


class Unsimulated(Exception):
    """A kernel needs a GPU: it is neither right nor wrong here."""

    agentforge_code = "unsupported"
    """Code of the error in the worker's reply to the referee."""


class CUDAGraph:
    """What records or replays graphs.

    Raises:
        Unsimulated: always.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise Unsimulated("a CUDA graph cannot be simulated without a GPU")


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


_NOTHING = """synchronize empty_cache set_device set_stream ipc_collect seed seed_all init
reset_peak_memory_stats reset_max_memory_allocated"""
_GRAPHS = "CUDAGraph graph graph_pool_handle make_graphed_callables"
_NVTX = "mark range_push range_pop range_start range_end"
_MEMORY = "memory_allocated max_memory_allocated memory_reserved max_memory_reserved"
_CUDA: dict[str, Any] = {
    "is_available": _always(True),
    "is_initialized": _always(True),
    "is_bf16_supported": _always(True),
    "is_current_stream_capturing": _always(False),
    "device_count": _always(1),
    "current_device": _always(0),
    "get_device_name": _always(NAME),
    "get_device_capability": _always(CAPABILITY),
    "get_device_properties": lambda *_, **__: SimpleNamespace(**PROPERTIES),
    "get_arch_list": _always(["sm_80", "sm_90"]),
    "mem_get_info": _always((70 << 30, 80 << 30)),
    "Stream": Stream,
    "ExternalStream": Stream,
    "Event": Event,
    "current_stream": lambda *_, **__: Stream(),
    "default_stream": lambda *_, **__: Stream(),
    "stream": lambda *_, **__: contextlib.nullcontext(),
    "device": lambda *_, **__: contextlib.nullcontext(),
    "device_of": lambda *_, **__: contextlib.nullcontext(),
    "_DeviceGuard": lambda *_, **__: contextlib.nullcontext(),
    "get_rng_state": lambda *_, **__: torch.get_rng_state(),
    "set_rng_state": lambda state, *_, **__: torch.set_rng_state(state),
    "manual_seed": torch.default_generator.manual_seed,
    "manual_seed_all": torch.default_generator.manual_seed,
    # A separate function for each: torch.compile keeps rules per object.
    **{name: _always(None) for name in _NOTHING.split()},
    **dict.fromkeys(_GRAPHS.split(), CUDAGraph),
    **{name: _always(0) for name in _MEMORY.split()},
}


def install() -> None:
    """Fake the GPU in this thread, from now on."""
    for name, value in _CUDA.items():
        setattr(torch.cuda, name, value)
    for name in _NVTX.split():  # marks for a profiler
        setattr(torch.cuda.nvtx, name, _always(0))
    torch.Generator = Generator
    # Inductor's generated code imports this directly from torch's internals.
    torch._C._cuda_getCurrentRawStream = _always(0)
    torch._C._dynamo.guards._empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cpu
    FakeCudaMode().__enter__()

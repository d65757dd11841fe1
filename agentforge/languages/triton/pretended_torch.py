"""torch as if a GPU were there: its tensors lie in the CPU's memory. Needs only torch.

Files that are written for a GPU ask for it at every turn (`assert x.is_cuda`, `device="cuda"`,
`torch.cuda.get_device_properties`), and are right or wrong for other reasons.
"""

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
"""Of an H100, under the names that torch gives them."""
_GPU = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_NAMED = re.compile(r"cuda(:\d+)?")
_ANSWERS: dict[Any, Callable[[torch.Tensor, Any], Any]] = {
    torch.Tensor.is_cuda.__get__: lambda tensor, found: found or tensor.is_cpu,
    torch.Tensor.device.__get__: lambda tensor, found: _GPU if tensor.is_cpu else found,
    torch.Tensor.get_device: lambda tensor, found: 0 if tensor.is_cpu else found,
}
"""What is asked of a tensor: from the tensor and the true answer."""
_STAYS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.cuda: lambda tensor, *_, **__: tensor,
    torch.Tensor.pin_memory: lambda tensor, *_, **__: tensor,
    torch.Tensor.record_stream: lambda *_, **__: None,
}
"""What is done to a tensor that has to lie on a GPU."""


class OnTheGpu(TorchFunctionMode):
    """Every tensor of the CPU says that it is on the GPU, and whoever asks for the GPU gets the CPU."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        if func in _STAYS:
            return _STAYS[func](*args, **(kwargs or {}))
        found = func(*map(_here, args), **{k: _here(v) for k, v in (kwargs or {}).items()})
        return _ANSWERS[func](args[0], found) if func in _ANSWERS else found


def _here(value: Any) -> Any:
    """The CPU where a GPU is named."""
    if isinstance(value, torch.device):
        return _CPU if value.type == "cuda" else value
    if isinstance(value, str) and _NAMED.fullmatch(value):
        return "cpu"
    return value


class Stream:
    """Of work that is done as soon as it is asked for."""

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
        """Nothing is under way."""

    def wait_event(self, _: Any) -> None:
        """Nothing is under way."""

    def synchronize(self) -> None:
        """Nothing is under way."""

    def query(self) -> bool:
        """Nothing is under way."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """A mark in the stream."""
        return event or Event()


class Event(Stream):
    """A mark in a stream; no time passes between two."""

    def record(self, _: Any = None) -> None:
        """It is reached at once."""

    def wait(self, _: Any = None) -> None:
        """It was reached."""

    def elapsed_time(self, _: Any) -> float:
        """Milliseconds, as long as a call that was not timed."""
        return 1.0


class Generator(torch.Generator):
    """Random numbers for tensors on the GPU are drawn as those on the CPU."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        """On the CPU, whatever is asked for."""
        return super().__new__(cls, "cpu")


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


_NOTHING = """synchronize empty_cache set_device set_stream ipc_collect seed seed_all init
reset_peak_memory_stats reset_max_memory_allocated"""
_MEMORY = "memory_allocated max_memory_allocated memory_reserved max_memory_reserved"
_CUDA: dict[str, Any] = {
    "is_available": _always(True),
    "is_initialized": _always(True),
    "is_bf16_supported": _always(True),
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
    # A function of its own for each: torch.compile keeps rules for them, and one object cannot have two.
    **{name: _always(None) for name in _NOTHING.split()},
    **{name: _always(0) for name in _MEMORY.split()},
}


def install() -> None:
    """Pretend in this thread, from now on."""
    for name, value in _CUDA.items():
        setattr(torch.cuda, name, value)
    torch.Generator = Generator
    # What the text that Inductor writes takes straight from torch's inside.
    torch._C._cuda_getCurrentRawStream = _always(0)
    torch._C._dynamo.guards._empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cpu
    OnTheGpu().__enter__()

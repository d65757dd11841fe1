"""A module `cupy` for processes without a GPU."""

from __future__ import annotations

import functools
import importlib.machinery
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch

from agentforge.languages.triton.interpreter import fake_cuda

from . import program, raw, templates
from .arrays import AddressRecorder, NotEmulated, as_array, from_torch, ndarray

VERSION = "14.2.0"
"""Version of CuPy whose interface this module has."""

_ATTRIBUTES = {
    "ComputeCapabilityMajor": fake_cuda.CAPABILITY[0],
    "ComputeCapabilityMinor": fake_cuda.CAPABILITY[1],
    **{
        name: fake_cuda.PROPERTIES[torchs]
        for name, torchs in (
            ("L2CacheSize", "L2_cache_size"),
            ("MaxRegistersPerMultiprocessor", "regs_per_multiprocessor"),
            ("MaxSharedMemoryPerBlock", "shared_memory_per_block"),
            ("MaxSharedMemoryPerBlockOptin", "shared_memory_per_block_optin"),
            ("MaxSharedMemoryPerMultiprocessor", "shared_memory_per_multiprocessor"),
            ("MaxThreadsPerBlock", "max_threads_per_block"),
            ("MaxThreadsPerMultiProcessor", "max_threads_per_multi_processor"),
            ("MultiProcessorCount", "multi_processor_count"),
            ("WarpSize", "warp_size"),
        )
    },
}
"""An H100's, under CuPy's names."""


def calls() -> dict[str, int]:
    """Number of launches so far, by kernel name."""
    return dict(program.calls)


class _Emulated:
    """An object whose missing attributes need a GPU."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotEmulated(f"cupy.cuda.{type(self).__name__}.{name} needs a GPU to run")


class Stream(_Emulated, fake_cuda.Stream):
    """`cupy.cuda.Stream` and `ExternalStream`; work completes immediately."""

    null: Stream
    ptr = 0

    @classmethod
    def from_external(cls, _: Any) -> Stream:
        """The stream of another library."""
        return cls()

    def use(self) -> Stream:
        """Make it current."""
        return self


Stream.null = Stream()


class Device(_Emulated):
    """`cupy.cuda.Device`."""

    compute_capability = "90"
    attributes = _ATTRIBUTES

    def __init__(self, device: int = 0) -> None:
        self.id = int(device)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def use(self) -> None:
        """Make it current."""

    def synchronize(self) -> None:
        """Return at once: all work is complete."""


class _Module(ModuleType):
    """A module whose missing names are NumPy's, or need a GPU."""

    def __init__(self, name: str, content: dict[str, Any], numpy: bool = False) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        self.__path__: list[str] = []
        self._numpy = numpy
        self.__dict__.update(content)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(np, name, None) if self._numpy else None
        if found is None:
            raise NotEmulated(f"{self.__name__}.{name} needs a GPU to run")
        return _on_arrays(found)


def _on_arrays(function: Any) -> Any:
    """NumPy's function with arrays of this package as results; other values unchanged."""
    if isinstance(function, type | np.ufunc | ModuleType) or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        return found.view(ndarray) if isinstance(found, np.ndarray) else found

    return call


def fuse(*args: Any, **kwargs: Any) -> Any:
    """`cupy.fuse`: NumPy computes one operator after the other."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = kwargs.get("kernel_name") or function.__name__

        @functools.wraps(function)
        def call(*values: Any) -> Any:
            program.calls[name] += 1
            return function(*values) if program.settings()["run"] else values[0]

        return call

    return decorate(args[0]) if args and callable(args[0]) else decorate


def _from_dlpack(value: Any, *_: Any, **__: Any) -> ndarray:
    return from_torch(value) if isinstance(value, torch.Tensor) else np.from_dlpack(value).view(ndarray)


def _asarray(value: Any, dtype: Any = None, **_: Any) -> Any:
    array = as_array(value)
    return array if dtype is None else array.astype(dtype, copy=False)


def install(run: bool) -> None:
    """Put the modules into `sys.modules`, and fake a GPU for torch.

    Args:
        run: False if kernels do nothing.
    """
    program._SETTINGS["run"] = run
    cuda = _Module(
        "cupy.cuda",
        {
            "Stream": Stream,
            "ExternalStream": Stream,
            "Event": fake_cuda.Event,
            "Device": Device,
            "get_current_stream": lambda *_: Stream(),
            "is_available": lambda: True,
        },
    )
    cuda.stream = cuda  # type: ignore[attr-defined]
    content = {
        "__version__": VERSION,
        "ndarray": ndarray,
        "cuda": cuda,
        "RawKernel": raw.RawKernel,
        "RawModule": raw.RawModule,
        "ElementwiseKernel": templates.ElementwiseKernel,
        "ReductionKernel": templates.ReductionKernel,
        "fuse": fuse,
        "from_dlpack": _from_dlpack,
        "fromDlpack": _from_dlpack,
        "asarray": _asarray,
        "ascontiguousarray": lambda value, dtype=None: np.ascontiguousarray(_asarray(value, dtype)).view(
            ndarray
        ),
        "asnumpy": lambda value, *_, **__: np.array(value, subok=False),
    }
    sys.modules |= {"cupy": _Module("cupy", content, numpy=True), "cupy.cuda": cuda, "cupy.cuda.stream": cuda}
    AddressRecorder().__enter__()
    fake_cuda.install()

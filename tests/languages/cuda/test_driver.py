"""Calls to the CUDA driver, recorded by a driver that only notes them."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentforge.languages.cuda.shipped import agentforge_driver as driver
from agentforge.languages.cuda.shipped.agentforge_driver import Gpu
from agentforge.languages.cuda.shipped.agentforge_launches import CudaError, configuration

CONTEXT, MODULE, FUNCTION, STREAM = 11, 22, 33, 44
MOST_SHARED = 227 << 10


def _put(place: Any, value: int) -> int:
    place._obj.value = value
    return 0


class Driver:
    """`libcuda.so.1`, as far as launches need it; keeps the integers behind a launch's arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails = ""
        self.static = 0

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append((name, *(a.value for a in arguments if isinstance(a, ctypes._SimpleCData))))
            return 999 if name == self.fails else self._answer(name, arguments)

        return call

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> int:
        given = {
            "cuDeviceGet": arguments[-1],
            "cuDevicePrimaryCtxRetain": CONTEXT,
            "cuModuleLoadData": MODULE,
            "cuModuleGetFunction": FUNCTION,
            "cuDeviceGetAttribute": MOST_SHARED,
            "cuFuncGetAttribute": self.static,
        }
        if name == "cuModuleGetFunction" and arguments[2] != b"scale":
            return 500
        if name == "cuGetErrorString":
            arguments[1]._obj.value = b"something is wrong"
        elif name in given:
            return _put(arguments[0], given[name])
        elif name == "cuLaunchKernel":
            sizes, pointers = arguments[1:8], arguments[9]
            values = [ctypes.cast(p, ctypes.POINTER(ctypes.c_int64)).contents.value for p in pointers]
            self.calls.append(("launched", *sizes, *values))
        return 0

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(driver, "_driver", lambda: made)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    stream = SimpleNamespace(cuda_stream=STREAM, query=lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    return made


def test_a_launch_enters_torchs_context_and_passes_sizes_stream_and_arguments(library: Driver) -> None:
    gpu = Gpu(b"cubin", 1, ["scale", "declared"])
    library.calls.clear()
    values = [ctypes.c_void_p(0xABC0), ctypes.c_int64(7)]
    gpu.launch("scale", configuration((5, 2), 128, 64), values)
    entered, launched, what = library.calls
    assert entered == ("cuCtxSetCurrent", CONTEXT)
    assert launched == ("cuLaunchKernel", FUNCTION, STREAM)
    assert what == ("launched", 5, 2, 1, 128, 1, 1, 64, 0xABC0, 7)
    with pytest.raises(CudaError, match="declared is declared but not defined"):
        gpu.launch("declared", configuration(1, 1, 0), [])


def test_much_shared_memory_is_asked_for_once_and_bounded_by_the_gpu(library: Driver) -> None:
    gpu = Gpu(b"cubin", 0, ["scale"])
    for _ in range(2):
        gpu.launch("scale", configuration(1, 32, 100 << 10), [])
    assert library.names().count("cuFuncSetAttribute") == 1
    with pytest.raises(
        CudaError, match=f"asks for {228 << 10} bytes .* this GPU allows {MOST_SHARED} per block"
    ):
        gpu.launch("scale", configuration(1, 32, 228 << 10), [])


def test_shared_memory_that_a_kernel_declares_counts_too(library: Driver) -> None:
    library.static = 128
    gpu = Gpu(b"cubin", 0, ["scale"])
    gpu.launch("scale", configuration(1, 32, (48 << 10) - 128), [])
    assert "cuFuncSetAttribute" not in library.names()
    gpu.launch("scale", configuration(1, 32, 48 << 10), [])
    assert library.names().count("cuFuncSetAttribute") == 1
    with pytest.raises(CudaError, match=f"beside the 128 that it declares; this GPU allows {MOST_SHARED}"):
        gpu.launch("scale", configuration(1, 32, MOST_SHARED), [])


def test_a_refused_launch_says_its_sizes_and_the_drivers_words(library: Driver) -> None:
    gpu = Gpu(b"cubin", 0, ["scale"])
    library.fails = "cuLaunchKernel"
    expected = (
        r"launching scale with grid \(1, 1, 1\), block \(32, 1, 1\), shared 0 failed: something is wrong"
    )
    with pytest.raises(CudaError, match=expected):
        gpu.launch("scale", configuration(1, 32, 0), [])

"""Load cubins into a GPU and launch their kernels with the CUDA driver. Ships as `agentforge_driver.py`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

if __package__:
    from agentforge.languages.cuda.compile import nvrtc as _nvrtc
    from agentforge.languages.cuda.shipped.agentforge_launches import Configuration, CudaError
else:  # beside a solution
    import agentforge_nvrtc as _nvrtc  # type: ignore[import-not-found, no-redef]
    from agentforge_launches import (  # type: ignore[import-not-found, no-redef]
        Configuration,
        CudaError,
    )

_WITHOUT_ASKING = 48 << 10
"""Bytes of shared memory per block, static and dynamic together, that need no request."""


def compile_here(source: Path, target: str, flags: Sequence[str]) -> bytes:
    """Compile in this process.

    Raises:
        CudaError: NVRTC is missing, the source does not compile, or the driver is older than the compiler.
    """
    toolkit = _nvrtc.find_toolkit()
    if toolkit is None:
        raise CudaError("NVRTC is not installed; install it with: pip install nvidia-cuda-nvrtc")
    nvrtc = _nvrtc.Nvrtc(toolkit)
    driver = driver_version()
    if driver and driver[0] < nvrtc.version[0]:
        raise CudaError(
            f"the driver supports CUDA {driver[0]}.{driver[1]}, but the compiler is CUDA {nvrtc.version[0]}."
            f"{nvrtc.version[1]}: update the driver, or install an older nvidia-cuda-nvrtc"
        )
    done = nvrtc.compile(source.read_text(), source.name, target, [*flags, f"-I{source.parent}"])
    if not done.cubin:
        raise CudaError(f"{source.name} does not compile for {target}:\n{done.log[-8000:]}")
    return done.cubin


def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaError(f"no NVIDIA driver was found ({error})") from error


def driver_version() -> tuple[int, int] | None:
    """Newest CUDA version that the driver supports, such as (13, 0); None without a driver."""
    try:
        driver = _driver()
    except CudaError:
        return None
    number = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(number))
    return number.value // 1000, number.value % 1000 // 10


_SHARED_OPT_IN = 97
"""CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN."""
_STATIC_SHARED, _MAX_DYNAMIC_SHARED = 1, 8
"""CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


class Gpu:
    """A cubin loaded into one GPU by the driver."""

    def __init__(self, cubin: bytes, index: int, names: Iterable[str]) -> None:
        self._index = index
        self._driver = _driver()
        self._device, self._context, self._module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._static: dict[str, int] = {}
        self._granted: dict[str, int] = {}
        """Bytes of dynamic shared memory that a launch may have, by kernel."""
        with torch.cuda.device(index):
            torch.cuda.current_stream().query()  # initialises CUDA in torch
            self._enter()
            known = "{}.{}".format(*(driver_version() or ("?", "?")))
            self._check(
                self._driver.cuModuleLoadData(ctypes.byref(self._module), cubin),
                f"loading the kernels by a driver of CUDA {known}",
            )
            for name in names:
                function = ctypes.c_void_p()
                code = self._driver.cuModuleGetFunction(ctypes.byref(function), self._module, name.encode())
                if code == 0:
                    self._functions[name] = function
                    static = ctypes.c_int()
                    found = self._driver.cuFuncGetAttribute(ctypes.byref(static), _STATIC_SHARED, function)
                    self._check(found, f"asking for the shared memory of {name}")
                    self._static[name] = static.value
                    self._granted[name] = max(_WITHOUT_ASKING - static.value, 0)

    def _enter(self) -> None:
        """Make torch's context current in this thread: a thread that used only cached memory has none."""
        if not self._context:
            self._driver.cuDeviceGet(ctypes.byref(self._device), self._index)
            retained = self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), self._device)
            self._check(retained, "finding torch's context")
        self._check(self._driver.cuCtxSetCurrent(self._context), "entering torch's context")

    def launch(self, name: str, sizes: Configuration, values: Sequence[Any]) -> None:
        """Launch a kernel on torch's current stream of this GPU."""
        function = self._functions.get(name)
        if function is None:
            raise CudaError(f"{name} is declared but not defined")
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        with torch.cuda.device(self._index):
            self._enter()
            self._grant(name, function, sizes.shared)
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            code = self._driver.cuLaunchKernel(
                function, *sizes.grid, *sizes.block, sizes.shared, stream, pointers, None
            )
        self._check(
            code, f"launching {name} with grid {sizes.grid}, block {sizes.block}, shared {sizes.shared}"
        )

    def _grant(self, name: str, function: ctypes.c_void_p, shared: int) -> None:
        """Request shared memory beyond 48 KiB, as CUDA requires; what a kernel declares counts too."""
        if shared <= self._granted[name]:
            return
        static, most = self._static[name], ctypes.c_int()
        self._driver.cuDeviceGetAttribute(ctypes.byref(most), _SHARED_OPT_IN, self._device)
        if static + shared > most.value:
            declared = f" beside the {static} that it declares" if static else ""
            raise CudaError(
                f"{name} asks for {shared} bytes of shared memory{declared}; "
                f"this GPU allows {most.value} per block"
            )
        self._check(
            self._driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared), "granting shared memory"
        )
        self._granted[name] = shared

    def _check(self, code: int, what: str) -> None:
        if code:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(code, ctypes.byref(text))
            raise CudaError(f"{what} failed: {(text.value or b'').decode() or f'CUDA error {code}'}")

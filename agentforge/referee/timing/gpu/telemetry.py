"""Clocks, temperature, power and throttling of a GPU, by NVML; read, never changed."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from agentforge.schema import FrozenModel

_SM, _MEMORY, _CORE_TEMPERATURE = 1, 2, 0
_REASONS = {
    0x1: "idle", 0x2: "applications' clock setting", 0x4: "power cap", 0x8: "hardware slowdown",
    0x10: "sync boost", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "hardware power brake",
    0x100: "display clock setting",
}  # fmt: skip


class Reading(FrozenModel):
    """One reading of a GPU; None if the driver does not report it."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    watts: float | None = None
    throttled: tuple[str, ...] = ()
    """Why its clocks are lower than they could be."""

    def describe(self) -> str:
        """In words: `1980 MHz, memory 2619 MHz, 61 C, 350 W, held back by power cap`."""
        parts = (
            ("{} MHz", self.sm_mhz), ("memory {} MHz", self.memory_mhz), ("{} C", self.celsius),
            ("{:.0f} W", self.watts), ("held back by {}", " and ".join(self.throttled) or None),
        )  # fmt: skip
        return ", ".join(form.format(value) for form, value in parts if value is not None)


def reasons(mask: int) -> tuple[str, ...]:
    """Names of NVML's clock event reasons."""
    return tuple(name for bit, name in _REASONS.items() if mask & bit)


def first_gpu() -> dict[str, str]:
    """Variables by which CUDA sees the first GPU alone: work on others would go unnoticed, and each takes
    memory and open files."""
    return {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()}


def visible_gpu() -> int | str:
    """The GPU that CUDA calls the first, as NVML knows it: its number on the bus, or its identifier."""
    first = first_gpu()["CUDA_VISIBLE_DEVICES"]
    return first if first.startswith(("GPU-", "MIG-")) else int(first) if first.isdigit() else 0


class Telemetry:
    """NVML of one GPU; gives empty readings if there is no NVML.

    Args:
        gpu: its number in NVML's order, that of the bus, or its identifier.
    """

    def __init__(self, gpu: int | str = 0, library: Any = None) -> None:
        self._gpu = gpu
        self._library = library if library is not None else _open()
        self._handle = ctypes.c_void_p()
        if self._library is not None and (self._library.nvmlInit_v2() or self._find()):
            self._library = None

    def _find(self) -> int:
        place = ctypes.byref(self._handle)
        if isinstance(self._gpu, str):
            return int(self._library.nvmlDeviceGetHandleByUUID(self._gpu.encode(), place))
        return int(self._library.nvmlDeviceGetHandleByIndex_v2(self._gpu, place))

    def uuid(self) -> str:
        """Identifies the GPU, whatever `CUDA_VISIBLE_DEVICES` says; its number without NVML."""
        text = ctypes.create_string_buffer(96)
        if self._library is None or self._library.nvmlDeviceGetUUID(self._handle, text, len(text)):
            return str(self._gpu)
        return text.value.decode()

    def read(self) -> Reading:
        """What the GPU says now."""
        if self._library is None:
            return Reading()
        mask = ctypes.c_ulonglong()
        code = self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle, ctypes.byref(mask))
        milliwatts = self._number("nvmlDeviceGetPowerUsage")
        return Reading(
            sm_mhz=self._number("nvmlDeviceGetClockInfo", _SM),
            memory_mhz=self._number("nvmlDeviceGetClockInfo", _MEMORY),
            celsius=self._number("nvmlDeviceGetTemperature", _CORE_TEMPERATURE),
            watts=None if milliwatts is None else milliwatts / 1e3,
            throttled=reasons(0 if code else mask.value),
        )

    def memory(self) -> tuple[int, int] | None:
        """Bytes of the GPU's memory that are free, and all of them; None without NVML."""
        found = (ctypes.c_ulonglong * 3)()  # nvmlMemory_t: total, free, used
        if self._library is None or self._library.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(found)):
            return None
        return int(found[1]), int(found[0])

    def _number(self, function: str, *arguments: int) -> int | None:
        value = ctypes.c_uint()
        code = getattr(self._library, function)(self._handle, *arguments, ctypes.byref(value))
        return None if code else value.value


def _open() -> Any:
    try:
        return ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None

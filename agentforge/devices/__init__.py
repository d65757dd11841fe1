"""Devices: hardware facts, toolchains and measured rooflines."""

from ._base import Device, DeviceSpec, Roofline, detect, devices
from .cpu import cores, vector_bits, with_threads
from .fallbacks import MEANING, Fallback, with_fallbacks
from .roofline import cached_roofline, measure_roofline
from .toolchain import gpu_present, package_version, tool_version

__all__ = [
    "MEANING",
    "Device",
    "DeviceSpec",
    "Fallback",
    "Roofline",
    "cached_roofline",
    "cores",
    "detect",
    "devices",
    "gpu_present",
    "measure_roofline",
    "package_version",
    "tool_version",
    "vector_bits",
    "with_fallbacks",
    "with_threads",
]

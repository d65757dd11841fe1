"""What the hardware is and can do."""

from ._base import DeviceSpec, Roofline, detect, devices
from .roofline import cached_roofline, measure_roofline
from .toolchain import gpu_present, package_version, tool_version

__all__ = [
    "DeviceSpec",
    "Roofline",
    "cached_roofline",
    "detect",
    "devices",
    "gpu_present",
    "measure_roofline",
    "package_version",
    "tool_version",
]

"""What the hardware is and can do."""

from ._base import DeviceSpec, Roofline, detect, devices
from .roofline import measure_roofline
from .toolchain import gpu_present, tool_version

__all__ = [
    "DeviceSpec",
    "Roofline",
    "detect",
    "devices",
    "gpu_present",
    "measure_roofline",
    "tool_version",
]

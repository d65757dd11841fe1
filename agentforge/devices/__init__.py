"""What the hardware is and can do."""

from ._base import DeviceSpec, Roofline

__all__ = ["DeviceSpec", "Roofline"]

"""Timing on an NVIDIA GPU: events and clock, a cold L2, inputs in turn, one user of a GPU at a time."""

from .compare import GpuTimes, Mode, compare
from .device import Gpu, TorchGpu, graphed, rotations
from .lock import gpu_lock
from .telemetry import Reading, Telemetry

__all__ = [
    "Gpu",
    "GpuTimes",
    "Mode",
    "Reading",
    "Telemetry",
    "TorchGpu",
    "compare",
    "gpu_lock",
    "graphed",
    "rotations",
]

"""A device that is on every machine and the same on each: tests of everything above it."""

from __future__ import annotations

from ._base import DeviceSpec, Roofline


def detect_null() -> DeviceSpec:
    """The null device: four threads and caches of 32 KiB, 1 MiB and 32 MiB."""
    return DeviceSpec(
        kind="null",
        name="null device",
        architecture="null",
        threads=4,
        memory_bytes=8 << 30,
        cache_bytes=(32 << 10, 1 << 20, 32 << 20),
        toolchain={"g++": "12.2.0"},
    )


def null_roofline() -> Roofline:
    """Round numbers to reckon with: 100 GB/s, 1 TFLOP/s."""
    return Roofline(
        bandwidth=1e11,
        peak_flops={"float32": 1e12, "float64": 5e11, "bfloat16": 2e12},
        cache_bandwidth=4e11,
        call_overhead_s=1e-6,
    )

"""Limits of a multiprocessor by target, and the occupancy of a kernel.

From "Technical Specifications per Compute Capability" in the CUDA programming guide, rounded as in the
occupancy calculator.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentforge.schema import UsageError

_WARP = 32
_WARP_GRANULARITY = 4
"""Warps of a block are distributed in turn to a multiprocessor's four schedulers."""
_REGISTER_UNIT = 256
_SHARED_UNIT = 128
_SHARED_RESERVED = 1024
"""Bytes of shared memory that the system reserves per block (compute capability 8 and later)."""


@dataclass(frozen=True)
class TargetLimits:
    """One multiprocessor of a compute capability."""

    name: str
    warps: int
    blocks: int
    shared_bytes: int
    """For all blocks together."""
    shared_bytes_block: int
    """Maximum per block."""
    registers: int = 65536
    threads_block: int = 1024
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)

    @property
    def capability(self) -> int:
        """90 for `sm_90`."""
        return int(self.name.removeprefix("sm_"))


TARGETS: dict[str, TargetLimits] = {
    limits.name: limits
    for limits in (
        TargetLimits("sm_80", warps=64, blocks=32, shared_bytes=164 << 10, shared_bytes_block=163 << 10),
        TargetLimits("sm_86", warps=48, blocks=16, shared_bytes=100 << 10, shared_bytes_block=99 << 10),
        TargetLimits("sm_89", warps=48, blocks=24, shared_bytes=100 << 10, shared_bytes_block=99 << 10),
        TargetLimits("sm_90", warps=64, blocks=32, shared_bytes=228 << 10, shared_bytes_block=227 << 10),
        TargetLimits("sm_100", warps=64, blocks=32, shared_bytes=228 << 10, shared_bytes_block=227 << 10),
        TargetLimits("sm_103", warps=64, blocks=32, shared_bytes=228 << 10, shared_bytes_block=227 << 10),
        TargetLimits("sm_110", warps=48, blocks=24, shared_bytes=228 << 10, shared_bytes_block=227 << 10),
        TargetLimits("sm_120", warps=48, blocks=24, shared_bytes=100 << 10, shared_bytes_block=99 << 10),
        TargetLimits("sm_121", warps=48, blocks=24, shared_bytes=100 << 10, shared_bytes_block=99 << 10),
    )
}
"""Targets that kernels can be compiled for ahead of time."""


def target_limits(name: str) -> TargetLimits:
    """The limits of `sm_90` or `sm_90a`.

    Raises:
        UsageError: the target is unknown.
    """
    limits = TARGETS.get(name.rstrip("af"))
    if limits is None:
        raise UsageError(f"unknown target {name!r}: choose one of {', '.join(TARGETS)}")
    return limits


def occupancy(target: str, *, threads: int, registers: int, shared_bytes: int) -> float:
    """Resident warps divided by the multiprocessor's maximum; 0 if the kernel cannot be launched.

    Args:
        threads: per block.
        registers: per thread.
        shared_bytes: per block, static and dynamic.

    Raises:
        UsageError: the target is unknown.
    """
    limits = target_limits(target)
    if not 0 < threads <= limits.threads_block or shared_bytes > limits.shared_bytes_block:
        return 0.0
    warps = -(-threads // _WARP)
    by_warps = limits.warps // warps
    by_registers = limits.blocks
    if registers:
        of_a_warp = _round_up(registers * _WARP, _REGISTER_UNIT)
        fitting = limits.registers // of_a_warp // _WARP_GRANULARITY * _WARP_GRANULARITY
        by_registers = fitting // warps
    shared = _round_up(shared_bytes + _SHARED_RESERVED, _SHARED_UNIT)
    blocks = min(limits.blocks, by_warps, by_registers, limits.shared_bytes // shared)
    return blocks * warps / limits.warps


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit

"""`ResourceUsage`: what one compiled GPU kernel takes of a multiprocessor."""

from __future__ import annotations

from pydantic import Field

from ._base import FrozenModel, NonEmptyString


class ResourceUsage(FrozenModel):
    """What the assembler says of one kernel for one target; needs no GPU."""

    kernel: NonEmptyString
    """Name, with its compile-time parameters where several variants were compiled."""
    target: NonEmptyString
    """`sm_80`, `sm_90`, ..."""
    registers: int = Field(ge=0)
    """Of each thread."""
    shared_bytes: int = Field(default=0, ge=0)
    """Of a block, static and dynamic as far as the dynamic part is known."""
    spill_store_bytes: int = Field(default=0, ge=0)
    """Bytes of each thread that are written to local memory because registers ran out."""
    spill_load_bytes: int = Field(default=0, ge=0)
    """Bytes of each thread that are read back from there."""
    threads: int = Field(default=0, ge=0)
    """Of a block, as it was compiled or launched; 0 where unknown."""
    occupancy: float | None = Field(default=None, ge=0, le=1)
    """Warps that fit on a multiprocessor / warps that it can hold; None where threads are unknown."""

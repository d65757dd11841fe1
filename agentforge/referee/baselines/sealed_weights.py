"""The reference's weights and init arguments as candidates get them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..workers.memory.shared_memory import Block


@dataclass
class Weights:
    """The reference's weights and init arguments, sealed: a process that maps them can only read."""

    block: Block
    init: Any
    state: dict[str, Any]
    seed: int

    def __post_init__(self) -> None:
        self._reader = Path(f"/proc/self/fd/{self.block.fd}").open("rb", buffering=0)  # noqa: SIM115

    def read_only(self) -> int:
        """A descriptor that cannot be written through; the caller closes it.

        Of the one that was opened first: a candidate under our user id could forbid opening it again.
        """
        return os.dup(self._reader.fileno())

    def close(self) -> None:
        """Give the memory back."""
        self._reader.close()
        self.block.close()

"""The reference's weights and init arguments as candidates get them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..workers.memory.shared_memory import Block, Layout, aligned


@dataclass
class Weights:
    """The reference's weights and init arguments, sealed: a process that maps them can only read."""

    block: Block
    init: Any
    state: dict[str, Any]
    buffers: list[str]
    """Keys of `state` that are no parameters: training leaves them."""
    trained: list[str]
    """Keys of `state` that training changes, each by itself."""
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


class Placer:
    """Gives tensors their places in a block, one after the other."""

    def __init__(self) -> None:
        self.nbytes = 0
        self.tensors: list[tuple[Layout, torch.Tensor]] = []

    def __call__(self, tensor: torch.Tensor) -> Layout:
        layout = Layout.of(tensor, self.nbytes)
        self.nbytes += aligned(layout.nbytes)
        self.tensors.append((layout, tensor))
        return layout

    def write(self, block: Block) -> None:
        """Copy the tensors to their places."""
        for layout, tensor in self.tensors:
            block.tensor(layout).copy_(tensor.detach())

"""A started solution."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentforge.isolation.scratch import remove

from ..workers.client import WorkerClient
from .jit_cache import CompiledCode


@dataclass
class Candidate:
    """A solution that runs in a worker."""

    client: WorkerClient
    scratch: Path
    compiled: CompiledCode | None = None
    """Receives its just-in-time compiled code, for the next process of the same solution."""
    weights: str = ""
    """How it got its weights: `seed`, `state_dict` or `partly`."""

    def __post_init__(self) -> None:
        if self.compiled is not None:
            self.compiled.follow(self.pass_on)

    def pass_on(self) -> None:
        """Give the next process of the same solution what it has compiled, if it still lives."""
        if self.compiled is not None and self.client.worker.running:
            self.client.worker.stop()
            self.compiled.collect(self.client.worker.pid, self.scratch)

    def close(self) -> None:
        """Kill it and remove what it wrote."""
        self.pass_on()
        self.client.close()
        remove(self.scratch)

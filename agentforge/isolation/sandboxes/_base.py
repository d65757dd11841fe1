"""The contract of a sandbox, which confines a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from agentforge.registry import Availability, Registry


@dataclass(frozen=True)
class Limits:
    """Limits on one candidate process and its descendants."""

    memory_bytes: int
    """Growth of memory of its own beyond what the worker starts with, in each process."""
    total_bytes: int = 0
    """Memory of all its processes together, shared memory and files in a tmpfs included; 0 for no limit."""
    processes: int = 256
    """Processes and threads."""
    file_bytes: int = 1 << 28
    """Largest file, and the size of the scratch folder if it is a file system of its own."""
    cpu_seconds: int = 3600
    open_files: int = 1024
    """What any program is given by default: a GPU's driver and libraries open some hundreds."""


@dataclass(frozen=True)
class Box:
    """What a confined process may see and write."""

    scratch: Path
    """Existing folder; its content is discarded."""
    readable: tuple[Path, ...] = ()
    """Visible beside the system, the interpreter and its packages."""
    writable: tuple[Path, ...] = ()
    """Existing folders whose content stays: a build's folder."""
    devices: tuple[Path, ...] = ()
    """Device files that it may use beside the harmless ones, and what it may read of them below /sys."""
    loopback: bool = False
    """Its processes may talk to each other by `localhost`, if they have a network of their own."""
    filtered: bool = True
    """System calls are filtered. A GPU whose driver needs one of those does without the filter."""
    identity: int = 0
    """User id to change to if the caller is root; 0 keeps the caller's."""

    def to_json(self) -> dict[str, Any]:
        """For the process that makes it again by `from_json`."""
        fields = {k: [*map(str, v)] if isinstance(v, tuple) else v for k, v in vars(self).items()}
        return {**fields, "scratch": str(self.scratch)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """What `to_json` described."""
        fields: dict[str, Any] = {
            k: tuple(map(Path, v)) if isinstance(v, list) else v for k, v in value.items()
        }
        return cls(**{**fields, "scratch": Path(value["scratch"])})


class Sandbox(Protocol):
    """Confines untrusted processes: no network, writes only in a scratch folder, nothing of the parent's.

    `enter` is the first act of a freshly forked, single-threaded child. It may fork: it returns in the
    confined process, and the original one ends with its exit code (128 + signal).
    """

    name: str
    # A sandbox whose processes cannot name others, by a process namespace, says `hides_processes = True`.
    # A sandbox with options also keeps them in an attribute `options`, a JSON-able dict: the process that
    # forks the workers makes its own object from them.

    def available(self) -> Availability:
        """Whether it works on this machine (tried for real once, then remembered)."""
        ...

    def enter(self, limits: Limits, *, keep_fds: Sequence[int], box: Box) -> None:
        """Confine the calling process; descriptors other than 0-2 and `keep_fds` are closed.

        Raises:
            OSError: it could not be confined; the caller must exit.
        """
        ...


sandboxes: Registry[Sandbox] = Registry(
    "sandboxes",
    {
        "namespaces": "agentforge.isolation.sandboxes.namespaces:Namespaces",
        "rlimits": "agentforge.isolation.sandboxes.rlimits:Rlimits",
    },
)
"""All sandboxes, the strongest first."""

"""The contract of a sandbox: what holds a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from agentforge.languages import Availability, CommandResult
from agentforge.registry import Registry
from agentforge.schema import Definition, Evaluation, Level, Solution, Workload


@dataclass(frozen=True)
class Limits:
    """Limits on one candidate process and its descendants."""

    memory_bytes: int
    """Address-space growth beyond what the worker starts with."""
    processes: int = 256
    """Processes and threads."""
    file_bytes: int = 1 << 28
    """Largest file, and the size of the scratch folder where that is a file system of its own."""
    cpu_seconds: int = 3600
    open_files: int = 1024
    """What any program is given by default: a GPU's driver and libraries open some hundreds."""


@dataclass(frozen=True)
class Box:
    """What a confined process may see and write."""

    scratch: Path
    """Existing folder; what is written there is thrown away."""
    readable: tuple[Path, ...] = ()
    """Visible beside the system, the interpreter and its packages."""
    writable: tuple[Path, ...] = ()
    """Existing folders whose content stays: a build's folder."""
    devices: tuple[Path, ...] = ()
    """Device files that it may use beside the harmless ones, and what it may read of them below /sys."""
    loopback: bool = False
    """Its processes may talk to each other by `localhost`, where the network is their own."""
    identity: int = 0
    """User id to change to where the caller may (it is root); 0 keeps the caller's."""


class Sandbox(Protocol):
    """Holds untrusted processes: no network, writes only in a scratch folder, nothing of the parent's.

    `wrap` turns a command into one that runs inside: the forkserver is started so. `enter` is called in a
    freshly forked, single-threaded child, as its first act, for what can only be done from within
    (namespaces, mounts, rlimits, another user, closed descriptors). It may fork: it returns in the process
    that is confined, and whoever waits for the original process sees that one's exit code (128 + signal).
    """

    name: str

    def available(self) -> Availability:
        """Whether it works on this machine (tried for real once, then remembered)."""
        ...

    def wrap(
        self, argv: Sequence[str], *, scratch: Path, readable: Sequence[Path], env: Mapping[str, str]
    ) -> list[str]:
        """The command that runs `argv` inside, with `scratch` writable and `readable` visible."""
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
        "bubblewrap": "agentforge.harness.sandbox_bubblewrap:Bubblewrap",
        "namespaces": "agentforge.harness.sandbox_namespaces:Namespaces",
        "rlimits": "agentforge.harness.sandbox_rlimits:Rlimits",
    },
)
"""All sandboxes, the strongest first."""


class Evaluator(Protocol):
    """The referee, as those who have solutions judged see it."""

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level,
        sol_s: float | None = None,
    ) -> Evaluation:
        """Judge one solution; a candidate's failure is data.

        Raises:
            HarnessError: the referee itself failed.
        """
        ...


class Subject(Protocol):
    """A solution that other programs may run: in the sandbox, with the device, on inputs of the referee's."""

    @property
    def results(self) -> Path:
        """Folder that the programs may write to. Nothing in it can be trusted."""
        ...

    def command(self, *arguments: str) -> list[str]:
        """The process that runs the solution; with a file as argument it writes kernel times there."""
        ...

    def run(self, argv: Sequence[str], *, timeout_s: float) -> CommandResult:
        """Run a program in the sandbox; never raises for what it does."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else times or profiles on the device meanwhile."""
        ...


@runtime_checkable
class Presenter(Protocol):
    """An evaluator that can show a solution to a profiler."""

    def subject(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        programs: Sequence[Path] = (),
    ) -> AbstractContextManager[Subject]:
        """Make a solution that passed ready to be run; `programs` are files and folders to be seen inside.

        Raises:
            HarnessError: it cannot be made ready.
        """
        ...


@runtime_checkable
class Builder(Protocol):
    """An evaluator that can compile ahead of time."""

    def build(self, solution: Solution) -> None:
        """Compile a solution into the cache. Thread-safe; what fails is said by its evaluation."""
        ...

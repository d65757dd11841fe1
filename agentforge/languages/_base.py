"""The contract of a language: from a `Solution` to something a worker can import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agentforge.registry import Registry
from agentforge.schema import Diagnostic, Finding, Metric, ResourceUsage, Solution

PRELUDE = "agentforge_prelude.py"
"""A file that a language may write beside the entry file; whoever runs the solution imports it first.

It may define `calls() -> dict[str, int]`, launches of each own kernel so far, and `launches() -> list[dict]`,
how they were launched, for `AheadOfTimeLanguage.compile_launched`."""


@dataclass(frozen=True)
class CommandResult:
    """Outcome of a finished or killed command."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False


class CommandRunner(Protocol):
    """Runs a compiler on untrusted source: the referee passes its sandbox, everyone else a plain one."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run `argv` in `cwd`, which it may write to; never raises for what the command does."""
        ...


@dataclass(frozen=True)
class BuildResult:
    """Outcome of a build; a failure is data."""

    ok: bool
    seconds: float
    cached: bool = False
    """True where the built object came from the cache."""
    timed_out: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    metrics: tuple[Metric, ...] = ()
    """Resource usage as far as the compiler tells: vectorised loops, registers, spills."""
    findings: tuple[Finding, ...] = ()
    """What the compiler says about lines: loops that it vectorised, or why it did not."""
    resources: tuple[ResourceUsage, ...] = ()
    """Of GPU kernels that could be compiled ahead of time, by kernel and target."""
    untimed: str = ""
    """Why nothing can be said of the speed of what was built, in one sentence (it is simulated, as there is
    no GPU here); empty where it runs as it would in earnest."""
    unjudged: str = ""
    """Why this machine can say neither that what was built is right nor that it is wrong, in one sentence."""
    log: str = ""
    files: tuple[Path, ...] = field(default=())
    """Built objects, inside the folder."""


@dataclass(frozen=True)
class Availability:
    """Whether something works on this machine."""

    ok: bool
    detail: str
    """Version when it works; otherwise what is missing and how to get it."""


class Language(Protocol):
    """A way from source text to a callable. Stateless and thread-safe.

    `build` writes the solution's sources and whatever they need at run time into `folder`, and builds
    them there, so that a process that has `folder` first on `sys.path` can import the entry file. It
    compiles untrusted source only through `run`. Built objects are cached under `cache` by a hash of
    the sources, flags, compiler version and machine.
    """

    name: str

    def available(self) -> Availability:
        """Whether this machine can build it; at most 50 ms, no side effect."""
        ...

    def build(
        self,
        solution: Solution,
        folder: Path,
        *,
        cache: Path,
        run: CommandRunner,
        timeout_s: float,
        device: str = "cpu",
    ) -> BuildResult:
        """Write and build `solution` in the existing, empty `folder`, for a kind of device that will run it.

        Raises:
            MachineError: the toolchain is missing.
        """
        ...


@runtime_checkable
class AheadOfTimeLanguage(Protocol):
    """A language that can compile for devices that are not there, once kernels were seen to be launched."""

    def compile_launched(
        self,
        solution: Solution,
        folder: Path,
        launches: Sequence[Mapping[str, Any]],
        *,
        cache: Path,
        run: CommandRunner,
        timeout_s: float,
    ) -> BuildResult:
        """Compile what was launched, as it was launched.

        Args:
            solution: what was built.
            folder: where it was built.
            launches: as the prelude's `launches()` says; from an untrusted process.
            cache: as for `build`.
            run: as for `build`.
            timeout_s: for all of it.

        Returns:
            Diagnostics and `resources`; not `ok` where a launch compiles for none of the targets.
        """
        ...


languages: Registry[Language] = Registry(
    "languages",
    {
        "cpp": "agentforge.languages.cpp:Cpp",
        "cuda": "agentforge.languages.cuda:Cuda",
        "python": "agentforge.languages.python:Python",
        "triton": "agentforge.languages.triton:Triton",
    },
)
"""All languages, by name."""

"""Contract of a language: turns a `Solution` into something that a worker can import."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agentforge.registry import Availability, Registry
from agentforge.schema import Diagnostic, Finding, Metric, ResourceUsage, Solution

from .info import LanguageInfo

PRELUDE = "agentforge_prelude.py"
"""File that a language may write beside the entry file; the process that runs the solution imports it first.

It may define `calls() -> dict[str, int]`, the launches of each own kernel so far, and
`launches() -> list[dict]`, their descriptions for `AheadOfTimeLanguage.compile_launched`.
"""


@dataclass(frozen=True)
class CommandResult:
    """Outcome of a finished or killed command."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False


class CommandRunner(Protocol):
    """Runs a compiler on untrusted source: in the referee's sandbox, or without a sandbox elsewhere."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run `argv` in `cwd`; never raises for failures of the command.

        Args:
            cwd: it may write to this folder, so no solution runs from it afterwards.
        """
        ...


@dataclass(frozen=True)
class BuildResult:
    """Outcome of a build or of one of its steps; a failure is data, not an exception."""

    ok: bool
    seconds: float = 0.0
    cached: bool = False
    """True if the built object came from the cache."""
    timed_out: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    metrics: tuple[Metric, ...] = ()
    """Resource usage as reported by the compiler: vectorised loops, registers, spills."""
    findings: tuple[Finding, ...] = ()
    """The compiler's messages about lines: loops that it vectorised, or why it did not."""
    resources: tuple[ResourceUsage, ...] = ()
    """Usage of GPU kernels compiled ahead of time, by kernel and target."""
    untimed: str = ""
    """Reason why timings are meaningless, in one sentence (for example emulation); empty for real builds."""
    unjudged: str = ""
    """Reason why this machine cannot judge correctness either, in one sentence."""
    log: str = ""
    files: tuple[Path, ...] = ()
    """Built objects, inside the folder."""

    def also(self, *, untimed: str = "", unjudged: str = "") -> BuildResult:
        """Add a reason why speed, or correctness too, cannot be judged on this machine."""
        return replace(self, untimed=untimed or self.untimed, unjudged=unjudged or self.unjudged)

    def as_notes(self) -> BuildResult:
        """The same step if it decides nothing: why it failed, or cannot be judged, becomes notes."""
        if self.ok and not self.unjudged:
            return self
        reasons = [Diagnostic(message=self.unjudged)] if self.unjudged else []
        notes = (
            d.model_copy(update={"severity": "note", "message": f"not compiled ahead: {d.message}"})
            for d in (*reasons, *self.diagnostics)
        )
        return replace(self, ok=True, timed_out=False, unjudged="", diagnostics=tuple(notes))

    def joined(self, other: BuildResult) -> BuildResult:
        """Combine two steps; `other` comes second."""
        built = [step for step in (self, other) if step.files]
        return BuildResult(
            ok=self.ok and other.ok,
            cached=bool(built) and all(step.cached for step in built),
            timed_out=self.timed_out or other.timed_out,
            diagnostics=self.diagnostics + other.diagnostics,
            metrics=self.metrics + other.metrics,
            findings=self.findings + other.findings,
            resources=self.resources + other.resources,
            untimed=self.untimed or other.untimed,
            unjudged=self.unjudged or other.unjudged,
            files=self.files + other.files,
        )

    def since(self, start: float) -> BuildResult:
        """The result of a whole build that began at `start` (`time.monotonic`)."""
        return replace(
            self,
            seconds=time.monotonic() - start,
            cached=self.ok and self.cached,
            log="\n".join(map(_line, self.diagnostics)),
            files=self.files if self.ok else (),
        )


def _line(found: Diagnostic) -> str:
    """A diagnostic in a compiler's format."""
    place = f"{found.file}:{found.line}:{found.column}: " if found.file else ""
    return f"{place}{found.severity}: {found.message}"


class Language(Protocol):
    """Turns source text into a callable. Stateless and thread-safe.

    `build` writes the sources and their run-time modules into `folder` and builds them there; a process with
    `folder` first on `sys.path` can import the entry file. Untrusted source is compiled only through `run`.
    Objects are cached under `cache` by a hash of sources, flags, compiler version and machine.
    """

    name: str
    info: LanguageInfo
    """Facts that other packages need before anything is built."""

    def available(self) -> Availability:
        """Report whether this machine can build it; takes at most 50 ms and has no side effects."""
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
        """Write and build `solution` in the existing, empty `folder`, for the kind of device that will run
        it.

        Raises:
            MachineError: the toolchain is missing.
        """
        ...


@runtime_checkable
class AheadOfTimeLanguage(Protocol):
    """A language that can compile observed kernel launches for GPUs that are not present."""

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
        """Compile kernels as they were launched.

        Args:
            folder: for temporary files.
            launches: descriptions from the prelude's `launches()`, an untrusted process.
            timeout_s: for the whole call, in seconds.

        Returns:
            Diagnostics and `resources`; not `ok` if a launch compiles for none of the targets.
        """
        ...


@runtime_checkable
class AblatableLanguage(Protocol):
    """A language that can take the work out of its own kernels.

    If a copy with empty kernels still gives the right output, the kernels did not compute it. Exported
    functions of shared objects, `@jit` functions and CUDA kernels are emptied without the language's help.
    """

    def empty_kernels(self, folder: Path) -> list[str]:
        """Let every own kernel of the solution built in `folder` return at once, in place; their names."""
        ...


languages: Registry[Language] = Registry(
    "languages",
    {
        "cupy": "agentforge.languages.cupy:Cupy",
        "cuda": "agentforge.languages.cuda:Cuda",
        "cpp": "agentforge.languages.cpp:Cpp",
        "triton": "agentforge.languages.triton:Triton",
        "python": "agentforge.languages.python.language:Python",
    },
)
"""All languages. A solution without a manifest is in the first that claims it; a model with kernels in
several languages is built by the first of them."""

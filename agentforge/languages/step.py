"""`BuildStep`: the result of one step of a build; steps add up to a `BuildResult`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from agentforge.schema import Diagnostic, Finding, Metric, ResourceUsage

from ._base import BuildResult


@dataclass(frozen=True)
class BuildStep:
    """Outcome of one step, for example of compiling for a GPU or for the emulator."""

    ok: bool
    diagnostics: tuple[Diagnostic, ...] = ()
    metrics: tuple[Metric, ...] = ()
    resources: tuple[ResourceUsage, ...] = ()
    files: tuple[Path, ...] = ()
    cached: bool = False
    """True if everything came from the cache."""
    timed_out: bool = False
    untimed: str = ""
    unjudged: str = ""
    findings: tuple[Finding, ...] = ()

    def also(self, *, untimed: str = "", unjudged: str = "") -> BuildStep:
        """Add a reason why speed, or correctness too, cannot be judged on this machine."""
        return replace(self, untimed=untimed or self.untimed, unjudged=unjudged or self.unjudged)

    def joined(self, other: BuildStep) -> BuildStep:
        """Combine both steps; `other` comes second."""
        built = [p for p in (self, other) if p.files]
        return BuildStep(
            self.ok and other.ok,
            self.diagnostics + other.diagnostics,
            self.metrics + other.metrics,
            self.resources + other.resources,
            self.files + other.files,
            bool(built) and all(p.cached for p in built),
            self.timed_out or other.timed_out,
            self.untimed or other.untimed,
            self.unjudged or other.unjudged,
            self.findings + other.findings,
        )

    def result(self, start: float) -> BuildResult:
        """Convert to a `BuildResult` of a build that began at `start` (`time.monotonic`)."""
        return BuildResult(
            ok=self.ok,
            seconds=time.monotonic() - start,
            cached=self.ok and self.cached,
            timed_out=self.timed_out,
            diagnostics=self.diagnostics,
            metrics=self.metrics,
            findings=self.findings,
            resources=self.resources,
            untimed=self.untimed,
            unjudged=self.unjudged,
            log=render(self.diagnostics),
            files=self.files if self.ok else (),
        )


def timed_out(what: str, file: str = "") -> BuildStep:
    """The result of a compiler that did not finish in time."""
    message = Diagnostic(message=f"compiling {what} took longer than the time-out", file=file)
    return BuildStep(False, (message,), timed_out=True)


def render(diagnostics: tuple[Diagnostic, ...]) -> str:
    """One line per diagnostic, in a compiler's format."""
    return "\n".join(
        f"{d.file}:{d.line}:{d.column}: {d.severity}: {d.message}" if d.file else f"{d.severity}: {d.message}"
        for d in diagnostics
    )

"""Build a solution's kernels for the emulator."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentforge.languages._base import CommandRunner
from agentforge.languages.cpp import runtime as cpp
from agentforge.languages.cpp.cache import BuildRecord, ObjectCache
from agentforge.languages.cpp.diagnostics import parse_diagnostics
from agentforge.languages.cpp.language import compiler_version
from agentforge.schema import Diagnostic, Solution, content_hash

from . import emulate, runtime
from . import source as text
from .part import Part, timed_out

_EMULATOR = ".emulator"
"""Name of our own copy of the emulator; no file of a solution is called so."""


@dataclass(frozen=True)
class EmulatorBuild:
    """One shared object beside each `.cu` of a solution that was written to `folder`."""

    solution: Solution
    folder: Path
    cache: Path
    run: CommandRunner
    deadline: float

    def build(self) -> Part:
        """Compile what the cache does not have."""
        files = {f.path: f.content for f in self.solution.sources}
        objects = ObjectCache(self.cache / "cuda")
        part = Part(True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=self.folder) as scratch:
            # A compiler in a sandbox sees the solution's folder, and nothing of this package.
            shutil.copytree(emulate.FOLDER, Path(scratch) / _EMULATOR)
            for name in sorted(n for n in files if n.endswith(text.SOURCES)):
                source = self.folder / name
                flags = runtime.compiler_flags(cpp.settings(source)[0])
                target = source.parent / runtime.object_name(source, flags, "cpu.so")
                part = part.joined(self._one(name, files, target, objects, Path(scratch)))
        return part

    def _one(
        self, name: str, files: Mapping[str, str], target: Path, objects: ObjectCache, scratch: Path
    ) -> Part:
        relevant = {n: c for n, c in files.items() if n.endswith((*text.SOURCES, *text.HEADERS))}
        key = content_hash([name, relevant, emulate.emulator_hash(), compiler_version()], length=40)
        if objects.fetch(key, target) is not None:
            return Part(True, files=(target,), cached=True)
        scheduler = self._scheduler(objects, scratch)
        if isinstance(scheduler, Part):
            return scheduler
        self._write(relevant, name, scratch)
        built = scratch / target.name
        command = emulate.kernel_command(
            scratch / _EMULATOR,
            str(scratch / name),
            str(scheduler),
            str(built),
            str(scratch),
            text.checks_races(relevant),
        )
        done = self.run(command, cwd=scratch, timeout_s=self._left())
        if done.timed_out:
            return timed_out(f"{name} for the emulator", name)
        if done.returncode or not built.is_file():
            return self._failed(name, done.stderr + done.stdout)
        objects.store(key, built, BuildRecord())
        built.replace(target)
        return Part(True, files=(target,))

    def _scheduler(self, objects: ObjectCache, scratch: Path) -> Path | Part:
        """The scheduler's object file, the same for every kernel."""
        place = scratch / "scheduler.o"
        if place.is_file():
            return place
        key = content_hash(["scheduler", emulate.emulator_hash(), compiler_version()], length=40)
        if objects.fetch(key, place) is not None:
            return place
        done = self.run(
            emulate.scheduler_command(scratch / _EMULATOR, str(place)),
            cwd=self.folder,
            timeout_s=self._left(),
        )
        if done.timed_out:
            return timed_out("the emulator")
        if done.returncode:
            message = f"the emulator does not compile: {(done.stderr + done.stdout)[-1000:]}"
            return Part(False, (Diagnostic(message=message),))
        objects.store(key, place, BuildRecord())
        return place

    def _write(self, files: Mapping[str, str], name: str, scratch: Path) -> None:
        for path, content in files.items():
            kernels = [k for k, p in runtime.parse_kernels(content).items() if not p.problem]
            place = scratch / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text.for_cpu(content, path, kernels if path == name else []))

    def _failed(self, name: str, said: str) -> Part:
        """A CUDA compiler takes it and the emulator does not: the limit is the emulator's."""
        errors = [d for d in parse_diagnostics(said) if d.severity == "error"]
        first = errors[0].message if errors else said.strip()[-300:]
        where = f"{errors[0].file}:{errors[0].line}" if errors else name
        return Part(True, unjudged=f"the emulator on the CPU cannot compile {where}: {first}")

    def _left(self) -> float:
        return max(0.01, self.deadline - time.monotonic())

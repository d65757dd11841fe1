"""Build a solution's kernels for the emulator."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from agentforge.languages._base import CommandRunner
from agentforge.languages.cpp import runtime as cpp
from agentforge.languages.cpp.cache import BuildRecord, ObjectCache
from agentforge.languages.cpp.diagnostics import parse_diagnostics
from agentforge.languages.cpp.language import compiler_version
from agentforge.schema import Diagnostic, Solution, content_hash

from . import emulate, inline_cpu, inline_runtime, runtime
from . import source as text
from .inline import inline_sources
from .inline_calls import InlineCall, inline_calls
from .part import Part

_EMULATOR = ".emulator"
"""Name of our own copy of the emulator; no file of a solution is called so."""


class _Unit(NamedTuple):
    """What is compiled at once."""

    name: str
    content: list[Any]
    """All that decides what comes of it."""
    target: Path
    command: Callable[[Path, str, str], list[str]]
    """Of the scratch folder, the scheduler's object and the output; writes the sources."""


@dataclass(frozen=True)
class EmulatorBuild:
    """One shared object for each `.cu`, and each call of `load_inline`, of a solution in `folder`."""

    solution: Solution
    folder: Path
    cache: Path
    run: CommandRunner
    deadline: float

    def build(self) -> Part:
        """Compile what the cache does not have."""
        part = Part(True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=self.folder) as scratch:
            # A compiler in a sandbox sees the solution's folder, and nothing of this package.
            shutil.copytree(emulate.FOLDER, Path(scratch) / _EMULATOR)
            for unit in (*self._sources(), *self._calls()):
                part = part.joined(self._one(unit, Path(scratch)))
        return part

    def _sources(self) -> Iterator[_Unit]:
        files = {f.path: f.content for f in self.solution.sources}
        relevant = {n: c for n, c in files.items() if n.endswith((*text.SOURCES, *text.HEADERS))}
        for name in sorted(n for n in files if n.endswith(text.SOURCES)):
            source = self.folder / name
            flags = runtime.compiler_flags(cpp.settings(source)[0])
            target = source.parent / runtime.object_name(source, flags, "cpu.so")
            yield _Unit(name, [name, relevant], target, partial(self._source_command, name, relevant))

    def _source_command(
        self, name: str, files: Mapping[str, str], scratch: Path, scheduler: str, output: str
    ) -> list[str]:
        self._write(files, name, scratch)
        return emulate.kernel_command(
            scratch / _EMULATOR,
            str(scratch / name),
            scheduler,
            output,
            str(scratch),
            text.checks_races(files),
        )

    def _calls(self) -> Iterator[_Unit]:
        """One for each call of `load_inline` in a solution whose calls bring CUDA C++."""
        files = {f.path: f.content for f in self.solution.sources}
        calls = inline_calls(files) if inline_sources(files) else []
        for call in {call.key: call for call in calls}.values():
            target = (self.folder / call.file).parent / inline_runtime.object_name(call.key)
            unit = inline_cpu.translation_unit(call)
            content = [unit, list(call.defines), version("torch")]
            yield _Unit(f"{call.file}:{call.line}", content, target, partial(self._call_command, call, unit))

    def _call_command(
        self, call: InlineCall, unit: str, scratch: Path, scheduler: str, output: str
    ) -> list[str]:
        source = scratch / f"{call.key}.cpp"
        source.write_text(unit)
        races = text.checks_races({"": unit})
        return emulate.inline_command(
            scratch / _EMULATOR, str(source), scheduler, output, call.defines, races
        )

    def _one(self, unit: _Unit, scratch: Path) -> Part:
        objects = ObjectCache(self.cache / "cuda")
        key = content_hash([unit.content, emulate.emulator_hash(), compiler_version()], length=40)
        if objects.fetch(key, unit.target) is not None:
            return Part(True, files=(unit.target,), cached=True)
        scheduler = self._scheduler(objects, scratch)
        if isinstance(scheduler, Part):
            return scheduler
        built = scratch / unit.target.name
        command = unit.command(scratch, str(scheduler), str(built))
        done = self.run(command, cwd=scratch, timeout_s=self._left())
        if done.timed_out:
            return Part(
                True, unjudged=f"compiling {unit.name} for the emulator took longer than the time-out"
            )
        if done.returncode or not built.is_file():
            return self._failed(unit.name, done.stderr + done.stdout)
        objects.store(key, built, BuildRecord())
        built.replace(unit.target)
        return Part(True, files=(unit.target,))

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
            return Part(True, unjudged="compiling the emulator took longer than the time-out")
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
        own = [d for d in errors if not Path(d.file).is_absolute()]
        first = (own or errors)[0].message if errors else said.strip()[-300:]
        where = f"{own[0].file}:{own[0].line}" if own else name
        return Part(True, unjudged=f"the emulator on the CPU cannot compile {where}: {first}")

    def _left(self) -> float:
        return max(0.01, self.deadline - time.monotonic())

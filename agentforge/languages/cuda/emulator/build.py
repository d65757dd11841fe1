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

from agentforge.languages._base import BuildResult, CommandRunner
from agentforge.languages.cpp.cache import BuildRecord, ObjectCache
from agentforge.languages.cpp.diagnostics import parse_diagnostics
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cpp.shipped import agentforge_cpp
from agentforge.languages.untrusted import object_problem
from agentforge.schema import Diagnostic, Solution, content_hash

from .. import source as cuda_source
from ..load_inline import port
from ..load_inline import runtime as load_inline_runtime
from ..load_inline.build import cuda_calls
from ..load_inline.parse import InlineCall
from ..shipped import agentforge_cuda
from . import compile as emulator_compile

NO_COMPILER = "building the emulator needs a C++ compiler: install g++"
_EMULATOR = ".emulator"
"""Name of the emulator's copy in the scratch folder; no file of a solution has this name."""


class _Compilation(NamedTuple):
    """One compilation."""

    name: str
    content: list[Any]
    """Everything that determines the result."""
    target: Path
    command: Callable[[Path, str, str], list[str]]
    """Writes the sources; arguments: scratch folder, scheduler's object, output."""


@dataclass(frozen=True)
class EmulatorBuild:
    """One shared object per `.cu`, and per call of `load_inline`, of a solution in `folder`."""

    solution: Solution
    folder: Path
    cache: Path
    run: CommandRunner
    deadline: float

    def build(self) -> BuildResult:
        """Compile everything that the cache lacks."""
        if not compiler_version():
            return BuildResult(True, unjudged=NO_COMPILER)
        part = BuildResult(True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=self.folder) as scratch:
            # A sandboxed compiler sees the solution's folder but not this package.
            shutil.copytree(emulator_compile.FOLDER, Path(scratch) / _EMULATOR)
            for unit in (*self._sources(), *self._calls()):
                part = part.joined(self._one(unit, Path(scratch)))
        return part

    def _sources(self) -> Iterator[_Compilation]:
        files = {f.path: f.content for f in self.solution.sources}
        relevant = {
            n: c for n, c in files.items() if n.endswith((*cuda_source.SOURCES, *cuda_source.HEADERS))
        }
        for name in sorted(n for n in files if n.endswith(cuda_source.SOURCES)):
            source = self.folder / name
            flags = agentforge_cuda.compiler_flags(agentforge_cpp.settings(source)[0])
            target = source.parent / agentforge_cuda.object_name(source, flags, "cpu.so")
            yield _Compilation(name, [name, relevant], target, partial(self._source_command, name, relevant))

    def _source_command(
        self, name: str, files: Mapping[str, str], scratch: Path, scheduler: str, output: str
    ) -> list[str]:
        self._write(files, name, scratch)
        return emulator_compile.kernel_command(
            scratch / _EMULATOR,
            str(scratch / name),
            scheduler,
            output,
            str(scratch),
            cuda_source.checks_races(files),
        )

    def _calls(self) -> Iterator[_Compilation]:
        """One compilation per call of `load_inline`, if the solution's calls contain CUDA C++."""
        files = {f.path: f.content for f in self.solution.sources}
        calls = cuda_calls(files)
        for call in {call.key: call for call in calls}.values():
            target = (self.folder / call.file).parent / load_inline_runtime.object_name(call.key)
            unit = port.translation_unit(call)
            content = [unit, list(call.defines), version("torch")]
            yield _Compilation(
                f"{call.file}:{call.line}", content, target, partial(self._call_command, call, unit)
            )

    def _call_command(
        self, call: InlineCall, unit: str, scratch: Path, scheduler: str, output: str
    ) -> list[str]:
        source = scratch / f"{call.key}.cpp"
        source.write_text(unit)
        races = cuda_source.checks_races({"": unit})
        return emulator_compile.inline_command(
            scratch / _EMULATOR, str(source), scheduler, output, call.defines, races
        )

    def _one(self, unit: _Compilation, scratch: Path) -> BuildResult:
        objects = ObjectCache(self.cache / "cuda")
        key = content_hash([unit.content, emulator_compile.emulator_hash(), compiler_version()], length=40)
        if objects.fetch(key, unit.target) is not None:
            return BuildResult(True, files=(unit.target,), cached=True)
        scheduler = self._scheduler(objects, scratch)
        if isinstance(scheduler, BuildResult):
            return scheduler
        built = scratch / unit.target.name
        command = unit.command(scratch, str(scheduler), str(built))
        done = self.run(command, cwd=scratch, timeout_s=self._left())
        if done.timed_out:
            return BuildResult(
                True, unjudged=f"compiling {unit.name} for the emulator took longer than the time-out"
            )
        output = done.stderr + done.stdout
        if done.returncode or (output := object_problem(built)):
            return self._failed(unit.name, output)
        objects.store(key, built, BuildRecord())
        built.replace(unit.target)
        return BuildResult(True, files=(unit.target,))

    def _scheduler(self, objects: ObjectCache, scratch: Path) -> Path | BuildResult:
        """The scheduler's object file, the same for every kernel."""
        place = scratch / "scheduler.o"
        if place.is_file():
            return place
        key = content_hash(["scheduler", emulator_compile.emulator_hash(), compiler_version()], length=40)
        if objects.fetch(key, place) is not None:
            return place
        done = self.run(
            emulator_compile.scheduler_command(scratch / _EMULATOR, str(place)),
            cwd=scratch,
            timeout_s=self._left(),
        )
        if done.timed_out:
            return BuildResult(True, unjudged="compiling the emulator took longer than the time-out")
        if done.returncode:
            message = f"cannot compile the emulator: {(done.stderr + done.stdout)[-1000:]}"
            return BuildResult(False, diagnostics=(Diagnostic(message=message),))
        objects.store(key, place, BuildRecord())
        return place

    def _write(self, files: Mapping[str, str], name: str, scratch: Path) -> None:
        for path, content in files.items():
            kernels = [k for k, p in agentforge_cuda.parse_kernels(content).items() if not p.problem]
            place = scratch / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(cuda_source.for_cpu(content, path, kernels if path == name else []))

    def _failed(self, name: str, output: str) -> BuildResult:
        """The emulator fails on code that a CUDA compiler accepts: the limit is the emulator's."""
        errors = [d for d in parse_diagnostics(output) if d.severity == "error"]
        own = [d for d in errors if not Path(d.file).is_absolute()]
        first = (own or errors)[0].message if errors else output.strip()[-300:]
        where = f"{own[0].file}:{own[0].line}" if own else name
        return BuildResult(True, unjudged=f"the emulator on the CPU cannot compile {where}: {first}")

    def _left(self) -> float:
        return max(0.01, self.deadline - time.monotonic())

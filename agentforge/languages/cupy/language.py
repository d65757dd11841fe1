"""The `cupy` language: Python files with kernels of CuPy."""

from __future__ import annotations

import time
from pathlib import Path

from agentforge.languages._base import PRELUDE, BuildResult, CommandRunner
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.info import CUDA, CUPY
from agentforge.languages.python.language import write_checked
from agentforge.languages.untrusted import regular_files
from agentforge.registry import Availability
from agentforge.schema import Diagnostic, MachineError, Solution

from ..cuda.compile.pipeline import compilers, not_compiled
from ..cuda.emulator.build import NO_COMPILER, EmulatorBuild
from .installed import cupy_problem, installed_cupy
from .sources import find_kernels

_UNTIMED = (
    "its CuPy kernels ran in the emulator on the CPU because there is no GPU here: results are checked, "
    "their speed is unknown"
)
_PRELUDE = '''"""Imported before the solution, in the process that runs it."""

from agentforge.languages.cupy.{module} import calls, install

install({run})
'''
_STREAM = (
    "CuPy launches on its own current stream: put launches into "
    "`with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):`"
)


class Cupy:
    """RawKernel, RawModule, ElementwiseKernel, ReductionKernel and fuse in Python files.

    `spec.flags` may name targets: `--target=sm_90`. Literal sources of RawKernel and RawModule are compiled
    for them; on the CPU every kernel is compiled for the emulator at its first launch.
    """

    name = "cupy"
    info = CUPY

    def available(self) -> Availability:
        found = installed_cupy()
        if found and not cupy_problem(found, ""):
            return Availability(True, ", ".join(f"{name} {number}" for name, number in found.items()))
        problem = cupy_problem(found, "")
        if compiler_version():
            return Availability(True, f"only the emulator on the CPU ({compiler_version()}); {problem}")
        return Availability(False, f"no C++ compiler for the emulator was found; {problem}")

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
        """See `Language.build`.

        Raises:
            MachineError: for `device` `cuda`: CuPy is missing, installed twice, or for another CUDA version.
        """
        start = time.monotonic()
        on_gpu = device == "cuda"
        if on_gpu and (problem := cupy_problem(installed_cupy(), _torch_cuda())):
            raise MachineError(problem)
        wrong = write_checked(solution, folder)
        if wrong:
            return BuildResult(False, diagnostics=wrong).since(start)
        prelude = (folder / solution.entry_file).parent / PRELUDE
        prelude.write_text(_PRELUDE.format(module="on_gpu" if on_gpu else "emulated.install", run=True))
        emulator = EmulatorBuild(solution, folder, cache, run, start + timeout_s)
        part = _compile(emulator, device)
        if part.ok and not on_gpu:
            part = _for_cpu(part, emulator)
        return part.since(start)

    def empty_kernels(self, folder: Path) -> list[str]:
        """See `AblatableLanguage`."""
        files = {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="surrogatepass")
            for path in regular_files(folder, "*.py")
            if path.name != PRELUDE
        }
        for prelude in regular_files(folder, PRELUDE):
            prelude.write_text(prelude.read_text().replace("install(True)", "install(False)"))
        return find_kernels(files).names


def _compile(build: EmulatorBuild, device: str) -> BuildResult:
    """Compile literal sources for a GPU: errors, registers, machine code."""
    found = find_kernels({f.path: f.content for f in build.solution.sources})
    notes = [
        _note(place, "the source of this kernel is known only when the file runs: not compiled ahead")
        for place in found.unknown
    ]
    if found.names and not found.on_torch_stream:
        notes.append(Diagnostic(severity="warning", message=_STREAM, file=build.solution.entry_file))
    part, compiler = BuildResult(True, diagnostics=tuple(notes)), compilers()
    if compiler is None:
        return part.joined(not_compiled())
    compiled = compiler.compile(
        build.solution, build.folder, cache=build.cache, run=build.run, deadline=build.deadline,
        device=device, literals=found.sources,
    )  # fmt: skip
    return part.joined(compiled)


def _for_cpu(part: BuildResult, emulator: EmulatorBuild) -> BuildResult:
    sources = emulator.solution.sources
    unsupported = find_kernels({f.path: f.content for f in sources}).unsupported
    if unsupported:
        return part.also(unjudged=unsupported)
    if not compiler_version():
        return part.also(unjudged=NO_COMPILER)
    if any(f.path.endswith(CUDA.suffixes) for f in sources):  # a model with `.cu` kernels too
        part = part.joined(emulator.build())
    return part.also(untimed=_UNTIMED)


def _note(place: str, message: str) -> Diagnostic:
    file, _, line = place.partition(":")
    return Diagnostic(severity="note", message=message, file=file, line=int(line))


def _torch_cuda() -> str:
    import torch

    return torch.version.cuda or ""

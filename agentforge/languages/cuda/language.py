"""The `cuda` language."""

from __future__ import annotations

import time
from pathlib import Path

from agentforge.languages._base import Availability, BuildResult, CommandRunner
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.python import write_checked
from agentforge.schema import Diagnostic, MachineError, Solution

from . import source as text
from .ahead import Compiler, compilers
from .inline_cpu import prepare_inline
from .on_cpu import EmulatorBuild
from .part import Part

_UNTIMED = (
    "its CUDA kernels ran in the emulator on the CPU, as there is no GPU here: they are right or wrong, and "
    "nothing is known of their speed"
)
_INSTALL = "install NVRTC with: pip install 'agentforge[cuda]'"


class Cuda:
    """`.cu` sources whose `extern "C" __global__` kernels a Python file launches; or a `load_inline` file.

    `spec.flags` may name a target, `--target=sm_90a` (without a GPU several, to compile for all of them), and
    options of NVRTC.
    """

    name = "cuda"

    def available(self) -> Availability:
        compiler = compilers()
        if compiler is not None:
            return Availability(True, compiler.version)
        if compiler_version():
            return Availability(True, f"emulator on the CPU alone ({compiler_version()}); {_INSTALL}")
        return Availability(False, f"neither a CUDA compiler nor a C++ compiler was found; {_INSTALL}")

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

        Args:
            solution: what is built.
            folder: where.
            cache: of cubins and emulated kernels.
            run: starts the compilers.
            timeout_s: for all of it.
            device: kind of device that will run it; on `cpu` kernels are built for the emulator.
        """
        start = time.monotonic()
        compiler = compilers()
        if compiler is None and not compiler_version():
            raise MachineError(f"neither a CUDA compiler nor a C++ compiler was found; {_INSTALL}")
        wrong = write_checked(solution, folder)
        if wrong:
            return Part(False, wrong).result(start)
        part = self._compile(compiler, solution, folder, cache, run, start + timeout_s, device)
        if not part.ok or device == "cuda":
            return part.result(start)
        return self._for_cpu(part, solution, folder, cache, run, start + timeout_s).result(start)

    def _compile(
        self,
        compiler: Compiler | None,
        solution: Solution,
        folder: Path,
        cache: Path,
        run: CommandRunner,
        deadline: float,
        device: str,
    ) -> Part:
        """Cubins for the GPU that is here, or for a common one: errors, registers, machine code."""
        if compiler is None:
            note = Diagnostic(
                severity="note", message=f"not compiled for a GPU: there is no CUDA compiler; {_INSTALL}"
            )
            return Part(True, (note,))
        return compiler.compile(solution, folder, cache=cache, run=run, deadline=deadline, device=device)

    def _for_cpu(
        self, part: Part, solution: Solution, folder: Path, cache: Path, run: CommandRunner, deadline: float
    ) -> Part:
        files = {f.path: f.content for f in solution.sources}
        reason = text.unsupported(files) or prepare_inline(solution, folder)
        if reason is not None:
            return part.also(unjudged=str(reason))
        if not compiler_version():
            return part.also(unjudged="no C++ compiler is here to build the emulator with: install g++")
        emulated = EmulatorBuild(solution, folder, cache, run, deadline).build()
        return part.joined(emulated).also(untimed=_UNTIMED)

"""The `cuda` language."""

from __future__ import annotations

import time
from pathlib import Path

from agentforge.languages._base import BuildResult, CommandRunner
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.info import CUDA
from agentforge.languages.python.language import write_checked
from agentforge.registry import Availability
from agentforge.schema import Diagnostic, MachineError, Solution, pip_install

from . import source as cuda_source
from .compile.pipeline import compilers, not_compiled
from .emulator.build import EmulatorBuild
from .load_inline.port import prepare_inline

_UNTIMED = (
    "its CUDA kernels ran in the emulator on the CPU because there is no GPU here: results are checked, "
    "their speed is unknown"
)
_INSTALL = f"to install NVRTC, run {pip_install('cuda')}"


class Cuda:
    """`.cu` sources with `extern "C" __global__` kernels launched by a Python file, or a `load_inline` file.

    `spec.flags` may contain targets, `--target=sm_90a` (without a GPU each is compiled for, on a GPU the one
    that fits it), and NVRTC options.
    """

    name = "cuda"
    info = CUDA

    def available(self) -> Availability:
        compiler = compilers()
        if compiler is not None:
            return Availability(True, compiler.version)
        if compiler_version():
            return Availability(True, f"only the emulator on the CPU ({compiler_version()}); {_INSTALL}")
        return Availability(False, f"no CUDA compiler and no C++ compiler found; {_INSTALL}")

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
            device: kind of device that will run it; for `cpu` the emulator is used.
        """
        start = time.monotonic()
        compiler = compilers()
        if compiler is None and not compiler_version():
            raise MachineError(f"no CUDA compiler and no C++ compiler found; {_INSTALL}")
        wrong = write_checked(solution, folder) or _too_long(solution)
        if wrong:
            return BuildResult(False, diagnostics=wrong).since(start)
        if compiler is None:
            part = not_compiled()
        else:  # for this machine's GPU, or for a common one: errors, registers, machine code
            part = compiler.compile(
                solution, folder, cache=cache, run=run, deadline=start + timeout_s, device=device
            )
        if part.ok and device != "cuda":
            part = _for_cpu(part, EmulatorBuild(solution, folder, cache, run, start + timeout_s))
        return part.since(start)


def _too_long(solution: Solution) -> tuple[Diagnostic, ...]:
    most, ends = cuda_source.MOST_TEXT, (*cuda_source.SOURCES, *cuda_source.HEADERS)
    long = [f.path for f in solution.sources if f.path.endswith(ends) and len(f.content) > most]
    return tuple(Diagnostic(message=f"it has more than {most >> 10} KiB", file=file) for file in long)


def _for_cpu(part: BuildResult, emulator: EmulatorBuild) -> BuildResult:
    solution = emulator.solution
    files = {f.path: f.content for f in solution.sources}
    reason = cuda_source.unsupported(files) or prepare_inline(solution, emulator.folder)
    if reason is not None:
        return part.also(unjudged=str(reason))
    return part.joined(emulator.build()).also(untimed=_UNTIMED)

"""The `cuda` language."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from agentforge.devices.toolchain import search_path
from agentforge.languages._base import BuildResult, CommandRunner
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.info import CUDA
from agentforge.languages.python.extensions import builds_at_import
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

        Raises:
            MachineError: there is no compiler; or, for `cuda`, the file compiles when it is imported, and
                torch would not find nvcc or ninja.
        """
        start = time.monotonic()
        compiler = compilers()
        if compiler is None and not compiler_version():
            raise MachineError(f"no CUDA compiler and no C++ compiler found; {_INSTALL}")
        if device == "cuda" and builds_at_import(solution) and (missing := _missing_tools()):
            raise MachineError(
                f"load_inline needs {' and '.join(missing)}: ninja comes with {pip_install('cuda')}, "
                "nvcc with NVIDIA's CUDA toolkit (set CUDA_HOME if it is not in /usr/local/cuda)"
            )
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


def _missing_tools() -> list[str]:
    """What torch compiles a file's kernels with, and a worker would not find."""
    path, home = search_path(), os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = f"{home}/bin" if home else f"{path}{os.pathsep}/usr/local/cuda/bin"
    places = {"ninja": path, "nvcc": nvcc}
    return [tool for tool, place in places.items() if shutil.which(tool, path=place) is None]


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

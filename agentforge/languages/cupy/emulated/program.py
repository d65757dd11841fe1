"""Compile CUDA C++ for the emulator when a kernel is first launched, and launch it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agentforge.isolation.scratch import Scratch
from agentforge.languages.cpp.diagnostics import parse_diagnostics
from agentforge.languages.cuda.emulator import compile as emulator_compile
from agentforge.languages.cuda.shipped.agentforge_cuda import parse_kernels
from agentforge.languages.cuda.shipped.agentforge_emulated import Emulator
from agentforge.languages.cuda.shipped.agentforge_launches import configuration
from agentforge.languages.cuda.source import checks_races, for_cpu, unsupported_in

from .arrays import NotEmulated, Span

calls: Counter[str] = Counter()
"""Launches so far, by kernel."""
_KEPT_BELOW = "TORCHINDUCTOR_CACHE_DIR"
_TIMEOUT_S = 120.0
_ENTRY = """extern "C" __attribute__((visibility("default"))) int launch_{symbol}(
    const cuda_on_cpu::Launch* configuration, void** arguments) {{
    return cuda_on_cpu::launch(&{template}, *configuration, arguments);
}}
"""


class Program:
    """A source with `extern "C"` kernels, and instances of templates."""

    def __init__(
        self,
        code: str,
        options: Sequence[str] = (),
        templates: Sequence[str] = (),
        place: tuple[str, int] = ("source.cu", 1),
    ) -> None:
        """Nothing is compiled yet.

        Args:
            options: of NVRTC; macros among them are defined.
            templates: kernels such as `scale<float>`.
            place: file and line in which the source begins.
        """
        self.code, self.file = code, place[0]
        self._line = place[1]
        self._macros = [o.partition("D")[2] for o in options if o.startswith("-D")]
        self.prototypes = {name: p for name, p in parse_kernels(code).items() if not p.problem}
        self._symbols = {name: name for name in self.prototypes}
        self._symbols |= {name: f"template_{i}" for i, name in enumerate(templates)}
        self._templates = templates
        self._emulator: Emulator | None = None

    def has(self, name: str) -> bool:
        """Whether the emulator can launch a kernel."""
        return name in self._symbols

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        values: Sequence[Any],
        spans: Sequence[Span | None],
    ) -> None:
        """Run all blocks; counts nothing.

        Args:
            values: C values of all arguments.
            spans: memory of the pointers among them, in order.

        Raises:
            CudaError: the launch is out of range, or a thread made an error.
            NotEmulated: the source cannot run on the CPU.
        """
        if self._emulator is None:
            self._emulator = Emulator(self._compiled(), self.file, self._symbols.values())
        tensors: Any = spans
        self._emulator.launch(self._symbols[name], configuration(grid, block, shared), values, tensors)

    def _compiled(self) -> Path:
        problem = unsupported_in(self.code, self.file, line=self._line)
        if problem is not None:
            raise NotEmulated(str(problem))
        text = "".join(f"#define {m.replace('=', ' ', 1)}\n" for m in self._macros)
        text += for_cpu(self.code, self.file, list(self.prototypes), line=self._line)
        text += "".join(_ENTRY.format(symbol=self._symbols[t], template=t) for t in self._templates)
        key = hashlib.sha256(f"{emulator_compile.emulator_hash()}\0{text}".encode()).hexdigest()[:24]
        built = _folder() / f"{key}.so"
        if not built.is_file():
            with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
                source, made = Path(scratch, "source.cpp"), Path(scratch, "kernels.so")
                source.write_text(text)
                races = checks_races({"": self.code})
                command = emulator_compile.kernel_command(
                    emulator_compile.FOLDER, str(source), str(_scheduler()), str(made), scratch, races
                )
                self._run(command)
                made.replace(built)
        return built

    def _run(self, command: Sequence[str]) -> None:
        done = _compile(command)
        if done.returncode:
            errors = [d for d in parse_diagnostics(done.stderr) if d.severity == "error"]
            first = next((d for d in errors if d.file == self.file), errors[0] if errors else None)
            what = f"{first.file}:{first.line}: {first.message}" if first else done.stderr[-300:].strip()
            raise NotEmulated(f"the emulator on the CPU cannot compile {what}")


def _compile(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotEmulated(f"the emulator on the CPU cannot be compiled: {error}") from error


@cache
def _folder() -> Path:
    """Where objects are kept for the next process of the evaluation."""
    kept = os.environ.get(_KEPT_BELOW)
    folder = Path(kept, "cupy") if kept else Scratch("cupy").path
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _scheduler() -> Path:
    """The emulator's scheduler, the same for every kernel."""
    built = _folder() / f"{emulator_compile.emulator_hash()}.o"
    if not built.is_file():
        with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
            made = Path(scratch, "scheduler.o")
            done = _compile(emulator_compile.scheduler_command(emulator_compile.FOLDER, str(made)))
            if done.returncode:
                raise NotEmulated(f"the emulator on the CPU cannot be compiled: {done.stderr[-300:]}")
            made.replace(built)
    return built


def settings() -> Mapping[str, bool]:
    """Whether kernels run; `install` sets it."""
    return _SETTINGS


_SETTINGS = {"run": True}

"""Run Triton kernels on CPU tensors in Triton's interpreter.

Added are correct bfloat16, bounds checks, the common libdevice functions, a fake GPU, the hardware's launch
limits, errors that name the kernel's line, and a record of launches. Timings mean nothing.
"""

from __future__ import annotations

import operator
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from ..recorder import Recorder, compile_time
from .fake_cuda import Unsimulated
from .patches import imported_builtins

_GRID = (2**31 - 1, 65535, 65535)
_WARPS = (1, 2, 4, 8, 16, 32)

recorder = Recorder()


class KernelError(Exception):
    """A kernel failed in the interpreter; the message has file, line and cause."""


def install() -> None:
    """Switch Triton to its interpreter in this process and patch it; call this before anything uses Triton.

    Raises:
        ImportError: Triton is not installed.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    # torch may have imported Triton already, with its library functions for a GPU.
    for name in [n for n in sys.modules if n == "triton" or n.startswith("triton.")]:
        if not name.startswith("triton._C"):
            del sys.modules[name]
    import triton.language as tl
    from triton.language.extra import libdevice as for_all
    from triton.language.extra.cuda import libdevice as for_cuda
    from triton.runtime import interpreter

    from . import ast_rewrite, bfloat16, bounds, fake_cuda, fake_driver, libdevice, patches

    ast_rewrite.install(interpreter, tl)
    patches.install(interpreter, tl)
    bfloat16.install(interpreter, tl)
    bounds.install(interpreter)
    libdevice.install(interpreter, tl, for_all)
    libdevice.install(interpreter, tl, for_cuda)
    _install_launches(interpreter, tl)
    fake_driver.install()
    fake_cuda.install()


def _install_launches(interpreter: Any, tl: Any) -> None:
    from .bounds import ranges_of
    from .races import RaceDetector

    function = interpreter.InterpretedFunction
    builder, plain_run, plain_rewrite = interpreter.interpreter_builder, function.run, function.rewrite
    plain_grid = interpreter.InterpreterBuilder.set_grid_dim

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return None
        check_options(kwargs)
        recorder.record(self.fn, self.arg_names, args, kwargs)
        builder.ranges = ranges_of((*args, *kwargs.values()))
        builder.race_detector = RaceDetector(builder.ranges)
        try:
            sizes = (lambda given: tuple(grid(given))) if callable(grid) else tuple(grid)
            return plain_run(self, *args, grid=sizes, warmup=warmup, **kwargs)
        except interpreter.InterpreterError as error:
            kind = Unsimulated if isinstance(root(error), Unsimulated) else KernelError
            raise kind(explain(error, self.fn)) from error
        finally:
            builder.ranges = None

    def rewrite(self: Any) -> Any:
        # The interpreter recompiles a kernel, which turns annotations into text; it then recognises
        # `constexpr` only under the name `tl.constexpr`.
        fn = plain_rewrite(self)
        fn.__annotations__ = dict.fromkeys(compile_time(self.fn), "constexpr")
        if not self.fn.__module__.startswith("triton."):
            imported_builtins(fn.__globals__, interpreter, tl)
        return fn

    def set_grid(self: Any, *sizes: Any) -> None:
        check_grid(sizes)
        plain_grid(self, *sizes)

    function.run, function.rewrite = run, rewrite
    interpreter.InterpreterBuilder.set_grid_dim = set_grid


def explain(error: BaseException, fn: Any) -> str:
    """File, line and cause of a failure inside a kernel."""
    file = fn.__code__.co_filename
    line, cause = 0, root(error)
    current: BaseException | None = error
    while current is not None:
        frames = traceback.extract_tb(current.__traceback__)
        lines = [f.lineno for f in frames if f.filename == file and f.lineno]
        line = lines[-1] if lines else line
        current = current.__cause__
    description = str(cause) if isinstance(cause, Unsimulated) else f"{type(cause).__name__}: {cause}"
    return f"{Path(file).name}:{line}: in kernel {fn.__name__}: {description}"


def root(error: BaseException) -> BaseException:
    """The root cause of an exception."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def check_grid(sizes: tuple[Any, ...]) -> None:
    """Check that a GPU could launch a grid.

    Raises:
        ValueError: a size is negative or beyond the hardware's limit.
    """
    for axis, size, limit in zip("xyz", sizes, _GRID, strict=False):
        if not 0 <= operator.index(size) <= limit:
            raise ValueError(f"the grid's {axis} is {operator.index(size)}; a GPU allows 0 to {limit}")


def check_options(options: dict[str, Any]) -> None:
    """Check a launch's options.

    Raises:
        ValueError: `num_warps` is not a power of two up to 32, or `num_stages` is negative.
    """
    warps, stages = options.get("num_warps", 4), options.get("num_stages", 3)
    if warps not in _WARPS:
        raise ValueError(f"num_warps is {warps}; it must be a power of two from 1 to 32")
    if not isinstance(stages, int) or stages < 0:
        raise ValueError(f"num_stages is {stages}; it must not be negative")

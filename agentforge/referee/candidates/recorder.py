"""Times the operators of a call, and looks into those that are not torch's own.

An operator that is written in Python, or in C++ that the candidate brings, runs other operators in its body.
A dispatch mode does not see them by itself, so the recorder runs the body under the mode again.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from agentforge.languages import CPP_RUNTIME

from ..workers.dispatch_mode import DispatchMode

_FLOAT32 = ("", ".mkldnn", ".mkldnn.matmul", ".mkldnn.conv", ".mkldnn.rnn", ".cuda.matmul")
"""Parts of torch.backends with a precision of float32 operators. That of cuDNN is low from the start."""
_FILLS = {"zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
          "new_full", "zero_", "fill_"}  # fmt: skip
_GRAIN, _LITTLE = 32768, 2.0**-30
"""Elements for which torch uses another thread, and a number that is lost beside 1."""
_TORCH = f"{Path(torch.__file__).parent}/"
_DISPATCH: Any = torch._C
_BELOW = _DISPATCH._dispatch_keyset_full_after(_DISPATCH.DispatchKey.Python)
"""Keys of the kernels that compute."""
_SYNCHRONIZE = getattr(torch._C, "_cuda_synchronize", None)
_CAPTURING = torch._C._cuda_isCurrentStreamCapturing


class _Body(NamedTuple):
    """What an operator runs."""

    opened: bool
    """It is not torch's, so that its own operators count instead of it."""
    own: bool
    """The candidate's C++ has it."""


def nothing() -> None:
    """There is nothing to wait for: on a CPU an operator is done when it returns."""


def settle() -> None:
    """Wait for the GPU, unless a CUDA graph is recorded: then nothing runs, and waiting is an error."""
    if _SYNCHRONIZE is not None and not _CAPTURING():
        _SYNCHRONIZE()


def first_on_gpu(values: Any) -> torch.Tensor | None:
    """The first tensor on a GPU among arguments; one in CPU memory that claims to be there does not count."""
    for leaf in tree_leaves(values):
        if isinstance(leaf, torch.Tensor):
            keys = _DISPATCH._dispatch_keyset_to_string(_DISPATCH._dispatch_keys(leaf))
            if "CUDA" in keys:
                return leaf
    return None


class Recorder(DispatchMode):
    """Counts and times operators, by name.

    Args:
        wait: `settle` if operators only launch work. Work that was launched before an operator is no part of
            its time.
    """

    def __init__(self, wait: Callable[[], None] = nothing) -> None:
        super().__init__()
        self._wait = wait
        self.calls: dict[str, int] = {}
        self.nanoseconds: dict[str, int] = {}
        self.own: dict[str, int] = {}
        """Calls of operators that the candidate's C++ sources registered."""
        self.own_ns = 0
        """Time of those calls."""
        self.opened: set[str] = set()
        """Operators whose bodies are not torch's."""
        self.filled: dict[str, int] = {}
        """Bytes of the results of operators that fill memory with one value, by name."""
        self.precisions = float32_precisions()
        self.looking_ns = 0
        """Time of looking at settings and operators, which is no part of the call."""
        self._bodies: dict[tuple[Any, str], _Body] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self._wait()
        looked = time.perf_counter_ns()
        self.precisions |= float32_precisions()
        keys = _keys(args, kwargs)
        body = self._body(func, keys)
        start = time.perf_counter_ns()
        self.looking_ns += start - looked
        if body.own:
            self.own[str(func)] = self.own.get(str(func), 0) + 1
        name = str(func)
        if body.opened:
            self.opened.add(name)
            with self:
                result = func.redispatch(keys, *args, **kwargs)
            self.own_ns += (time.perf_counter_ns() - start) if body.own else 0
            return result
        result = func(*args, **kwargs)
        self._wait()
        self.nanoseconds[name] = self.nanoseconds.get(name, 0) + time.perf_counter_ns() - start
        self.calls[name] = self.calls.get(name, 0) + 1
        if name.startswith("aten.") and name.split(".")[1] in _FILLS and result.layout is torch.strided:
            self.filled[name] = self.filled.get(name, 0) + result.nbytes
        return result

    def _body(self, func: Any, keys: Any) -> _Body:
        if not isinstance(func, torch._ops.OpOverload):
            return _Body(False, False)
        key = _DISPATCH._dispatch_key_name(keys.highestPriorityTypeId())
        if (func, key) not in self._bodies:
            file = _registered_at(func.name(), key)
            own = _is_own_source(file)
            in_python = file.endswith(".py") and not (func.namespace == "aten" and _is_torchs(file))
            self._bodies[func, key] = _Body(own or in_python, own)
        return self._bodies[func, key]


def _keys(args: Any, kwargs: Any) -> Any:
    """The dispatch keys of the kernel that will run."""
    keys = _DISPATCH.DispatchKeySet(_DISPATCH.DispatchKey.Undefined)
    for leaf in tree_leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor):
            keys = keys | _DISPATCH._dispatch_keys(leaf)
    keys = keys & _BELOW
    return keys if keys.raw_repr() else _DISPATCH.DispatchKeySet(_DISPATCH.DispatchKey.CPU)


def is_own_operator(name: str) -> bool:
    """Whether the candidate's C++ registered an operator, such as `mine.softmax`, for a CPU."""
    with suppress(RuntimeError):  # the profiler has other events too
        return _is_own_source(_registered_at(name.replace(".", "::", 1), "CPU"))
    return False


def _registered_at(name: str, key: str) -> str:
    """Source file that registered an operator's kernel; empty if there is none."""
    table = _DISPATCH._dispatch_dump_table(name)
    found = re.search(rf"^{re.escape(key)}: (?:fallthrough )?registered at (.*?):\d+ ", table, re.MULTILINE)
    return found[1] if found else ""


def _is_torchs(file: str) -> bool:
    """Whether torch itself wrote what this file registers, rather than registering it for others."""
    return file.startswith(_TORCH) and not file.startswith((f"{_TORCH}library.py", f"{_TORCH}_library/"))


def _is_own_source(file: str) -> bool:
    """Whether the candidate has this file among the sources that the referee built.

    They are compiled by names relative to the solution's folder.
    """
    if not file or file.startswith("/"):
        return False
    runtime = sys.modules.get(CPP_RUNTIME.removesuffix(".py"))
    built = [Path(path) for path in getattr(runtime, "_LIBRARIES", {})]
    return any((folder / file).is_file() for path in built for folder in list(path.parents)[:4])


def float32_precisions() -> dict[str, str]:
    """torch's settings that allow less than float32 in float32 operators of this process, by name.

    `torch.set_float32_matmul_precision` and `allow_tf32` change these too.
    """
    found: dict[str, str] = {}
    for part in _FLOAT32:
        name = f"backends{part}.fp32_precision"
        with suppress(AttributeError):  # torch 2.8 has none
            found[f"torch.{name}"] = attrgetter(name)(torch)
    return {name: value for name, value in found.items() if value not in ("none", "ieee")}


def unusual_modes() -> dict[str, str]:
    """Modes of this process that other operators do not expect: of the processor in the threads of torch's
    operators, which round to the nearest number, with subnormal ones; and of torch."""
    count = _GRAIN * torch.get_num_threads()
    one = torch.ones(count, dtype=torch.float32, device="cpu")
    nearest = bool(((one + _LITTLE == one) & (one - _LITTLE == one)).all())
    subnormal = bool((one * 2.0**-126 / 2 != 0).all())
    usual = {
        "the processor's rounding": nearest,
        "the processor's subnormal numbers": subnormal,
        "torch's inference mode": not torch.is_inference_mode_enabled(),
        "torch's default type": torch.get_default_dtype() is torch.float32,
    }
    return {name: "an unusual mode" for name, as_usual in usual.items() if not as_usual}

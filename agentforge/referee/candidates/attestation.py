"""What a process says of itself: which kernels did the work, and in which precision torch computes there.

All of this runs in the candidate's process: its answer is a hint, not proof.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from operator import attrgetter
from typing import Any

import torch

from agentforge.languages import CPP_RUNTIME, PRELUDE

from ..workers.dispatch_mode import DispatchMode

_FREE = {"view", "reshape", "t", "transpose", "permute", "expand", "detach", "alias", "unsqueeze", "squeeze",
         "slice", "select", "_unsafe_view", "as_strided", "empty", "empty_like", "empty_strided", "new_empty",
         "split", "unbind", "lift_fresh", "set_"}  # fmt: skip
_FLOAT32 = ("", ".mkldnn", ".mkldnn.matmul", ".mkldnn.conv", ".mkldnn.rnn", ".cuda.matmul")
"""Parts of torch.backends with a precision of float32 operators. That of cuDNN is low from the start."""


class _Recorder(DispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, int] = {}
        self.nanoseconds: dict[str, int] = {}
        self.precisions = float32_precisions()
        self.looking_ns = 0
        """Time of reading the precisions, which is no part of the call."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        looked = time.perf_counter_ns()
        self.precisions |= float32_precisions()
        start = time.perf_counter_ns()
        self.looking_ns += start - looked
        result = func(*args, **(kwargs or {}))
        self.nanoseconds[name] = self.nanoseconds.get(name, 0) + time.perf_counter_ns() - start
        self.calls[name] = self.calls.get(name, 0) + 1
        return result


def own_calls() -> dict[str, int]:
    """Counters of the compiled-kernel runtimes that the candidate loaded."""
    found: dict[str, int] = {}
    for runtime in (CPP_RUNTIME, PRELUDE):
        calls = getattr(sys.modules.get(runtime.removesuffix(".py")), "calls", None)
        found |= calls() if callable(calls) else {}
    return found


def _counted() -> bool:
    """Whether all own kernels are counted, so that none means none: the language's prelude does it."""
    return callable(getattr(sys.modules.get(PRELUDE.removesuffix(".py")), "calls", None))


def _interpreted() -> AbstractContextManager[Any]:
    """Compiled code runs as it was written.

    torch.compile gives a frame up for good that it meets under a dispatch mode: whatever it had compiled
    would run in eager mode from then on.
    """
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


def observe(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Run the model once and list what ran.

    Returns:
        `operators`: torch operator to `[calls, ns]`, without those that move no data; `own`: own kernel to
        calls; `ns`: the whole call; `counted`: `own` is complete; `precisions`: `float32_precisions` before,
        during and after the call.
    """
    before = own_calls()
    with _interpreted(), _Recorder() as recorder:
        start = time.perf_counter_ns()
        model(*args, **kwargs)
        total = time.perf_counter_ns() - start - recorder.looking_ns
    after = own_calls()
    operators = {
        name: [count, recorder.nanoseconds[name]]
        for name, count in recorder.calls.items()
        if name.split(".")[1] not in _FREE
    }
    own = {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}
    precisions = recorder.precisions | float32_precisions()
    return {
        "operators": operators, "own": own, "ns": total, "counted": _counted(), "precisions": precisions,
    }  # fmt: skip


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

"""What a process says of itself: which kernels did the work, and in which precision torch computes there.

All of this runs in the candidate's process: its answer is a hint, not proof.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from agentforge.languages import PRELUDE

from .close_look import own_function_times, profiled
from .generators import shared_generators
from .launches import own_calls
from .recorder import (
    Recorder,
    first_on_gpu,
    float32_precisions,
    is_own_operator,
    nothing,
    settle,
    unusual_modes,
)

_FREE = {"view", "reshape", "t", "transpose", "permute", "expand", "detach", "alias", "unsqueeze", "squeeze",
         "slice", "select", "_unsafe_view", "as_strided", "empty", "empty_like", "empty_strided", "new_empty",
         "split", "unbind", "lift_fresh", "set_"}  # fmt: skip
_TORCH = ("aten.", "prim.", "prims.")
"""Namespaces in which the names above mean what they say."""
_SMALL_FILL = 64 << 10
"""Bytes that may be filled with one value, for an own kernel to write."""
_NEGATED = torch.ops.aten.neg.default
_LAUNCHES, _MARGIN = 9, 1.5
"""Launches of a small operator whose median is taken, and how much longer one without work may take."""
_LAUNCH_BOUND = 1 / 3
"""Share of a GPU's call up to which launches of operators do not count."""


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


def _is_free(name: str) -> bool:
    return name.startswith(_TORCH) and name.split(".")[1] in _FREE


def observe(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, closely: bool = False
) -> dict[str, Any]:
    """Run the model once and list what ran.

    Args:
        closely: run it a few times more, without a dispatch mode; for C++ sources.

    Returns:
        `operators`: operator to `[calls, ns]`, without those of torch that move hardly any data; `own`: own
        kernel to calls; `ns`: the whole call; `counted`: `own` is complete; `precisions`:
        `float32_precisions` before, during and after the call, and `unusual_modes`; `generators`: those
        of the whole process that the call seeds or draws from; if `closely`, `other`: `other_work`. An
        operator that the candidate registered counts by what its body runs. On a GPU times are those of its
        work: see `_beyond_launches`.
    """
    on_gpu = first_on_gpu((args, kwargs))
    wait = nothing if on_gpu is None else settle
    launch_ns = 0 if on_gpu is None else _launch_ns(on_gpu.device, wait)
    before = own_calls()
    with _interpreted(), shared_generators() as generators, Recorder(wait) as recorder:
        wait()
        start = time.perf_counter_ns()
        model(*args, **kwargs)
        wait()
        total = time.perf_counter_ns() - start - recorder.looking_ns
    after = own_calls()
    operators = {
        name: [count, recorder.nanoseconds[name]]
        for name, count in recorder.calls.items()
        if not (_is_free(name) or recorder.filled.get(name, _SMALL_FILL + 1) <= _SMALL_FILL)
    }
    operators, total = _beyond_launches(operators, total, launch_ns)
    own = {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}
    own |= recorder.own
    precisions = recorder.precisions | float32_precisions() | unusual_modes()
    answer = {
        "operators": operators, "own": own, "ns": total, "counted": _counted(), "precisions": precisions,
        "generators": generators,
    }  # fmt: skip
    if closely:
        answer["other"], others = other_work(lambda: model(*args, **kwargs), recorder)
        answer["own"] = others | own
    return answer


def _launch_ns(device: torch.device, wait: Callable[[], None]) -> int:
    """Time of launching an operator on one number and waiting for it."""
    one, found = torch.ones(1, device=device), []
    for _ in range(_LAUNCHES):
        wait()
        start = time.perf_counter_ns()
        _NEGATED(one)
        wait()
        found.append(time.perf_counter_ns() - start)
    return int(_MARGIN * sorted(found)[_LAUNCHES // 2])


def _beyond_launches(
    operators: dict[str, list[int]], total: int, launch_ns: int
) -> tuple[dict[str, list[int]], int]:
    """Operators and the time of the call, without what launching operators and waiting for them takes.

    A GPU computes while the next operator is launched. If launches are a large part of the call they count,
    because there is little to compute meanwhile.
    """
    launches = {name: min(spent, calls * launch_ns) for name, (calls, spent) in operators.items()}
    if sum(launches.values()) > _LAUNCH_BOUND * total:
        return operators, total
    worked = {name: [calls, spent - launches[name]] for name, (calls, spent) in operators.items()}
    return worked, total - sum(launches.values())


def other_work(run: Callable[[], Any], recorder: Recorder) -> tuple[dict[str, list[int]], dict[str, int]]:
    """What a recorder missed in calls like the one that it saw.

    Returns:
        Operators of torch to `[part, ns of the call]`; the name is empty for time in which neither operators
        nor own kernels ran. And own operators to calls: those that torch takes apart before a dispatch mode
        sees them, as they have no dispatch key.
    """
    seen: dict[str, int] = {}
    for name, spent in recorder.nanoseconds.items():
        short = _short(name)
        seen[short] = seen.get(short, 0) + spent
    times = own_function_times(run)
    total = min(total for total, _ in times)
    opened = set(map(_short, recorder.opened))
    profile = profiled(run, set(seen))
    missed = {
        name: [spent - seen.get(name, 0), total]
        for name, spent in profile.torchs.items()
        if name not in opened and not _is_free(f"{name}.")
    }
    others = {n: x for n, x in profile.others.items() if n not in opened and is_own_operator(n)}
    known = sum(seen.values()) + recorder.own_ns + sum(spent for _, spent in others.values())
    missed[""] = min([whole - own - known, whole] for whole, own in times)
    return {n: x for n, x in missed.items() if x[0] > 0}, {n: calls for n, (calls, _) in others.items()}


def _short(name: str) -> str:
    """An operator's name without its overload."""
    return ".".join(name.split(".")[:2])

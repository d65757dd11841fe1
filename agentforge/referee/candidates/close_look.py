"""A second look at calls, for tasks that ask for own kernels.

No dispatch mode runs, so that code runs as it is timed. torch's profiler sees operators in all threads, and
those that a dispatch mode does not see.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from agentforge.languages import CPP_RUNTIME

_CALLS = 3
_LONG_NS = 100_000_000
"""A call of this length is looked at once."""
_GLUE_NS = 5_000
"""Time around a call of an own function, for its arguments and for the Python code that calls it."""
_SPACES = ("aten", "mkl", "mkldnn", "onednn", "quantized")
"""Namespaces of torch's operators that compute on a CPU."""


class Stopwatch:
    """Times calls of the functions of C++ sources."""

    def __init__(self) -> None:
        self.nanoseconds = 0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that counts its time here."""

        def call(*args: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return function(*args)
            finally:
                self.nanoseconds += time.perf_counter_ns() - start + _GLUE_NS

        return call


@contextmanager
def own_functions_timed() -> Iterator[Stopwatch]:
    """Time the functions of the C++ sources that this process loaded."""
    watch = Stopwatch()
    runtime = sys.modules.get(CPP_RUNTIME.removesuffix(".py"))
    scopes = [
        value.__globals__
        for library in list(getattr(runtime, "_LIBRARIES", {}).values())
        for value in vars(library).values()
        if hasattr(value, "__globals__") and "_f" in value.__globals__
    ]
    functions = [scope["_f"] for scope in scopes]
    for scope, function in zip(scopes, functions, strict=True):
        scope["_f"] = watch.timed(function)
    try:
        yield watch
    finally:
        for scope, function in zip(scopes, functions, strict=True):
            scope["_f"] = function


def own_function_times(run: Callable[[], Any]) -> list[tuple[int, int]]:
    """Time of some calls, and of the own C++ functions in them, in nanoseconds."""
    found = []
    for _ in range(_CALLS):
        with own_functions_timed() as watch:
            start = time.perf_counter_ns()
            run()
            found.append((time.perf_counter_ns() - start, watch.nanoseconds))
        if found[-1][0] > _LONG_NS:
            break
    return found


class Profile(NamedTuple):
    """What torch's profiler tells of a call, in all threads."""

    torchs: dict[str, int]
    """Nanoseconds of torch's operators, by name."""
    others: dict[str, tuple[int, int]]
    """Calls of other operators, and nanoseconds of their own, by name."""


def profiled(run: Callable[[], Any], seen: set[str]) -> Profile:
    """The profile of two calls of a model, with the least time of each operator.

    An operator of torch in `seen` counts with all that it runs, another one with its own time alone.
    """
    one, two = _profiled(run, seen), _profiled(run, seen)
    return Profile(
        {name: min(spent, two.torchs.get(name, 0)) for name, spent in one.torchs.items()},
        {name: min(entry, two.others[name]) for name, entry in one.others.items() if name in two.others},
    )


def _profiled(run: Callable[[], Any], seen: set[str]) -> Profile:
    everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.autograd.profiler.profile(experimental_config=everywhere) as profile:
        run()
    found = Profile({}, {})
    for event in profile.function_events or ():
        name = event.name.replace("::", ".")
        if name.partition(".")[0] not in _SPACES:
            calls, spent = found.others.get(name, (0, 0))
            found.others[name] = calls + 1, spent + int(1_000 * event.self_cpu_time_total)
        elif not _is_inside(event.cpu_parent, seen):
            spent = event.cpu_time_total if name in seen else event.self_cpu_time_total
            found.torchs[name] = found.torchs.get(name, 0) + int(1_000 * spent)
    return found


def _is_inside(event: Any, seen: set[str]) -> bool:
    """Whether an event or one around it is an operator in `seen`."""
    while event is not None:
        if event.name.replace("::", ".") in seen:
            return True
        event = event.cpu_parent
    return False

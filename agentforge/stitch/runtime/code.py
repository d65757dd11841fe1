"""The code of a model's classes: it tells whether a model still computes what was captured."""

from __future__ import annotations

import dis
import hashlib
import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any


def methods(cls: type) -> Iterator[FunctionType]:
    """The forward of a class, and the methods and properties that it uses."""
    waiting, done = ["forward"], set()
    while waiting:
        name = waiting.pop()
        found: Any = getattr(cls, name)
        found = found.fget if isinstance(found, property) else found
        function: Any = inspect.unwrap(found)
        if name in done or not hasattr(function, "__code__"):
            continue
        done.add(name)
        yield function
        for code in codes(function.__code__):
            used = ((used, getattr(cls, used, None)) for used in code.co_names)
            waiting += [used for used, value in used if callable(value) or isinstance(value, property)]


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def fingerprint(cls: type) -> str:
    """Python's version and a hash of what the forward of a class executes; empty if all of it is torch's.

    Counted are the instructions and defaults of `methods`, and of the functions in their modules that they
    name; comments, docstrings and formatting are not.
    """
    texts: dict[int, str] = {}
    waiting: list[Any] = [*methods(cls)]
    for function in waiting:  # which grow
        if id(function) in texts or not isinstance(function, FunctionType) or of_torch(function):
            continue
        texts[id(function)] = f"{_text(function.__code__)} {_defaults(function)}"
        for name in (name for code in codes(function.__code__) for name in code.co_names):
            used = function.__globals__.get(name)
            if isinstance(used, FunctionType) and used.__module__ == function.__module__:
                waiting.append(inspect.unwrap(used))
    if not texts:
        return ""
    version = ".".join(map(str, (*sys.version_info[:3], sys.flags.optimize)))
    return f"{version}:{hashlib.sha256(chr(10).join(texts.values()).encode()).hexdigest()[:12]}"


def of_torch(function: Any) -> bool:
    """Whether a function is torch's own, also under a decorator."""
    owner = getattr(inspect.unwrap(function), "__globals__", {}).get("__name__", "")
    return str(owner).partition(".")[0] == "torch"


def differ(one: str, other: str) -> bool:
    """Whether two fingerprints are of different code; bytecode of two versions of Python tells nothing, but
    torch's code is none of a user's."""
    comparable = not (one and other) or one.partition(":")[0] == other.partition(":")[0]
    return one != other and comparable


def _text(code: CodeType) -> str:
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    steps = [f"{step.opname} {_constant(step.argval)}" for step in dis.get_instructions(code)]
    return "\n".join([str(parameters), *steps])


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return f"({_text(value)})"
    if isinstance(value, frozenset):
        return str(sorted(map(repr, value)))
    return repr(value)


def _defaults(function: FunctionType) -> str:
    """Text of the defaults that are plain values."""
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return str([value for value in values if isinstance(value, (bool, int, float, str, type(None)))])

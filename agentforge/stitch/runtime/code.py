"""The code of a model's classes: it tells whether a model still computes what was captured."""

from __future__ import annotations

import dis
import enum
import hashlib
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import torch

LONGEST = 1000
"""Characters of a value's text; longer ones are data and not compared."""

_HASH = re.compile(r"<([\d.]+):[0-9a-f]{12}>")
"""What `plain_text` has for code."""


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
    texts = [f"{_text(function.__code__)} {_defaults(function)}" for function in _functions(cls)]
    return _hash("\n".join(texts)) if texts else ""


def _functions(cls: type) -> list[FunctionType]:
    """The functions that a fingerprint counts."""
    found: dict[int, FunctionType] = {}
    waiting: list[Any] = [*methods(cls)]
    for function in waiting:  # which grow
        if id(function) in found or not isinstance(function, FunctionType) or of_torch(function):
            continue
        found[id(function)] = function
        for name in (name for code in codes(function.__code__) for name in code.co_names):
            used = function.__globals__.get(name)
            if isinstance(used, FunctionType) and used.__module__ == function.__module__:
                waiting.append(inspect.unwrap(used))
    return [*found.values()]


def _hash(text: str) -> str:
    version = ".".join(map(str, (*sys.version_info[:3], sys.flags.optimize)))
    return f"{version}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def values(cls: type) -> dict[str, str]:
    """Text of each plain value that the code of a fingerprint reads from its module, its class or a closure.

    Left out is what that code assigns, what says where a model is, and what has its own name, as a method.
    """
    found: dict[str, tuple[str, Any]] = {}
    assigned: set[str] = set()
    for function in _functions(cls):
        steps = _steps(function)
        assigned |= {s.argval for s in steps if s.opname in ("STORE_GLOBAL", "STORE_ATTR", "STORE_DEREF")}
        read = dict(_read(function, steps))
        for name in (s.argval for s in steps if s.opname in ("LOAD_ATTR", "LOAD_METHOD")):
            if not name.startswith("__"):
                read[f"self.{name}"] = getattr(cls, name, cls)
        for place, value in read.items():
            found[f"{place} in {function.__qualname__}"] = place.removeprefix("self."), value
    texts = {
        place: text
        for place, (name, value) in found.items()
        if name not in assigned and "device" not in name.lower() and (text := plain_text(value)) != name
    }
    return {place: text for place, text in texts.items() if 0 < len(text) <= LONGEST}


def _steps(function: FunctionType) -> list[dis.Instruction]:
    return [step for code in codes(function.__code__) for step in dis.get_instructions(code)]


def _read(function: FunctionType, steps: Sequence[dis.Instruction]) -> Iterator[tuple[str, Any]]:
    """Names and values of the globals and of the closure that a function reads, but no paths of a machine."""
    names = {step.argval for step in steps if step.opname == "LOAD_GLOBAL"} & function.__globals__.keys()
    held = {name: function.__globals__[name] for name in sorted(names) if not name.startswith("__")}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is still empty
            held[name] = cell.cell_contents
    return ((n, v) for n, v in held.items() if not (isinstance(v, str) and Path(v).is_absolute()))


def plain_text(value: Any) -> str:
    """Text of a number, string, flag, None, dtype, enumeration, function or a tuple or list of those; else
    empty. A function is named; a lambda and one within another function have a hash of their code too."""
    if (numpy := sys.modules.get("numpy")) and isinstance(value, numpy.generic):
        value = value.item()
    if _is_simple(value) or type(value) is torch.dtype:
        return repr(value)
    if isinstance(value, (tuple, list)) and value:
        texts = [plain_text(item) for item in value]
        return f"({', '.join(texts)})" if all(texts) else ""
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, partial):
        given = [plain_text(item) for item in (value.func, *value.args, *value.keywords.values())]
        return f"partial({', '.join(given)} for {list(value.keywords)})" if all(given) else ""
    if isinstance(value, FunctionType) and "<" in value.__qualname__ and not of_torch(value):
        read = [(name, item) for name, item in _read(value, _steps(value)) if _is_simple(item)]
        return f"{value.__name__}<{_hash(f'{_text(value.__code__)} {_defaults(value)} {read}')}>"
    return value.__name__ if isinstance(value, (FunctionType, BuiltinFunctionType)) else ""


def _is_simple(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def unlike(one: str, other: str) -> bool:
    """Whether two plain texts are of different values. Hashes count if both have them, by the same version of
    Python: earlier versions of AgentForge wrote none."""
    comparable = _HASH.findall(one) == _HASH.findall(other)
    return one != other and (comparable or _HASH.sub("", one) != _HASH.sub("", other))


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

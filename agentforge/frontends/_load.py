"""Load a source in KernelBench's convention as a `Target`; shared by all frontends."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentforge.isolation.child_process import ChildFailure, Progress, run_child
from agentforge.limits import free_memory
from agentforge.problems.own_modules import above_packages
from agentforge.schema import (
    NOT_PYTHON,
    Definition,
    DType,
    MemoryShortageError,
    Target,
    TargetError,
    UnsupportedTargetError,
    Workload,
)
from agentforge.visible import shortened

if TYPE_CHECKING:
    from agentforge.problems.failures import KnownFailures

_TIMEOUT_S = 600.0
_STARTING_S, _FORWARDS = 60.0, 10
"""With a limit for a forward: seconds for loading, and forwards, after which the model is given up."""
_ELSEWHERE: dict[str, type[TargetError]] = {
    "timeout": UnsupportedTargetError,
    "out_of_memory": MemoryShortageError,
}
"""Failures after which another machine may be able to run the model."""
_MAX_SOURCE_BYTES = 16 << 20
_DOTS = re.compile(r"from\s*\.[.\s]*")
_OWN_ARGUMENTS = """

# --- added by AgentForge: without arguments, the constructor takes those of get_init_inputs() ---
_initialise, _get_init_inputs = Model.__init__, get_init_inputs


def _initialise_by_itself(self, *args, **kwargs):
    if not args and not kwargs:
        given = _get_init_inputs()
        args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
    _initialise(self, *args, **kwargs)


Model.__init__ = _initialise_by_itself


def get_init_inputs():
    return []
"""
"""Appended to a source whose constructor takes what cannot be sent to other processes, such as a config."""


def read_source(path: Path) -> str:
    """Text of a Python file; its imports relative to its package become absolute.

    Raises:
        TargetError: missing, not a file, not readable, not Python.
    """
    if not path.exists():
        raise TargetError(f"{path} does not exist; give the path of a Python file")
    if not path.is_file():
        raise TargetError(f"{path} is not a file; give the path of a Python file")
    try:
        size = path.stat().st_size
        if size > _MAX_SOURCE_BYTES:
            raise TargetError(
                f"{path} has {size >> 20} MiB; a reference's source has at most {_MAX_SOURCE_BYTES >> 20} MiB"
            )
        source = path.read_text(encoding="utf-8-sig")
        if not source.strip():
            raise TargetError(f"{path} is empty; give a file with class Model, get_inputs, get_init_inputs")
        ast.parse(source, path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} cannot be read: {error}") from error
    except NOT_PYTHON as error:
        raise TargetError(f"{path} is not valid Python ({error}); correct it first") from error
    return _absolute_imports(source, path)


def _absolute_imports(source: str, path: Path) -> str:
    """Write `from package.layers import` for `from .layers import`: elsewhere the source has no package."""
    found = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom) and n.level]
    lines, folder = source.split("\n"), path.resolve().parent
    package = folder.relative_to(above_packages(folder)).parts
    for node in sorted(found, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        if node.level > len(package):
            continue  # it may have an alternative for this case
        base = ".".join(package[: len(package) - node.level + 1])
        line = lines[node.lineno - 1].encode()
        before, rest = line[: node.col_offset].decode(), line[node.col_offset :].decode()
        start = f"from {base}." if node.module else f"from {base} "
        lines[node.lineno - 1] = before + _DOTS.sub(start, rest, count=1)
    return "\n".join(lines)


def declared_contract(source: str) -> dict[str, Any]:
    """Module-level constants of a source: `differentiable = True` if gradients are part of the contract,
    `dtypes = ("bfloat16", "float64")` for further dtypes of its inputs, `finite = True` if inputs never hold
    NaN or infinities.

    Raises:
        TargetError: an unknown dtype.
    """
    found: dict[str, Any] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        try:
            value = ast.literal_eval(node.value)
        except ValueError:
            continue
        if name in ("differentiable", "finite") and isinstance(value, bool):
            found[name] = value
        elif name == "dtypes" and isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
            unknown = [v for v in value if v not in tuple(DType)]
            if unknown:
                raise TargetError(f"dtypes names {unknown[0]!r}; the types are {', '.join(DType)}")
            found[name] = tuple(DType(v) for v in value)
    return found


def make_target(
    *,
    name: str,
    origin: str,
    source: str,
    import_root: str | None,
    device: str,
    description: str = "",
    progress: Progress | None = None,
    longest_s: float | None = None,
    advice: str = "",
    failures: KnownFailures | None = None,
) -> Target:
    """Run the model once in a child process and describe it.

    Args:
        advice: what to do if forward raises; empty for the usual.
        longest_s, failures: see `FrontendOptions`.

    Raises:
        UnsupportedTargetError: it needs more memory (`MemoryShortageError`) or time than there is.
        TargetError: the model cannot be used.
    """
    definition = define(name, origin, source, import_root, description)
    payload = {
        "definition": definition.model_dump(mode="json"),
        "device": device,
        "longest_s": longest_s,
        "advice": advice,
    }
    known = failures if import_root is None else None  # files beside it may have changed
    found = run_probe("agentforge.frontends.probe:probe", name, payload, progress, known)
    if kind := found["unsendable"]:
        definition = define(name, origin, source + _OWN_ARGUMENTS, import_root, description)
        found["notes"].append(
            f"get_init_inputs() returns a {kind}, which the model's constructor makes by itself; "
            "a ModelNew is constructed without arguments"
        )
    return as_target(definition, origin, device, found)


def define(
    name: str, origin: str, source: str, import_root: str | None = None, description: str = ""
) -> Definition:
    """The definition of a whole model."""
    return Definition(
        name=name,
        op_type="model",
        reference=source,
        import_root=import_root,
        description=description or f"The whole model of {origin}.",
        **declared_contract(source),
    )


def as_target(definition: Definition, origin: str, device: str, found: Mapping[str, Any]) -> Target:
    """A target from what the probe found: `workloads`, or the `inputs` of the only one."""
    return Target(
        name=definition.name,
        origin=origin,
        definition=definition,
        workloads=tuple(
            map(Workload.model_validate, found.get("workloads") or [_only_workload(found["inputs"])])
        ),
        device=device,
        notes=tuple(found["notes"]),
    )


def _only_workload(inputs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    shapes = [i["shape"] for i in inputs if i["type"] == "tensor"]
    name = "_".join("x".join(map(str, s)) or "scalar" for s in shapes[:4]) or "no-tensors"
    return {"name": name, "source": "reference", "inputs": inputs}


def run_probe(
    task: str,
    name: str,
    payload: Mapping[str, Any],
    progress: Progress | None,
    failures: KnownFailures | None = None,
) -> dict[str, Any]:
    """Run a probe of the model `name` in a child process; `payload` names its `device`.

    Args:
        failures: a hang that is known is not waited for again, nor memory that is too small still.

    Raises:
        TargetError: the model cannot be used.
    """
    longest_s = payload.get("longest_s")
    timeout_s = min(_TIMEOUT_S, _STARTING_S + _FORWARDS * longest_s) if longest_s else _TIMEOUT_S
    memory = free_memory() if payload["device"] == "cpu" else math.nan  # a GPU's is not known here
    limits = {"timeout": {"seconds": timeout_s}, "out_of_memory": {"host_bytes": memory}}
    content = [payload["device"], payload["definition"]["reference"]] if failures else []
    for kind, error in _ELSEWHERE.items() if failures else ():
        if failures and (why := failures.find([kind, *content], limits[kind])):
            raise error(why)
    try:
        found: dict[str, Any] = run_child(
            task,
            payload,
            timeout_s=timeout_s,
            memory_bytes=None if payload["device"] == "cpu" else 0,
            progress=progress,
        )
    except ChildFailure as failure:
        why = _explain(name, failure, timeout_s)
        if failures and failure.kind in _ELSEWHERE and not failure.starved:
            failures.keep([failure.kind, *content], why, limits[failure.kind])
        raise _ELSEWHERE.get(failure.kind, TargetError)(why) from failure
    return found


def _explain(name: str, failure: ChildFailure, timeout_s: float) -> str:
    """One sentence: why the model could not run, and what to do."""
    said = shortened(str(failure))
    if failure.kind == "timeout":
        return f"{name}: it did not run within {timeout_s:.0f} s; make its inputs smaller or end its loop"
    if failure.kind == "out_of_memory":
        return f"{name}: {said}; make its inputs smaller or use a machine with more memory"
    if failure.kind == "crashed":
        return f"{name}: running it crashed its process ({said}); run it with python first and fix the crash"
    return f"{name}: {said}; run it with python first and fix the error"

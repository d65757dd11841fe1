"""From a KernelBench-convention source to a `Target`: what all frontends share."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from agentforge.harness.child import ChildFailure, run_child
from agentforge.schema import Definition, DType, InputSpec, Target, TargetError, Workload

_TIMEOUT_S = 600.0
_MAX_SOURCE_BYTES = 16 << 20


def read_source(path: Path) -> str:
    """Text of a Python file.

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
        source = path.read_text(encoding="utf-8")
        if not source.strip():
            raise TargetError(f"{path} is empty; give a file with class Model, get_inputs, get_init_inputs")
        ast.parse(source)
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} cannot be read: {error}") from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TargetError(f"{path} is not valid Python ({error}); mend it first") from error
    return source


def import_root_of(source: str, folder: Path) -> str | None:
    """`folder` where the source imports a module that lies there, else None.

    A self-contained file keeps no trace of where it lay, so that its definition's hash is the same on
    every machine.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            heads = [a.name.split(".")[0] for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            heads = [node.module.split(".")[0]]
        else:
            continue
        for head in heads:
            if (folder / f"{head}.py").is_file() or (folder / head).is_dir():
                return str(folder.resolve())
    return None


def asked_for(source: str) -> dict[str, Any]:
    """What a source says of its own contract at module level: `differentiable = True` where gradients belong
    to it, `dtypes = ("bfloat16", "float64")` for other types of its inputs.

    Raises:
        TargetError: an unknown type.
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
        if name == "differentiable" and isinstance(value, bool):
            found[name] = value
        elif name == "dtypes" and isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
            unknown = [v for v in value if v not in tuple(DType)]
            if unknown:
                raise TargetError(f"dtypes names {unknown[0]!r}; the types are {', '.join(DType)}")
            found[name] = tuple(DType(v) for v in value)
    return found


def make_target(
    *, name: str, origin: str, source: str, import_root: str | None, device: str, description: str = ""
) -> Target:
    """Probe the model in a child process and describe it.

    Raises:
        TargetError: it cannot be used; one sentence that says what is wrong and what to do.
    """
    definition = Definition(
        name=name,
        op_type="model",
        reference=source,
        import_root=import_root,
        description=description or f"The whole model of {origin}.",
        **asked_for(source),
    )
    found = _probe(definition, device)
    inputs: list[InputSpec] = found["inputs"]
    shapes = [i["shape"] for i in found["inputs"] if i["type"] == "tensor"]
    workload = Workload.model_validate(
        {
            "name": "_".join("x".join(map(str, s)) or "scalar" for s in shapes[:4]) or "no-tensors",
            "source": "reference",
            "inputs": inputs,
        }
    )
    return Target(
        name=name,
        origin=origin,
        definition=definition,
        workloads=(workload,),
        device=device,
        notes=tuple(found["notes"]),
    )


def _probe(definition: Definition, device: str) -> dict[str, Any]:
    payload = {"definition": definition.model_dump(mode="json"), "device": device}
    try:
        found: dict[str, Any] = run_child(
            "agentforge.frontends.probe:probe",
            payload,
            timeout_s=_TIMEOUT_S,
            memory_bytes=None if device == "cpu" else 0,
        )
    except ChildFailure as failure:
        raise TargetError(_explain(definition.name, failure)) from failure
    return found


def _explain(name: str, failure: ChildFailure) -> str:
    """One sentence on why the model could not be run, and what to do."""
    if failure.kind == "timeout":
        return f"{name}: one forward did not end within {_TIMEOUT_S:g} s; make its inputs smaller"
    if failure.kind == "out_of_memory":
        return f"{name}: {failure}; make its inputs smaller or use a machine with more memory"
    if failure.kind == "crashed":
        return f"{name}: running it crashed its process ({failure}); run it with python first and mend that"
    return f"{name}: {failure}; run it with python first and mend that"

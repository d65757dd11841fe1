"""From a KernelBench-convention source to a `Target`: what all frontends share."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from agentforge.harness.child import ChildFailure, run_child
from agentforge.schema import Definition, InputSpec, Target, TargetError, Workload

_TIMEOUT_S = 600.0


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
        source = path.read_text(encoding="utf-8")
        ast.parse(source)
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} cannot be read: {error}") from error
    except (SyntaxError, ValueError) as error:
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

"""Our nouns in the JSON of the FlashInfer Trace schema, as plain dictionaries, and solutions in it as ours.

The schema (https://bench.flashinfer.ai/docs/flashinfer-trace) names axes, and enters a reference by a
function `run`. What it has no place for (tolerance, policy, parameters) travels under a key `agentforge`,
which its own readers skip, so our solutions are read back exactly. The rest is refused with `UsageError`:
dtypes that it lacks, None and strings as arguments, references that are not self-contained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from ..definition import Definition
from ..errors import UsageError, first_fault
from ..solution import BuildSpec, Solution, SourceFile
from ..workload import InputSpec, TensorInput, Workload
from . import code
from .axes import Axes
from .extension import EXTENSION_FILE, extension_file, is_extension

Json = dict[str, Any]
EXTENSION = "agentforge"


def definition_to_flashinfer(
    definition: Definition,
    workloads: Sequence[Workload],
    outputs: Sequence[Sequence[TensorInput]],
) -> Json:
    """A `Definition` of the schema.

    An axis whose size differs between the workloads is variable; sizes that agree in all of them share it.

    Args:
        definition: self-contained.
        workloads: at least one; all with the same arguments.
        outputs: for each workload, the tensors that `forward` returns.

    Raises:
        UsageError: it cannot be said in the schema.
    """
    if definition.import_root is not None:
        raise UsageError(f"{definition.name}: its reference imports from a folder; make it self-contained")
    if not workloads or len(outputs) != len(workloads):
        raise UsageError(f"{definition.name}: give at least one workload, and outputs for each of them")
    axes = Axes()
    inputs = axes.arguments([w.inputs for w in workloads])
    known = set(axes.found)
    results = axes.arguments(outputs)
    unbound = [n for n in set(axes.found) - known if axes.found[n]["type"] == "var"]
    if unbound or inputs.keys() & results.keys():
        raise UsageError(f"{definition.name}: an output has an input's name, or a size that no input has")
    return {
        "name": definition.name,
        "op_type": definition.op_type,
        "axes": axes.found,
        "inputs": inputs,
        "outputs": results,
        "reference": code.with_run(definition.reference, workloads[0].inputs),
        "tags": [tag for tag in definition.tags if tag],
        "description": definition.description or None,
        EXTENSION: definition.model_dump(mode="json", exclude={"reference"}),
    }


def solution_to_flashinfer(solution: Solution, definition: Definition, inputs: Sequence[InputSpec]) -> Json:
    """A `Solution` of the schema: our files, and one with `run` that builds `ModelNew` and calls it."""
    added = code.run_files(solution, definition, inputs)
    clash = added.keys() & {s.path for s in solution.sources}
    if clash:
        raise UsageError(f"solution {solution.name} has a file {min(clash)}: rename it")
    files = {s.path: s.content or "\n" for s in solution.sources} | added
    return {
        "name": solution.name,
        "definition": definition.name,
        "author": solution.author,
        "spec": {
            "language": "python",  # the entry is; what it loads builds itself
            "target_hardware": ["cuda" if solution.spec.needs_gpu else "cpu"],
            "entry_point": f"{code.RUN_FILE}::run",
            "dependencies": list(solution.spec.dependencies),
            "destination_passing_style": False,
        },
        "sources": [{"path": path, "content": text} for path, text in files.items()],
        "description": solution.description or None,
        EXTENSION: {
            **solution.model_dump(mode="json", exclude={"sources"}),
            "empty": [s.path for s in solution.sources if not s.content],
        },
    }


def solution_from_flashinfer(
    data: Mapping[str, Any],
    definition: Mapping[str, Any],
    definition_hash: str,
    axes: Mapping[str, Any] | None = None,
) -> Solution:
    """Our `Solution`; one of theirs gets a `ModelNew` around its function.

    Args:
        axes: a workload's sizes of the variable axes; None for a solution of any workload.

    Raises:
        UsageError: a field is missing or does not fit, or nothing here can enter its function.
    """
    with _reading(data):
        files = {s["path"]: s["content"] for s in data["sources"]}
        if EXTENSION in data:
            own = dict(data[EXTENSION])
            for path in own.pop("empty"):
                files[path] = ""
            kept = [{"path": p, "content": t} for p, t in files.items() if p not in code.ADDED_FILES]
            return Solution.model_validate({**own, "definition": definition_hash, "sources": kept})
        spec = data["spec"]
        language = spec["language"] if "language" in spec else spec["languages"][0]
        entry, written = spec["entry_point"], "triton" if language == "triton" else "python"
        if is_extension(entry):
            text, cuda = extension_file(data)
            files, written = {EXTENSION_FILE: text}, "cuda" if cuda else "python"
            entry = f"{EXTENSION_FILE}::{entry.partition('::')[2]}"
        elif not (place := entry.partition("::")[0]).endswith(".py"):
            raise UsageError(f"solution {data['name']} is entered in {place} ({language}), which is not read")
        in_place = spec.get("destination_passing_style", True)
        files[code.MODEL_FILE] = code.model_file(entry, definition, axes, in_place=in_place)
        return Solution(
            name=data["name"],
            definition=definition_hash,
            author=data["author"],
            spec=BuildSpec(
                language=written,
                entry_point=f"{code.MODEL_FILE}::ModelNew",
                dependencies=tuple(spec.get("dependencies") or ()),
            ),
            sources=tuple(SourceFile(path=p, content=t) for p, t in files.items()),
            description=data.get("description") or "",
        )


@contextmanager
def _reading(data: Mapping[str, Any]) -> Iterator[None]:
    """Whatever does not fit in a foreign solution becomes one `UsageError`."""
    what = f"solution {data.get('name', '')}".strip()
    try:
        yield
    except ValidationError as error:
        field, message = first_fault(error)
        raise UsageError(f"{what}: field {field!r}: {message}") from error
    except KeyError as error:
        raise UsageError(f"{what}: {error} is missing") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{what} does not follow the FlashInfer Trace schema: {error}") from error

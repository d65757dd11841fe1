"""Our nouns to and from the JSON of the FlashInfer Trace schema, as plain dictionaries.

The schema (https://bench.flashinfer.ai/docs/flashinfer-trace) names axes, enters a reference by a function
`run`, and keeps one trace a workload. What it has no place for (value distributions, strides, tolerance,
evidence, intervals) travels under a key `agentforge`, which its own readers skip and ours read back exactly.
The rest is refused with `UsageError`: dtypes it lacks, None and strings as arguments, references that are not
self-contained, one set of figures for several workloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from ..definition import Definition, DType
from ..errors import UsageError
from ..evaluation import (
    Correctness,
    Environment,
    Evaluation,
    Evidence,
    Level,
    Metric,
)
from ..solution import BuildSpec, Solution, SourceFile
from ..status import EvaluationStatus
from ..workload import Distribution, InputSpec, ScalarInput, TensorInput, Workload
from . import code
from .axes import Axes
from .extension import EXTENSION_FILE, extension_file, is_extension
from .sizes import axis_sizes
from .source import workload_source

Json = dict[str, Any]
EXTENSION = "agentforge"
_STATUS = {
    EvaluationStatus.NONDETERMINISTIC: EvaluationStatus.INCORRECT_NUMERICAL,
    EvaluationStatus.OUT_OF_MEMORY: EvaluationStatus.RUNTIME_ERROR,
    EvaluationStatus.CRASHED: EvaluationStatus.RUNTIME_ERROR,
    EvaluationStatus.CHEATING: EvaluationStatus.RUNTIME_ERROR,
    EvaluationStatus.UNSUPPORTED: EvaluationStatus.RUNTIME_ERROR,
}
"""Statuses that the schema lacks, and the nearest that it has."""


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
    axes = Axes(len(workloads))
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


def definition_from_flashinfer(data: Mapping[str, Any], workload: Mapping[str, Any]) -> Definition:
    """Our `Definition`; one of theirs gets a `Model` around its `run`.

    Args:
        workload: one of its workloads, from which `get_inputs()` takes the shapes.

    Raises:
        UsageError: a field is missing or does not fit.
    """
    with _Reading("definition", data):
        if EXTENSION in data:
            reference = code.without_run(data["reference"])
            return Definition.model_validate({**data[EXTENSION], "reference": reference})
        return Definition(
            name=data["name"],
            op_type=data["op_type"],
            reference=workload_source(data, workload, ()),
            description=data.get("description") or "",
            tags=tuple(data.get("tags") or ()),
        )


def workload_to_flashinfer(workload: Workload, definition: Mapping[str, Any]) -> Json:
    """A `Workload` of the schema.

    Raises:
        UsageError: the workload does not fit the definition's axes.
    """
    sizes: dict[str, int] = {}
    inputs: Json = {}
    for argument in workload.inputs:
        if isinstance(argument, ScalarInput):
            inputs[argument.name] = {"type": "scalar", "value": argument.value}
            continue
        inputs[argument.name] = {"type": "random"}
        spec = definition["inputs"].get(argument.name, {"shape": None})["shape"]
        if spec is None or len(spec) != len(argument.shape):
            raise UsageError(f"workload {workload.name}: input {argument.name} is not the definition's")
        for axis, size in zip(spec, argument.shape, strict=True):
            constant = definition["axes"][axis].get("value")
            if (constant if constant is not None else sizes.setdefault(axis, size)) != size:
                raise UsageError(f"workload {workload.name}: axis {axis} of {argument.name} does not agree")
    extension = workload.model_dump(mode="json")
    return {"uuid": workload.name, "axes": sizes, "inputs": inputs, EXTENSION: extension}


def workload_from_flashinfer(data: Mapping[str, Any], definition: Mapping[str, Any]) -> Workload:
    """Our `Workload`; random tensors of theirs are drawn from a standard normal, integers from [0, 128).

    Raises:
        UsageError: a field is missing or does not fit, or a tensor lies in a file.
    """
    with _Reading("workload", data):
        if EXTENSION in data:
            return Workload.model_validate(data[EXTENSION])
        sizes = axis_sizes(definition["axes"], data["axes"])
        inputs = tuple(
            _argument(name, spec, data["inputs"][name], sizes) for name, spec in definition["inputs"].items()
        )
        return Workload(name=data["uuid"], inputs=inputs)


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
    data: Mapping[str, Any], definition: Mapping[str, Any], definition_hash: str
) -> Solution:
    """Our `Solution`; one of theirs gets a `ModelNew` around its function.

    Raises:
        UsageError: a field is missing or does not fit, or nothing here can enter its function.
    """
    with _Reading("solution", data):
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
        files[code.MODEL_FILE] = code.model_file(entry, definition, in_place=in_place)
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


def trace_to_flashinfer(
    evaluation: Evaluation, workload: Workload, definition: Mapping[str, Any], solution: Mapping[str, Any]
) -> Json:
    """A `Trace` of the schema.

    Raises:
        UsageError: the evaluation is of other workloads, failed in the harness, or passed without a timing.
    """
    if evaluation.workloads != (workload.hash,):
        raise UsageError("a trace is of one workload: evaluate each alone to write its trace")
    status = _STATUS.get(evaluation.status, evaluation.status)
    if status is EvaluationStatus.HARNESS_ERROR:
        raise UsageError("the harness failed in this evaluation: evaluate again to write a trace")
    environment = evaluation.environment
    result: Json = {
        "status": status.value,
        "environment": {"hardware": environment.device or "unknown", "libs": environment.toolchain},
        "timestamp": evaluation.timestamp.isoformat(),
        "log": evaluation.log,
        "correctness": None,
        "performance": None,
        EXTENSION: evaluation.model_dump(mode="json"),
    }
    if status in (EvaluationStatus.PASSED, EvaluationStatus.INCORRECT_NUMERICAL):
        result["correctness"] = _correctness(evaluation.correctness)
    if status is EvaluationStatus.PASSED:
        result["performance"] = _performance(evaluation)
    return {
        "definition": definition["name"],
        "workload": workload_to_flashinfer(workload, definition),
        "solution": solution["name"],
        "evaluation": result,
    }


def evaluation_from_flashinfer(
    trace: Mapping[str, Any], definition_hash: str, solution_hash: str, workload: Workload
) -> Evaluation:
    """Our `Evaluation`. One of theirs is `unverified`: its figures become metrics, not a performance.

    Raises:
        UsageError: the trace has no evaluation, or a field does not fit.
    """
    data = trace.get("evaluation")
    if data is None:
        raise UsageError("this trace has a workload only: name one with an evaluation")
    with _Reading("evaluation", data):
        if EXTENSION in data:
            return Evaluation.model_validate(data[EXTENSION])
        environment, correct = data["environment"], data.get("correctness")
        time = datetime.fromisoformat(data["timestamp"])
        return Evaluation(
            definition=definition_hash,
            solution=solution_hash,
            workloads=(workload.hash,),
            level=Level.QUICK,
            status=EvaluationStatus(data["status"]),
            evidence=Evidence.UNVERIFIED,
            reasons=("measured by another harness; evaluate it here to verify it",),
            correctness=_foreign_correctness(correct) if correct else None,
            metrics=tuple(
                Metric(name=name, value=value, source="flashinfer")
                for name, value in (data.get("performance") or {}).items()
            ),
            environment=Environment(
                device=environment["hardware"], architecture="", toolchain=environment.get("libs") or {}
            ),
            log=data.get("log") or "",
            timestamp=time if time.tzinfo else time.replace(tzinfo=UTC),
        )


def _correctness(correctness: Correctness | None) -> Json:
    if correctness is None:
        return {"max_relative_error": "NaN", "max_absolute_error": "NaN"}
    kept = correctness.model_dump(mode="json", include={"max_relative_error", "max_absolute_error"})
    return {**kept, "extra": {"tolerance": correctness.tolerance, "calls": correctness.checked_calls}}


def _foreign_correctness(data: Mapping[str, Any]) -> Correctness:
    return Correctness(
        max_absolute_error=data.get("max_absolute_error", 0.0),
        max_relative_error=data.get("max_relative_error", 0.0),
        tolerance=float("nan"),
        reference_error=float("nan"),
        checked_calls=0,
    )


def _performance(evaluation: Evaluation) -> Json:
    performance = evaluation.performance
    if performance is None or "eager" not in performance.baseline_s:
        raise UsageError("a trace of a pass needs its time against eager: evaluate it with timing")
    return {
        "latency_ms": performance.latency_s * 1e3,
        "reference_latency_ms": performance.baseline_s["eager"] * 1e3,
        "speedup_factor": performance.speedup["eager"].point,
    }


def _argument(
    name: str, spec: Mapping[str, Any], value: Mapping[str, Any], sizes: Mapping[str, int]
) -> InputSpec:
    if value["type"] == "scalar":
        return ScalarInput(name=name, value=value["value"])
    if value["type"] != "random":
        raise UsageError(
            f"input {name} lies in a {value['type']} file, which cannot be read: draw it instead"
        )
    dtype = DType(spec["dtype"])
    if dtype is DType.BOOL:
        distribution = Distribution(kind="bernoulli", a=0.5)
    elif dtype.is_floating:
        distribution = Distribution()
    else:
        distribution = Distribution(kind="integers", a=0, b=128)
    shape = tuple(sizes[axis] for axis in spec["shape"] or ())
    return TensorInput(name=name, shape=shape, dtype=dtype, distribution=distribution)


class _Reading:
    """Whatever does not fit in foreign JSON becomes one `UsageError`."""

    def __init__(self, word: str, data: Mapping[str, Any]) -> None:
        self._what = f"{word} {data.get('name', '')}".strip()

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"{self._what}: field {field!r}: {first['msg']}") from error
        if isinstance(error, KeyError):
            raise UsageError(f"{self._what}: {error} is missing") from error
        if isinstance(error, TypeError | ValueError | AttributeError):
            raise UsageError(f"{self._what} does not follow the FlashInfer Trace schema: {error}") from error

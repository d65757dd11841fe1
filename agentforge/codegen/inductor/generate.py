"""Seed candidate: the code that `torch.compile` generates for an operator, as a `cpp` solution."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Any

from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.isolation.scratch import Scratch
from agentforge.schema import BuildSpec, Definition, Solution, SourceFile, Workload

from .convert import CannotConvert, Converted, convert

_log = logging.getLogger(__name__)

_HEAD = """

# What Inductor (torch {torch}) generates for this operator, called without torch.compile around it.
# It serves inputs that are laid out as those that it was generated for, in inference; all others take the
# operator's own code above.

import torch
import agentforge_cpp as _cpp

_lib = _cpp.load(__file__, "kernel.cpp")


def _empty(size, stride, dtype):
    return torch.empty_strided(size, stride, dtype=dtype)


def _view(tensor, size, stride, offset):
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)


def _fits(tensor, shape, stride, dtype):
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.shape == shape
        and tensor.stride() == stride
        and tensor.dtype is dtype
        and tensor.is_cpu
        and not (tensor.requires_grad and torch.is_grad_enabled())
    )


"""
_TASK = "agentforge.codegen.inductor.child:generate_code"
_INCLUDE = "#include <torch/csrc/inductor/cpp_prefix.h>\n\n"


def inductor_solution(
    definition: Definition, workload: Workload, *more: Workload, timeout_s: float = 300.0
) -> Solution | None:
    """Generate an implementation of a trusted reference with Inductor, in a child process.

    Args:
        timeout_s: seconds for the child, per workload.

    Returns:
        A solution by `inductor`, or None if Inductor's result cannot be used; the reason is logged at INFO.
    """
    try:
        if definition.differentiable:
            raise CannotConvert("it is differentiable, but the generated code has no backward")
        if definition.import_root is not None:
            raise CannotConvert("its reference imports files that a solution does not have")
        graphs = [_generate(definition, w, timeout_s) for w in (workload, *more)]
        return _assemble(definition, graphs)
    except CannotConvert as reason:
        _log.info("no inductor seed for %s: %s", definition.name, reason)
        return None


def _generate(definition: Definition, workload: Workload, timeout_s: float) -> dict[str, Any]:
    with closing(Scratch("inductor")) as scratch:
        payload = {
            "reference": definition.reference,
            "workload": workload.model_dump(mode="json"),
            "folder": str(scratch.path),
        }
        try:
            result: dict[str, Any] = run_child(_TASK, payload, timeout_s=timeout_s, memory_bytes=0)
        except ChildFailure as failure:
            late = f"Inductor took longer than {timeout_s:g} s"
            why = late if failure.kind == "timeout" else f"its process failed: {failure}"
            raise CannotConvert(why) from failure
    if "reason" in result:
        raise CannotConvert(result["reason"])
    return result


def _assemble(definition: Definition, graphs: list[dict[str, Any]]) -> Solution:
    converted: list[Converted] = []
    for index, graph in enumerate(graphs):
        layouts = [(tuple(o["shape"]), tuple(o["stride"])) for o in graph["origins"]]
        converted.append(convert(graph["code"], layouts, f"_{index}"))
    if not any(c.names for c in converted):
        raise CannotConvert("it consists of library calls only")
    plans = [_plan(i, g, c) for i, (g, c) in enumerate(zip(graphs, converted, strict=True))]
    head = _HEAD.replace("{torch}", graphs[0]["torch"])
    model = [definition.reference, head, *plans, _model(len(graphs), graphs[0]["keywords"])]
    kernels = _INCLUDE + "\n\n".join(c.kernels for c in converted) + "\n"
    return Solution(
        name=f"inductor {definition.name}",
        definition=definition.hash,
        author="inductor",
        spec=BuildSpec(language="cpp", flags=tuple(graphs[0]["flags"]), dependencies=("torch-headers",)),
        sources=(
            SourceFile(path="model_new.py", content="".join(model)),
            SourceFile(path="kernel.cpp", content=kernels),
        ),
        description="the code that torch.compile generates",
    )


def _plan(index: int, graph: dict[str, Any], converted: Converted) -> str:
    """Python text of one graph: its function, a layout check, and the call."""
    values, checks = [], [f"len(arguments) == {graph['count']}"]
    for origin in graph["origins"]:
        value = _attribute(origin["state"]) if "state" in origin else f"arguments[{origin['argument']}]"
        shape, stride = tuple(origin["shape"]), tuple(origin["stride"])
        values.append(value)
        checks.append(f"_fits({value}, {shape}, {stride}, torch.{origin['dtype']})")
    scalars = graph["scalars"].items()
    checks += [f"type(arguments[{i}]) is {type(v).__name__}" for i, v in scalars if v is not None]
    checks += [f"arguments[{i}] {'is' if v is None else '=='} {v!r}" for i, v in scalars]
    test = "\n        and ".join(checks)
    result = _output(graph["structure"], converted.results)
    return (
        f"{converted.function}\n\n\n"
        f"def _fits_{index}(model, arguments):\n    return (\n        {test}\n    )\n\n\n"
        f"def _forward_{index}(model, arguments):\n"
        f"    results = _run_{index}({', '.join(values)})\n    return {result}\n\n\n"
    )


def _attribute(path: str) -> str:
    """Python expression for a state_dict entry of `model`; submodules of a list have numbers as names."""
    *owners, leaf = path.split(".")
    steps = [f".{o}" if o.isidentifier() else f"._modules[{o!r}]" for o in owners]
    return f"model{''.join(steps)}.{leaf}"


def _output(structure: dict[str, Any], results: int) -> str:
    if "result" in structure:
        if structure["result"] >= results:
            raise CannotConvert("an output is computed outside the generated code")
        return f"results[{structure['result']}]"
    inner = "".join(_output(s, results) + ", " for s in structure["items"])
    return f"({inner})" if structure["tuple"] else f"[{inner}]"


def _model(count: int, keywords: list[str]) -> str:
    lines = [
        "class ModelNew(Model):",
        "    def forward(self, *positional, **keyword):",
    ]
    ordered = "".join(f", keyword.get({name!r})" for name in keywords)
    lines.append(
        f"        arguments = (*positional{ordered})" if keywords else "        arguments = positional"
    )
    for index in range(count):
        lines += [
            f"        if _fits_{index}(self, arguments):",
            f"            return _forward_{index}(self, arguments)",
        ]
    lines.append("        return super().forward(*positional, **keyword)")
    return "\n".join(lines) + "\n"

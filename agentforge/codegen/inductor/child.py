"""Child process of `inductor`: Inductor generates code for one trusted reference, without compiling it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch._inductor.compile_fx  # takes seconds: here it is imported once for all children

from agentforge.problems.kernelbench import Problem
from agentforge.schema import TensorInput, Workload


class _Complete(Exception):
    """Raised when the generated code is complete, to stop Inductor."""


class _Refused(Exception):
    """The reference cannot become a solution this way; the message says why."""


class _Capture:
    """A `torch.compile` backend that keeps Inductor's code and runs the graph eagerly."""

    def __init__(self) -> None:
        self.code = ""
        self.arguments: tuple[Any, ...] = ()
        self.results: tuple[Any, ...] = ()

    def _caught(self, code: str) -> None:
        self.code = code
        raise _Complete

    def __call__(self, graph: torch.fx.GraphModule, examples: list[Any]) -> Any:
        from torch._inductor import config
        from torch._inductor.compile_fx import compile_fx
        from torch._inductor.graph import GraphLowering

        if self.code:
            raise _Refused("torch.compile splits the reference into several graphs")
        # The kernels also run elsewhere: this process's number of threads would size their arrays.
        options = {"fx_graph_cache": False, "cpp.dynamic_threads": True}
        with mock.patch.object(GraphLowering, "save_output_code", self._caught), config.patch(options):
            try:
                compile_fx(graph, examples)
            except Exception:
                if not self.code:
                    raise
        if not self.code:
            raise _Refused("Inductor generated no code for the reference")

        def run(*arguments: Any) -> Any:
            self.arguments = arguments
            self.results = tuple(graph(*arguments))
            return self.results

        return run


def _load(source: str) -> ModuleType:
    module = ModuleType("agentforge_reference")
    sys.modules[module.__name__] = module
    exec(compile(source, "reference.py", "exec", dont_inherit=True), module.__dict__)
    return module


def _draw(spec: TensorInput) -> torch.Tensor:
    """A tensor with the shape, dtype and strides of `spec`; its values do not affect code generation."""
    dtype = getattr(torch, spec.dtype.value)
    strides = spec.strides or torch.empty(spec.shape, device="meta").stride()
    tensor = torch.empty_strided(spec.shape, strides, dtype=dtype)
    return tensor.copy_(torch.rand(spec.shape).to(dtype)) if dtype.is_floating_point else tensor.zero_()


def _inputs(module: ModuleType, workload: Workload) -> tuple[list[Any], dict[str, Any]]:
    if workload.source == "reference":
        drawn = module.get_inputs(**({"workload": workload.key} if workload.key else {}))
        return ([], drawn) if isinstance(drawn, dict) else (list(drawn), {})
    positional, keyword = workload.arguments(_draw)
    return list(positional), keyword


def _layout(tensor: torch.Tensor) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }


def _origins(capture: _Capture, model: torch.nn.Module, arguments: list[Any]) -> list[dict[str, Any]]:
    """Origin of each argument of the generated code: an argument of forward, or the model's state."""
    known = {id(a): {"argument": i} for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)}
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        state[id(tensor)] = {"state": name}
    found: list[dict[str, Any]] = []
    for tensor in capture.arguments:
        if not isinstance(tensor, torch.Tensor):
            raise _Refused("the compiled graph takes a number")
        origin = known.get(id(tensor)) or state.get(id(tensor))
        if origin is None:
            raise _Refused("the compiled graph takes a tensor that is neither an input nor in the state_dict")
        found.append(origin | _layout(tensor))
    return found


def _structure(output: Any, capture: _Capture) -> Any:
    """The model's output with each tensor replaced by its index among the graph's results."""
    if isinstance(output, torch.Tensor):
        for index, result in enumerate(capture.results):
            if result is output:
                return {"result": index}
        raise _Refused("an output is not a result of the compiled graph")
    if isinstance(output, tuple | list) and type(output) in (tuple, list):
        return {"items": [_structure(o, capture) for o in output], "tuple": isinstance(output, tuple)}
    raise _Refused(f"an output is a {type(output).__name__}; only tensors, tuples and lists are supported")


def _flags() -> list[str]:
    """Compiler flags of Inductor itself that change the generated code."""
    from torch._inductor.cpp_builder import CppTorchOptions
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    options = CppTorchOptions(vec_isa=pick_vec_isa())
    defined = [d.strip() for d in options.get_definitions() if "PRECOMPILE" not in d]
    code = [f"-{f}" for f in options.get_cflags() if f.startswith(("f", "m", "DNDEBUG", "O3"))]
    left_out = ("-fopenmp", "-fPIC", "-fno-omit-frame-pointer", "-march=native")
    code = [f for flag in code for f in flag.split() if f not in left_out]
    return ["-fno-fast-math", "-U__FAST_MATH__", *code, *(f"-D{d}" for d in defined)]


def generate(reference: str, workload: Workload) -> dict[str, Any]:
    """Inductor's code for one workload, with the origins of its arguments and the results' structure."""
    module = _load(reference)
    model = Problem(module, module.Model, module.get_inputs, module.get_init_inputs).build(seed=0)
    positional, keyword = _inputs(module, workload)
    arguments = [*positional, *keyword.values()]
    if any(isinstance(a, list | tuple | dict) for a in arguments):
        raise _Refused("an input is a list, tuple or dict")
    capture = _Capture()
    with torch.no_grad():
        output = torch.compile(model, backend=capture, fullgraph=True, dynamic=False)(*positional, **keyword)
    if not capture.arguments and not capture.results:
        raise _Refused("the reference contains nothing to compile")
    return {
        "code": capture.code,
        "origins": _origins(capture, model, arguments),
        "structure": _structure(output, capture),
        "scalars": {str(i): a for i, a in enumerate(arguments) if not isinstance(a, torch.Tensor)},
        "count": len(arguments),
        "keywords": list(keyword),
        "flags": _flags(),
        "torch": torch.__version__,
    }


def generate_code(payload: Mapping[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """What Inductor generates, or why there is nothing.

    Args:
        payload: `reference`, its source; `workload`, JSON of a `Workload`; `folder` to work in.

    Returns:
        See `generate`; or `reason`, in one sentence.
    """
    os.chdir(payload["folder"])
    try:
        return generate(payload["reference"], Workload.model_validate(payload["workload"]))
    except _Refused as refusal:
        return {"reason": str(refusal)}
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        return {"reason": f"{type(error).__name__}: {first[0][:300]}"}

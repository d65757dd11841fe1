"""Child process of every frontend: build the model, run it, describe inputs and outputs."""

from __future__ import annotations

import inspect
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

from agentforge.isolation.memory_errors import is_out_of_memory
from agentforge.problems.describe import describe_arguments, flatten_tensors, to_device
from agentforge.problems.generators import seed_generators
from agentforge.problems.kernelbench import Problem, check_downloaded, load_problem, remedy
from agentforge.referee.workers.failures import UnusableOutput
from agentforge.referee.workers.pytree import flatten
from agentforge.schema import Definition, TargetError, TensorInput, UnsupportedTargetError
from agentforge.visible import first_line

_NO_GPU = ("Torch not compiled with CUDA", "NVIDIA driver", "No CUDA GPUs", "No HIP GPUs", "active drivers")
"""Words in torch's and Triton's messages if code asks for a missing GPU."""
_SEED = 0
_SAME = 1e-3
"""Largest relative L2 distance of equal outputs: atomics may reorder float sums."""
_SLOW_S = 10.0
_DENSE = {
    "nested": "torch.nested.to_padded_tensor(output, 0.0)",
    "quantized": "output.dequantize()",
    "sparse": "output.to_dense()",
}
"""How to make a tensor of each other kind dense."""
_BY_HAND = "run it once by hand and fix the error"
_NO_CACHE = (
    "set model.config.use_cache = False, or make a generation faster: "
    'generate="prompt=128,new=64" in place of inputs'
)
_PLAIN = "return tensors, numbers, strings, None, or lists, tuples or dicts of those"
_UNSEEDED = "gives other values under the same seed; draw them with torch"


def probe(payload: dict[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Build and run the model of a definition.

    Args:
        payload: `definition` (JSON of a `Definition`), `device`, `longest_s` (seconds of a forward) or None,
            `chosen`, if AgentForge and `--input` chose the inputs, not the user's source, and `advice` for a
            forward that raises.

    Returns:
        `inputs`: JSON of the workload's inputs; `outputs`: shapes and dtypes; `notes`: sentences;
        `unsendable`: type of a constructor argument that cannot be sent to another process, or empty;
        `workloads`: JSON of each `Workload`, if the source lists them; the former two are of the first.

    Raises:
        TargetError: the model cannot be used.
    """
    definition = Definition.model_validate(payload["definition"])
    device = _device(payload["device"])
    report("importing")
    problem = load_problem(definition)
    report("building the model")
    model = _stage(
        definition.name,
        "the constructor",
        lambda: problem.build(_SEED).to(device),
        source=definition.reference,
    )
    if any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        raise TargetError(
            f"{definition.name} has lazy parameters without a shape: run one forward in its constructor, or "
            "use modules with sizes, such as nn.Linear for nn.LazyLinear"
        )
    init = problem.constructor_arguments()
    if not _same_values(init, problem.constructor_arguments()):
        raise TargetError(f"{definition.name}: get_init_inputs() {_UNSEEDED}")
    report("running one forward")
    if not problem.workloads:
        found = _one(definition.name, problem, model, device, payload)
        return {**found, "unsendable": _unsendable(init)}
    each = {
        workload: _one(
            f"{definition.name}, workload {workload}", problem.of(workload), model, device, payload
        )
        for workload in problem.workloads
    }
    _check_time(definition.name, sum(found["seconds"] for found in each.values()), payload)
    return {
        **each[problem.workloads[0]],
        "workloads": [
            {"name": workload, "key": workload, "source": "reference", "inputs": found["inputs"]}
            for workload, found in each.items()
        ],
        "notes": [f"workload {workload}: {note}" for workload, f in each.items() for note in f["notes"]],
        "unsendable": _unsendable(init),
    }


def _check_time(name: str, seconds: float, payload: Mapping[str, Any]) -> None:
    longest_s = payload.get("longest_s")
    if longest_s and seconds > longest_s:
        raise UnsupportedTargetError(
            f"{name}: one forward takes {seconds:.2g} s here, and the limit of time permits {longest_s:.2g} s"
        )


def _one(
    name: str, problem: Problem, model: torch.nn.Module, device: torch.device, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """What `probe` says of one workload, and the seconds of a forward."""
    args, kwargs = draw_inputs(problem, _SEED, device, name)
    names = parameter_names(model, len(args))
    inputs = describe_arguments(names, args, kwargs)
    started = time.perf_counter()
    sizes = ", ".join(f"{i.name}={','.join(map(str, i.shape))}" for i in inputs if isinstance(i, TensorInput))
    others = (
        f"give other inputs than {sizes} with --input NAME=SIZES, or write a file whose class Model builds "
        "the model"
    )
    advice = others if payload.get("chosen") else payload.get("advice") or _BY_HAND
    first = _forward(name, model, args, kwargs, seed=1, advice=advice)
    seconds = time.perf_counter() - started
    longest_s = payload.get("longest_s")
    if longest_s and seconds > longest_s / max(1, len(problem.workloads)):  # the first one also warms up
        started = time.perf_counter()
        args, kwargs = draw_inputs(problem, _SEED, device, name)
        _forward(name, model, args, kwargs, seed=1, advice=advice)
        seconds = time.perf_counter() - started
        _check_time(name, seconds, payload)
    notes = _behaviour(name, problem, model, first, device, slow=seconds > _SLOW_S, advice=advice)
    return {
        "inputs": [i.model_dump(mode="json") for i in inputs],
        "outputs": [[list(t.shape), str(t.dtype)] for t in first],
        "notes": notes,
        "seconds": seconds,
    }


def _unsendable(value: Any) -> str:
    """Type of the first object in constructor arguments that is neither a tensor nor JSON; else empty."""
    if isinstance(value, torch.Tensor) or type(value) in (type(None), bool, int, float, str, torch.dtype):
        return ""
    if type(value) in (list, tuple, dict):
        items = value.values() if isinstance(value, dict) else value
        return next(filter(None, map(_unsendable, items)), "")
    return type(value).__name__


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except Exception as error:
        raise TargetError(
            f"device {name!r} is not usable here ({first_line(error)}); use --device cpu"
        ) from error
    return device


def draw_inputs(
    problem: Problem, seed: int, device: torch.device, name: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of one forward, on `device`.

    Raises:
        TargetError: `get_inputs()` raises or returns no list.
    """
    args, kwargs = _stage(name, "get_inputs()", lambda: problem.inputs(seed))
    if kind := _not_dense(flatten_tensors([args, kwargs])):
        raise UnsupportedTargetError(
            f"{name}: get_inputs() returns a {kind} tensor; return dense ones and make it from them in "
            "forward, or keep it in a buffer of the model"
        )
    return to_device(args, device), to_device(kwargs, device)


def _not_dense(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """What the first of these tensors is that is not dense; empty if all are dense."""
    for _, tensor in tensors:
        if tensor.is_nested:
            return "nested"
        if tensor.is_quantized:
            return "quantized"
        if tensor.layout is not torch.strided:
            return "sparse"
    return ""


def parameter_names(model: torch.nn.Module, count: int) -> list[str]:
    """Names of the first `count` positional parameters of `forward`."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    return [p.name for p in parameters if p.kind in positional][:count]


def _stage(name: str, what: str, run: Callable[[], Any], advice: str = _BY_HAND, source: str = "") -> Any:
    """Run a part of the user's code; `source` may explain why it fails."""
    try:
        return run()
    except TargetError:
        raise
    except Exception as error:
        if is_out_of_memory(error, str(error)):
            raise
        check_downloaded(name, error)
        advice = remedy(source, error, advice)
        gpu = any(word in str(error) for word in _NO_GPU)
        if gpu:
            advice = "it asks for a GPU, but this machine has none: leave out the device"
        kind = UnsupportedTargetError if gpu else TargetError
        raise kind(f"{name}: {what} raises {type(error).__name__}: {first_line(error)}; {advice}") from error


def _forward(
    name: str,
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    seed: int,
    advice: str,
) -> list[torch.Tensor]:
    """All output tensors of one forward under `seed`, copied.

    Raises:
        TargetError: it raises, or the referee cannot compare what it returns.
    """

    def run() -> Any:
        seed_generators(seed)
        with torch.no_grad():
            return model(*args, **kwargs)

    output = _stage(name, "forward", run, advice)
    found = list(flatten_tensors(output))
    if kind := _not_dense(found):
        raise UnsupportedTargetError(
            f"{name}: forward returns a {kind} tensor; return a dense one: {_DENSE[kind]}"
        )
    tensors = [t.detach().clone() for _, t in found]
    if not tensors:
        raise TargetError(
            f"{name}: forward returns no tensor; return a tensor, or a list, tuple or dict of tensors"
        )
    try:
        flatten(output)
    except UnusableOutput as error:
        raise TargetError(f"{name}: of what forward returns, {error}{_about(output, model)}") from error
    return tensors


def _about(output: Any, model: torch.nn.Module) -> str:
    """What to do about an object that is among the outputs, after a semicolon; empty without any."""
    objects = [type(value).__name__ for value in _objects(output)]
    configs = (getattr(module, "config", None) for module in model.modules())
    if any(kind.endswith("Cache") for kind in objects) and any(getattr(c, "use_cache", 0) for c in configs):
        return f"; {_NO_CACHE}"
    return f"; {_PLAIN}" if objects else ""


def _objects(value: Any) -> Iterator[Any]:
    """What in an output is neither a tensor nor a plain value."""
    if isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _objects(item)
    elif value is not None and not isinstance(value, (torch.Tensor, bool, int, float, str)):
        yield value


def _behaviour(
    name: str,
    problem: Problem,
    model: torch.nn.Module,
    first: list[torch.Tensor],
    device: torch.device,
    *,
    slow: bool,
    advice: str,
) -> list[str]:
    """Notes if the output is random, depends on past calls, or ignores the input.

    Inputs are drawn anew from the same seed for every forward, because a forward may write to them.
    """
    notes = []
    args, kwargs = draw_inputs(problem, _SEED, device, name)
    if not equal_outputs(first, _forward(name, model, args, kwargs, seed=2, advice=advice)):
        fresh = problem.build(_SEED).to(device)
        args, kwargs = draw_inputs(problem, _SEED, device, name)
        if not equal_outputs(first, _forward(name, fresh, args, kwargs, seed=2, advice=advice)):
            if not _same_values(problem.inputs(_SEED), problem.inputs(_SEED)):
                raise TargetError(f"{name}: get_inputs() {_UNSEEDED}")
            training = any(module.training for module in model.modules())
            raise TargetError(
                f"{name}: its output is random: two forwards on the same input differ; "
                + (
                    "the model is in training mode: call model.eval() first"
                    if training
                    else "take the random draws (dropout in train mode, torch.rand) out of forward"
                )
            )
        notes.append("the model keeps state: a second forward on the same input gives another output")
    if slow:
        notes.append("one forward is slow; whether the output depends on the input was not checked")
        return notes
    args, kwargs = draw_inputs(problem, _SEED + 1, device, name)
    if _same_values(first, _forward(name, model, args, kwargs, seed=1, advice=advice)):
        notes.append(
            "get_inputs() gives the same values under every seed; whether the output depends on them was not "
            "checked"
            if _same_values(problem.inputs(_SEED), problem.inputs(_SEED + 1))
            else "the output does not depend on the input: two different inputs gave the same output"
        )
    wide = [t.float() if t.itemsize == 1 else t for t in first if t.is_floating_point()]
    if any(not torch.isfinite(t).all() for t in wide):
        notes.append("the output contains NaN or Inf")
    return notes


def _same_values(one: Any, other: Any) -> bool:
    """Whether dense tensors, numbers and strings in two nested values are equal; NaN equals NaN."""

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor) and not _not_dense([("", a)]):
            return a.shape == b.shape and bool(torch.equal(a, b) or (a.isnan() & b.isnan()).all())
        return not isinstance(a, (int, float, str)) or a == b or a != a

    return all(itertools.starmap(same, zip(tree_leaves(one), tree_leaves(other), strict=False)))


def equal_outputs(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    """Equal up to rounding noise of reordered sums; NaN equals NaN."""
    if len(left) != len(right):
        return False
    for a, b in zip(left, right, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not a.is_floating_point():
            if not torch.equal(a, b):
                return False
            continue
        x, y = (torch.nan_to_num(t.double()) for t in (a, b))
        if (x - y).norm() > _SAME * max(x.norm().item(), y.norm().item()):
            return False
    return True

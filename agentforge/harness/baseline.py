"""The trusted workers: the reference in eager mode (also drawing inputs and float64 outputs) and compiled."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import torch

from agentforge.schema import Definition, TolerancePolicy

from . import values
from .convention import Problem, load_problem
from .gpu.device import GraphedModel
from .gradients import gradients
from .leaves import Leaf, describe, flatten, total_bytes
from .memory import Block, Layout, aligned
from .runner import CompileMode, runner_for
from .server import Server, put_leaves
from .tolerance import exactness
from .weights import varied_construction
from .wire import Channel


class Placer:
    """Gives tensors their places in a block, one after the other."""

    def __init__(self) -> None:
        self.nbytes = 0
        self.tensors: list[tuple[Layout, torch.Tensor]] = []

    def __call__(self, tensor: torch.Tensor) -> Layout:
        layout = Layout.of(tensor, self.nbytes)
        self.nbytes += aligned(layout.nbytes)
        self.tensors.append((layout, tensor))
        return layout

    def write(self, block: Block) -> None:
        """Copy the tensors where they belong."""
        for layout, tensor in self.tensors:
            block.tensor(layout).copy_(tensor.detach())


class BaselineServer(Server):
    """Runs the reference. It holds seeds and outputs; no candidate code ever comes near it."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self._problem: Problem | None = None
        self._module: torch.nn.Module | None = None
        self._weights = Placer()
        self._arguments: Any = None
        self._handlers |= {
            "reference": self._reference,
            "export": self._export,
            "describe": self._describe,
            "draw": self._draw,
            "exact": self._exact,
            "exactness": self._exactness,
            "shape": self._shape,
            "without": self._without,
            "rounded": self._rounded,
            "exact_gradients": self._exact_gradients,
        }

    def _reference(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Construct the reference under a seed; say how many bytes its weights and init arguments take."""
        torch.set_num_threads(body["threads"])
        self._runner = runner_for(body["device"])
        definition = Definition.model_validate(body["definition"])
        self._problem = load_problem(definition)
        init = self._problem.get_init_inputs()
        with varied_construction(body["seed"]):
            self._module = self._problem.build(body["seed"])
        encoded = values.encode(init if isinstance(init, dict) else list(init), self._weights)
        state = {k: self._weights(v).to_json() for k, v in self._module.state_dict().items()}
        self._module = self._runner.place(self._module)
        self._take(_compiled(self._module, body["compile"]))
        return {"init": encoded, "state": state, "nbytes": self._weights.nbytes}

    def _export(self, _: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Write weights and init arguments to the block that the referee made for them."""
        block = Block(fds[0], self._weights.nbytes)
        self._weights.write(block)
        block.close()
        self._weights.tensors.clear()
        return {}

    def _describe(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """What `get_inputs()` gives, with places for its tensors in a slot."""
        arguments, placer = self._drawn(body["seed"])
        return {"arguments": arguments, "slot_bytes": placer.nbytes}

    def _drawn(self, seed: int) -> tuple[dict[str, Any], Placer]:
        assert self._problem is not None
        args, kwargs = self._problem.inputs(seed)
        placer = Placer()
        return (
            {
                "args": [values.encode(a, placer) for a in args],
                "kwargs": {k: values.encode(v, placer) for k, v in kwargs.items()},
            },
            placer,
        )

    def _workload(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        self._arguments = body["arguments"]
        return super()._workload(body, fds)

    def _draw(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Put what `get_inputs()` gives under a seed in the memory for outputs."""
        assert self._outputs is not None
        arguments, placer = self._drawn(body["seed"])
        if values.layouts(arguments) != values.layouts(self._arguments):
            return {"changed": True}
        placer.write(self._outputs)
        return {"changed": False}

    def _shape(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Describe the output for a slot without putting it anywhere."""
        self._call(body, ())
        leaves = self._kept.pop()
        return {
            "leaves": describe(leaves),
            "nbytes": total_bytes(leaves),
            "nbytes64": total_bytes(leaves, 16),
        }

    def _exact(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Output of the reference computed in float64, in the outputs block."""
        assert self._outputs is not None
        leaves = self._in_float64(body["slot"])
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves)}

    def _in_float64(self, slot: int) -> list[Leaf]:
        assert self._module is not None
        model = copy.deepcopy(self._module).double()
        args, kwargs = _doubled(self._arguments_of(slot))
        with _default_dtype(torch.float64):
            return flatten(model(*args, **kwargs))

    def _exactness(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Hold the last call's output against a better computation: numbers travel, no tensors.

        `against` is `float64`, or `moved` for inputs moved by half a unit in the last place: conditioning
        where float64 fails.
        """
        policy = TolerancePolicy.model_validate(body["policy"])
        better = self._in_float64(body["slot"]) if body["against"] == "float64" else self._moved(body["slot"])
        values = {leaf.path: leaf.value for leaf in better}
        found = [exactness(x.value, values.get(x.path), policy, body["reduction"]) for x in self._kept[-1]]
        return {"exactness": [dataclasses.asdict(x) for x in found]}

    def _moved(self, slot: int) -> list[Leaf]:
        assert self._model is not None
        args, kwargs = self._arguments_of(slot)
        return flatten(self._model(*map(_nudged, args), **{k: _nudged(v) for k, v in kwargs.items()}))

    def _exact_gradients(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """What a backward pass in float64 gives."""
        assert self._module is not None and self._outputs is not None
        model = copy.deepcopy(self._module).double()
        args, kwargs = _doubled(self._arguments_of(body["slot"]))
        with _default_dtype(torch.float64):
            leaves = gradients(model, args, kwargs, body["seed"])
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves)}

    def _without(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Output with one weight or buffer set to a constant: what a model that ignores it would give."""
        assert self._module is not None and self._outputs is not None
        tensor = self._module.state_dict()[body["key"]]
        held = tensor.clone()
        if not tensor.is_floating_point() or bool((held == body["value"]).all()):
            return {"changed": False}
        try:
            tensor.fill_(body["value"])
            if body["exact"]:
                return {"changed": True, **self._exact(body, ())}
            args, kwargs = self._inputs(body["slot"])
            leaves = flatten(self._module(*args, **kwargs))
            put_leaves(leaves, self._outputs)
            return {"changed": True, "leaves": describe(leaves)}
        finally:
            tensor.copy_(held)

    def _rounded(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Output with all weights and buffers rounded to half precision."""
        assert self._module is not None and self._outputs is not None
        state = {
            k: t for k, t in self._module.state_dict().items() if t.dtype in (torch.float32, torch.float64)
        }
        held = {k: t.clone() for k, t in state.items()}
        try:
            for tensor in state.values():
                tensor.copy_(tensor.half())
            if body["exact"]:
                return self._exact(body, ())
            args, kwargs = self._inputs(body["slot"])
            leaves = flatten(self._module(*args, **kwargs))
            put_leaves(leaves, self._outputs)
            return {"leaves": describe(leaves)}
        finally:
            for key, tensor in state.items():
                tensor.copy_(held[key])


def _compiled(module: torch.nn.Module, mode: CompileMode) -> Any:
    """The reference as a baseline runs it."""
    if mode == "graph":
        return GraphedModel(module)
    if mode:
        return torch.compile(module, mode=None if mode == "default" else mode)
    return module


def _nudged(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        noise = torch.rand(value.shape) - 0.5
        return (value * (1 + noise.to(value) * torch.finfo(value.dtype).eps)).to(value.dtype)
    return value


def _doubled(slot: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def double(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.double() if value.is_floating_point() else value.clone()
        return value

    return tuple(map(double, slot[0])), {k: double(v) for k, v in slot[1].items()}


class _default_dtype:  # noqa: N801 - reads as a function
    """Default dtype for the duration, so that constants the reference makes are float64 too."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype, self._before = dtype, torch.get_default_dtype()

    def __enter__(self) -> None:
        torch.set_default_dtype(self._dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self._before)

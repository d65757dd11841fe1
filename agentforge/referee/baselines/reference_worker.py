"""The trusted workers: the reference in eager mode (also drawing inputs and float64 outputs) and compiled."""

from __future__ import annotations

import dataclasses
import secrets
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from agentforge.problems.copies import copied
from agentforge.problems.kernelbench import Problem, load_problem
from agentforge.schema import Definition, Precision, TolerancePolicy

from ..comparison.exactness import exactness, permitted, spread
from ..comparison.tolerance import Bound, alternative, widest
from ..inputs.transforms import less_precise
from ..timing.gpu.device import GraphedModel
from ..workers import arguments as values
from ..workers.dispatch_mode import DispatchMode
from ..workers.memory.shared_memory import Block
from ..workers.protocol import Channel
from ..workers.pytree import NUMBER, Leaf, describe, total_bytes
from ..workers.runner import CompileMode, Way, gradients, runner_for
from ..workers.server import Server, Slot, put_leaves
from .dispatch import NextPlaces, OtherOrder, OtherSigns, alike, same
from .low_precision import LowPrecision
from .operators import Operators, watching
from .precision import FINER, default_dtype, doubled, in_single, is_double, nudged, wide
from .sealed_weights import Placer
from .weights import built, dense_state, trained_keys


class BaselineServer(Server):
    """Runs the reference. It knows seeds and outputs, and never runs candidate code."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self._problem: Problem | None = None
        self._precision: Precision | None = None
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
            "alternatives": self._alternatives,
            "recomputed": self._recomputed,
            "shape": self._shape,
            "spread": self._spread,
            "ordered": self._ordered,
            "without": self._without,
            "rounded": self._rounded,
            "exact_gradients": self._exact_gradients,
            "exact_state": self._exact_state,
        }

    def _reference(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Construct the reference under a seed; say how many bytes its weights and init arguments take."""
        torch.set_num_threads(body["threads"])
        self._runner = runner_for(body["device"], events=body["events"])
        definition = Definition.model_validate(body["definition"])
        self._problem, self._precision = load_problem(definition), definition.precision
        self._class = self._problem.model_class
        init = self._problem.constructor_arguments()
        self._module = built(partial(self._problem.build, body["seed"]), body["seed"])[0]
        torch.set_num_threads(body["threads"])  # the user's file may have changed it
        encoded = values.encode(init if isinstance(init, dict) else list(init), self._weights)
        state = {k: self._weights(v).to_json() for k, v in dense_state(self._module).items()}
        self._module = self._runner.place(self._module)
        self._fresh = {k: t.clone() for k, t in self._buffers().items()}
        self._take(_compiled(self._module, body["compile"], len(self._problem.workloads)))
        if body["ahead"]:
            self._call_ahead(body["ahead"], body["workload"])
        keys = {"buffers": list(self._fresh), "trained": trained_keys(self._module)}
        return {"init": encoded, "state": state, "nbytes": self._weights.nbytes, **keys}

    def _call_ahead(self, arguments: dict[str, Any], workload: str) -> None:
        """Call the model on a workload's own draw, laid out as in a slot: guards of its compiled code
        are then those that slots meet. Nothing, if `get_inputs()` gives other arguments."""
        assert self._model is not None
        drawn, placer = self._drawn(secrets.randbits(60), workload)
        if drawn == arguments:
            block = Block.create("ahead", placer.nbytes)
            placer.write(block)
            args, kwargs = values.bind(arguments, block, 0)
            self._runner.run(self._model, args, kwargs)
            del args, kwargs
            block.close()

    def _buffers(self) -> dict[str, torch.Tensor]:
        """Buffers that are saved with a model, such as running statistics."""
        assert self._module is not None
        names = {name for name, _ in self._module.named_buffers(remove_duplicate=False)}
        return {k: t for k, t in dense_state(self._module).items() if k in names}

    def _export(self, _: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Write weights and init arguments to the block that the referee made for them."""
        block = Block(fds[0], self._weights.nbytes)
        self._weights.write(block)
        block.close()
        self._weights.tensors.clear()
        return {}

    def _describe(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """What `get_inputs()` gives, with places for its tensors in a slot."""
        assert self._problem is not None
        arguments, placer = self._drawn(body["seed"], body["workload"])
        fresh = bool(getattr(self._problem.module, "fresh_inputs", False))
        return {"arguments": arguments, "slot_bytes": placer.nbytes, "fresh": fresh}

    def _drawn(self, seed: int, workload: str = "") -> tuple[dict[str, Any], Placer]:
        assert self._problem is not None
        args, kwargs = self._problem.of(workload).inputs(seed)
        placer = Placer()
        listed = [values.encode(a, placer) for a in args]
        named = {k: values.encode(v, placer) for k, v in kwargs.items()}
        return {"args": listed, "kwargs": named}, placer

    def _workload(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        self._arguments = body["arguments"]
        return super()._workload(body, fds)

    def _draw(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Put what `get_inputs()` gives under a seed in the memory for outputs."""
        assert self._outputs is not None
        arguments, placer = self._drawn(body["seed"], body["workload"])
        if values.layouts(arguments) != values.layouts(self._arguments):
            return {"changed": True}
        placer.write(self._outputs)
        return {"changed": False}

    def _shape(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Bytes of the output in float64, what calls have changed, and what the operators say."""
        assert self._module is not None
        parameters = self._module.named_parameters(remove_duplicate=False)
        versions = {k: p._version for k, p in parameters if not p.is_inference()}
        model, found = self._model, list[Operators]()
        assert model is not None
        self._model = watching(model, found)
        try:
            self._call(body, ())
        finally:
            self._model = model
        (seen,) = found
        now = dense_state(self._module)
        changed = [k for k, fresh in self._fresh.items() if k in now and not same(now[k], fresh)]
        changed += [k for k, before in versions.items() if k in now and now[k]._version != before]
        answer = self._kept.pop()
        leaves = [*answer, *(Leaf(k, now[k]) for k in changed)]
        return {
            "nbytes64": max(total_bytes(leaves, 16), total_bytes(_numbered(seen.ordered))),
            "state": changed,
            "open_order": bool(seen.ordered),
            "rounds": seen.rounds,
            **seen.of_inputs,
            "lowers": seen.lowers,
            "signs": seen.signs and self._depends_on_signs(body, answer),
        }

    def _depends_on_signs(self, body: dict[str, Any], answer: list[Leaf]) -> bool:
        """Whether the answer changes with the signs of singular vectors and the like."""
        other = self._under(OtherSigns(), body["slot"])
        return not all(alike(a.value, b.value) for a, b in zip(answer, other, strict=True))

    def _under(self, mode: DispatchMode, slot: int) -> list[Leaf]:
        """The answer under a mode. No counted call: the referee may still write to outputs that one drops."""
        assert self._model is not None
        args, kwargs = self._inputs(slot)
        with mode:
            return self._answer(self._model(*args, **kwargs), (args, kwargs))

    def _given(self, leaves: list[Leaf]) -> dict[str, Any]:
        """Hand leaves over in the outputs block."""
        assert self._outputs is not None
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves)}

    def _ordered(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """What a call orders by operators that leave the order among equal values open."""
        seen = Operators()
        self._under(seen, body["slot"])
        return self._given(_numbered(seen.ordered))

    def _exact(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Output of the reference computed in float64, in the outputs block."""
        return self._given(self._in_float64(body["slot"]))

    def _in_float64(self, slot: int) -> list[Leaf]:
        return self._widely(self._module, self._inputs(slot))

    def _widely(self, model: torch.nn.Module | None, inputs: Slot) -> list[Leaf]:
        """A model's answer in float64."""
        assert model is not None
        args, kwargs = doubled(inputs)
        with default_dtype(torch.float64):
            return self._answer(wide(model)(*args, **kwargs), (args, kwargs))

    def _exactness(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Hold the last call's output against a better computation: numbers travel, no tensors.

        `against` is `float64`, or `moved` for inputs moved by half a unit in the last place: conditioning
        if float64 fails, or `reordered` for another order among equals. `nearby` compares the answer to moved
        inputs and weights with float64.
        """
        slot, against, given = body["slot"], body["against"], self._kept[-1]
        policy = TolerancePolicy.model_validate(body["policy"])
        if against == "nearby":
            given, better = self._nearby(slot, body["units"])
        else:
            compute = {"float64": self._in_float64, "moved": self._moved, "reordered": self._reordered}
            better = compute[against](slot)
        values = {leaf.path: leaf.value for leaf in better}
        found = [
            exactness(self._as_computed(x), values.get(x.path), policy, body["reduction"]) for x in given
        ]
        if against == "float64" and any(is_double(x.value) for x in given):
            errors: dict[str, Bound] = {}
            with suppress(Exception):  # it may insist on double precision
                errors = self._error_in_single(slot, policy, body["reduction"])
            for n, leaf in enumerate(given):
                if is_double(leaf.value) and leaf.path in errors:
                    wider = widest([found[n].bound, errors[leaf.path]])
                    found[n] = dataclasses.replace(found[n], bound=wider)
        if self._precision is not None and against in ("float64", "moved"):
            low = {leaf.path: leaf.value for leaf in self._lowered(slot, self._precision)}
            found = [
                permitted(e, low.get(x.path), values.get(x.path), policy.factor)
                for e, x in zip(found, given, strict=True)
            ]
        return {"exactness": [dataclasses.asdict(x) for x in found]}

    def _spread(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """How far each output in float64 moves with the inputs' last bits, see `exactness.spread`."""
        inputs = (pytree.tree_map(nudged, self._inputs(body["slot"])) for _ in range(body["draws"]))
        moves = (self._widely(self._module, moved) for moved in inputs)
        return {"spread": spread(self._in_float64(body["slot"]), moves, body["least"])}

    def _error_in_single(self, slot: int, policy: TolerancePolicy, reduction: float) -> dict[str, Bound]:
        """Bounds of outputs in double precision, by path: nothing more exact exists to hold them against.

        They are the reference's in single precision, as much tighter as double precision rounds less.
        """
        assert self._module is not None
        ours, wider = self._twice(*in_single(self._module, self._inputs(slot)))
        exact = {x.path: x.value for x in wider}
        single = [x for x in ours if isinstance(x.value, torch.Tensor) and not is_double(x.value)]
        bounds = {x.path: exactness(x.value, exact.get(x.path), policy, reduction).bound for x in single}
        return {
            path: dataclasses.replace(bound.scaled(FINER), reference_error=bound.reference_error * FINER)
            for path, bound in bounds.items()
        }

    def _nearby(self, slot: int, units: float) -> tuple[list[Leaf], list[Leaf]]:
        """The answer if inputs and weights are moved by up to half of `units`; that in float64."""
        assert self._module is not None
        move, near = partial(nudged, units=units), copied(self._module)
        return self._twice(near._apply(move), pytree.tree_map(move, self._inputs(slot)))

    def _twice(self, model: torch.nn.Module, inputs: Slot) -> tuple[list[Leaf], list[Leaf]]:
        """A model's answer, and the same in float64."""
        exact = self._widely(model, inputs)  # first: a call may write to its inputs
        return self._answer(model(*inputs[0], **inputs[1]), inputs), exact

    def _lowered(self, slot: int, precision: Precision) -> list[Leaf]:
        """The answer for a slot with products in a lower precision, in the types of the usual answer."""
        assert self._module is not None
        model = copied(self._module)
        args, kwargs = self._inputs(slot)
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # one operator there contains several products
        try:
            with LowPrecision(precision, [*model.parameters(), *model.buffers()]):
                return self._answer(model(*args, **kwargs), (args, kwargs))
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)

    def _as_computed(self, leaf: Leaf) -> Any:
        """A leaf's value; a Python float in the coarsest type of inputs and weights."""
        if not leaf.path.startswith(NUMBER):
            return leaf.value
        assert self._module is not None
        tensors = [x for x in pytree.tree_leaves((self._slots[0], self._module.state_dict()))
                   if isinstance(x, torch.Tensor) and x.is_floating_point()]  # fmt: skip
        coarsest = max((x.dtype for x in tensors), key=lambda t: torch.finfo(t).eps, default=torch.float64)
        narrow = leaf.value.to(coarsest)
        return narrow if bool(torch.isfinite(narrow)) else leaf.value

    def _alternatives(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """For each output of the last call the float64 one in its dtype, or None if both agree in kind."""
        better = {leaf.path: leaf.value for leaf in self._in_float64(body["slot"])}
        found = [Leaf(x.path, alternative(x.value, better.get(x.path))) for x in self._kept[-1]]
        return self._given(found)

    def _recomputed(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """One output for a slot, computed in another way; others are None.

        `way` 0 is float64; further ones move the inputs by up to two units in the last place, those of 16-bit
        types by half a unit. `reordered` takes another order among equals, and with `next` the operator of
        that number gives the next places.
        """
        if "next" in body:
            leaves = self._under(NextPlaces(body["next"]), body["slot"])
        elif body["way"] == "reordered":
            leaves = self._reordered(body["slot"])
        elif body["way"] == 0:
            leaves = self._in_float64(body["slot"])
        else:
            leaves = self._moved(body["slot"], 4.0)
        found = [Leaf(x.path, x.value if n == body["leaf"] else None) for n, x in enumerate(leaves)]
        return self._given(found)

    def _reordered(self, slot: int) -> list[Leaf]:
        return self._under(OtherOrder(), slot)

    def _moved(self, slot: int, units: float = 1.0) -> list[Leaf]:
        assert self._model is not None
        args, kwargs = pytree.tree_map(partial(nudged, units=units), self._inputs(slot))
        return self._answer(self._model(*args, **kwargs), (args, kwargs))

    def _exact_gradients(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """What a backward pass in float64 gives."""
        assert self._module is not None
        model = wide(self._module)
        args, kwargs = doubled(self._arguments_of(body["slot"]))
        with default_dtype(torch.float64):
            return self._given(gradients(model, args, kwargs, body["seed"], Way(**body["way"]))[0])

    def _exact_state(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """What calls change of the model, after some calls from its present state on, in float64."""
        assert self._module is not None
        model = wide(self._module)
        with default_dtype(torch.float64):
            for _call in range(body["calls"]):
                args, kwargs = doubled(self._inputs(body["slot"]))
                model(*args, **kwargs)
        state = model.state_dict()
        return self._given([Leaf(key, state[key]) for key in body["keys"]])

    def _without(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Output with one weight or buffer set to a constant: what a model that ignores it would give."""
        assert self._module is not None
        tensor = self._module.state_dict()[body["key"]]
        held = tensor.clone()
        if not tensor.is_floating_point() or bool((held == body["value"]).all()):
            return {"changed": False}
        try:
            tensor.fill_(body["value"])
            return {"changed": True, **self._changed(body)}
        finally:
            tensor.copy_(held)

    def _changed(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer of the model as it is now, in the outputs block."""
        assert self._module is not None
        if body["exact"]:
            return self._exact(body, ())
        args, kwargs = self._inputs(body["slot"])
        return self._given(self._answer(self._module(*args, **kwargs), (args, kwargs)))

    def _rounded(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Output with all weights and buffers in less precision: see `inputs.transforms.less_precise`."""
        assert self._module is not None
        state = {k: t for k, t in dense_state(self._module).items() if t.is_floating_point()}
        held = {k: t.clone() for k, t in state.items()}
        try:
            for tensor in state.values():
                tensor.copy_(less_precise(tensor))
            return self._changed(body)
        finally:
            for key, tensor in state.items():
                tensor.copy_(held[key])


def _numbered(tensors: list[torch.Tensor]) -> list[Leaf]:
    return [Leaf(str(n), tensor.detach()) for n, tensor in enumerate(tensors)]


def _compiled(module: torch.nn.Module, mode: CompileMode, workloads: int) -> Any:
    """The reference as a baseline runs it: compiled for each of several workloads, not for all shapes."""
    if mode == "graph":
        return GraphedModel(module)
    if not mode:
        return module
    if mode.endswith("freezing"):
        import torch._inductor.config as inductor

        inductor.freezing = True  # Dynamo reads it too, so it is no option of one compilation
    torch._dynamo.config.recompile_limit += workloads
    tuned = "max-autotune" if mode.startswith("max-autotune") else None
    return torch.compile(module, mode=tuned, dynamic=False if workloads else None)

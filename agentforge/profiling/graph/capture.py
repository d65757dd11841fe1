"""Capture a model's forward as ATen graphs: the whole model, or its exportable submodules.

The graphs contain operators as PyTorch runs them eagerly (`linear`, `layer_norm`,
`scaled_dot_product_attention`, not their decompositions). Capturing the same model with the same inputs again
gives the same node names.
"""

from __future__ import annotations

import copy
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.nn.parameter import is_lazy
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_flatten, tree_leaves

from ..eager_branches import eager_branches
from ..reasons import BY_VALUES, plain_reason
from .inline_modes import inline_modes
from .normalise import normalise

_OVERLAPS = 1
"""What torch calls a tensor some of whose elements share memory: `copy_` into it raises."""
_NAMED = 3
"""Modules that a note names; it counts the others."""


@dataclass(frozen=True)
class CapturedUnit:
    """One exported graph."""

    path: str
    """Path of the submodule; empty for the whole model."""
    graph_module: GraphModule
    """Takes the submodule's `args` and `kwargs`. `get_attr` targets are paths in the submodule, except those
    in `constants`.
    """
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    """The captured arguments."""
    calls: int = 1
    """Calls like the captured one in one forward of the model, for its example."""
    example: str = ""
    """Name of the example that it was captured for; empty if the model has only one."""
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Tensors that forward creates (`torch.tensor(...)`), by target."""

    @property
    def name(self) -> str:
        """Unique in the capture: its path, and the example."""
        return f"{self.path}@{self.example}" if self.example else self.path


@dataclass(frozen=True)
class Capture:
    """All exported graphs of a model."""

    units: tuple[CapturedUnit, ...]
    notes: tuple[str, ...] = ()
    """Modules that could not be exported, with the reason, and calls of others that are not captured."""

    @property
    def whole(self) -> CapturedUnit | None:
        """The unit that is the whole model; None if it is in parts, or was captured for several examples."""
        return self.units[0] if [unit.path for unit in self.units] == [""] else None


@dataclass(frozen=True)
class Example:
    """Arguments of one forward of the model. A model with several has a name for each."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    name: str = ""


@dataclass
class _Calls:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    example: str
    count: int = 1
    """Calls like the first one."""
    others: int = 0
    """Calls for which a stitched unit runs the original code."""
    layout: Any = None
    """See `_layout`."""


Check = Callable[[CapturedUnit], None]
"""Called with each captured unit; if it raises, the unit counts as not exportable."""


def capture_examples(
    model: torch.nn.Module, examples: Sequence[Example], check: Check = lambda unit: None
) -> Capture:
    """Export `model` once for each example; if that fails, export its largest exportable submodules.

    Args:
        model: in eval mode; if it cannot be exported whole, it runs once more with hooks.
        check: called with each unit.
    """
    units: list[CapturedUnit] = []
    notes: list[str] = []
    for example in examples:
        warm_up(model, example)
        whole = _Calls(example.args, dict(example.kwargs), example.name)
        try:
            units.append(_export("", model, whole, check))
        except Exception as error:
            calls = _observe(model, example)
            reason = _reason(error, model, [arg for call in calls.values() for arg in call.args])
            notes.append(f"the model is profiled in parts, its submodules one by one, because {reason}")
            known = len(units)
            _descend("", model, calls, units, notes, check)
            notes += _other_calls({unit.path: calls[unit.path] for unit in units[known:]})
    return Capture(tuple(units), tuple(dict.fromkeys(notes)))


class Buffers:
    """What calls may write to: the buffers of some modules and tensors of arguments, with their values now.

    Args:
        arguments: of the calls, in any containers.
    """

    def __init__(self, *modules: torch.nn.Module, arguments: Any = ()) -> None:
        buffers = (
            b for module in modules for b in module.buffers() if not is_lazy(b) and not b.is_inference()
        )
        given = (leaf for leaf in tree_leaves(arguments) if _is_writable(leaf))
        found = {id(tensor): tensor for tensor in (*buffers, *given)}
        self._kept = [(tensor, tensor.detach().clone()) for tensor in found.values()]
        self._versions = self._current()

    def _current(self) -> list[int]:
        return [tensor._version for tensor, _ in self._kept]

    def restore(self) -> None:
        """Undo what calls wrote to them."""
        now = self._current()
        if now == self._versions:
            return
        with torch.no_grad():
            for (tensor, value), version, before in zip(self._kept, now, self._versions, strict=True):
                if version != before:
                    tensor.copy_(value)
        self._versions = self._current()


def _is_writable(leaf: Any) -> bool:
    """Whether it is a tensor that can be written as a whole, unlike an expanded one."""
    if not isinstance(leaf, torch.Tensor) or leaf.is_inference():
        return False
    dense = leaf.layout is torch.strided and not leaf.is_nested
    return not dense or torch._debug_has_internal_overlap(leaf) != _OVERLAPS


def warm_up(model: torch.nn.Module, example: Example) -> None:
    """Run the model once and put its buffers back.

    Tensors that the first call keeps, in a cached function or a new buffer, would else be fake ones of the
    export, and later calls would compute nothing.
    """
    args, kwargs = copy.deepcopy((example.args, dict(example.kwargs)))
    buffers = Buffers(model)
    with torch.no_grad():
        model(*args, **kwargs)
    buffers.restore()


def _descend(
    path: str,
    module: torch.nn.Module,
    calls: dict[str, _Calls],
    units: list[CapturedUnit],
    notes: list[str],
    check: Check,
) -> None:
    """Export the children that were called; descend into those that do not export."""
    for name, child in module.named_children():
        child_path = f"{path}.{name}" if path else name
        seen = calls.get(child_path)
        if seen is None:  # a container, or never called
            _descend(child_path, child, calls, units, notes, check)
            continue
        try:
            units.append(_export(child_path, child, seen, check))
        except Exception as error:
            notes.append(
                f"{child_path} is timed without its operators, because {_reason(error, child, seen.args)}"
            )
            _descend(child_path, child, calls, units, notes, check)


def _observe(model: torch.nn.Module, example: Example) -> dict[str, _Calls]:
    """Arguments of each submodule's first call, and its numbers of calls."""
    calls: dict[str, _Calls] = {}
    handles = []
    buffers = Buffers(model, arguments=(example.args, dict(example.kwargs)))
    for path, module in model.named_modules():
        if not path or isinstance(module, torch.jit.ScriptModule):  # TorchScript refuses hooks
            continue

        def hook(module: Any, a: tuple[Any, ...], k: dict[str, Any], path: str = path) -> None:
            layout, first = _layout(module, a, k), calls.get(path)
            if first is None:
                calls[path] = _Calls(a, dict(k), example.name, layout=layout)
            elif layout == first.layout:
                first.count += 1
            else:
                first.others += 1

        handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
    try:
        with torch.no_grad():
            model(*example.args, **example.kwargs)
    finally:
        for handle in handles:
            handle.remove()
        buffers.restore()
    return calls


def _layout(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What two calls that a stitched unit treats alike have in common, however their arguments are passed."""
    given: Any = (args, kwargs)
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
    except (TypeError, ValueError):  # a forward without a signature
        pass
    # Caches of transformers refuse to be taken apart.
    leaves, structure = tree_flatten(given, is_leaf=lambda value: not isinstance(value, (tuple, list, dict)))
    return structure, [_leaf_layout(leaf) for leaf in leaves]


def _leaf_layout(leaf: Any) -> Any:
    """Sizes, strides and type of a tensor; the value of a constant; the class of anything else."""
    if leaf is None or isinstance(leaf, (bool, int, float, str)):
        return type(leaf), leaf
    if not isinstance(leaf, torch.Tensor):
        return type(leaf)
    if leaf.layout is not torch.strided or leaf.is_nested:
        return leaf.layout, leaf.dtype
    steps = [stride for size, stride in zip(leaf.shape, leaf.stride(), strict=True) if size != 1]
    return (
        leaf.shape,
        steps if leaf.numel() else [],
        leaf.dtype,
        leaf.device.type,
        leaf.is_conj(),
        leaf.is_neg(),
    )


def _other_calls(captured: Mapping[str, _Calls]) -> list[str]:
    """A note on calls of captured modules that are unlike the first one; none if there are none."""
    found = [(path, calls) for path, calls in captured.items() if calls.others]
    if not found:
        return []
    named = [f"{calls.others} of {calls.others + calls.count} of {path}" for path, calls in found[:_NAMED]]
    named += [f"some of {len(found) - _NAMED} more modules"] if len(found) > _NAMED else []
    return [
        "calls with other shapes or constants than a module's first one have no row and get no kernel: "
        f"{', '.join(named)}"
    ]


def _export(path: str, module: torch.nn.Module, calls: _Calls, check: Check) -> CapturedUnit:
    """Export one module; non-strict mode first, because it is closest to eager semantics."""
    args, kwargs = calls.args, calls.kwargs
    with quiet(), torch.no_grad(), eager_branches():
        try:
            program = torch.export.export(module, args, kwargs, strict=False)
        except Exception as first:
            try:
                program = torch.export.export(module, args, kwargs, strict=True)
            except Exception:
                raise first from None
        takes_guards = "check_guards" in inspect.signature(program.module).parameters
        graph_module = program.module(**({"check_guards": False} if takes_guards else {}))
    inline_modes(graph_module)
    normalise(graph_module)
    constants = dict(_constants(graph_module, module))
    unit = CapturedUnit(path, graph_module, args, kwargs, calls.count, calls.example, constants)
    check(unit)
    return unit


def _constants(graph_module: GraphModule, module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for node in graph_module.graph.find_nodes(op="get_attr"):
        target = str(node.target)
        try:
            attrgetter(target)(module)
        except AttributeError:
            yield target, attrgetter(target)(graph_module)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the exporter's long logs and warnings; its failure is reported in one sentence."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def _reason(error: BaseException, module: torch.nn.Module, args: Sequence[Any]) -> str:
    """One clause that says why a module cannot be captured; `args` are of its calls, or of its parts."""
    if any(isinstance(arg, PackedSequence) for arg in args):
        return "it takes packed sequences, whose shapes depend on a tensor's values (the lengths)"
    if any(isinstance(arg, torch.Tensor) and arg.is_nested for arg in args):
        return "it computes with nested tensors, whose rows have several lengths"
    if isinstance(
        error, GuardOnDataDependentSymNode | DataDependentOutputException | DynamicOutputShapeException
    ):
        return BY_VALUES
    if any(isinstance(m, torch.jit.ScriptModule) or _packed(m) for m in module.modules()):
        return "torch.export does not know its packed (quantized or scripted) parameters"
    return f"torch.export does not accept it ({plain_reason(str(error))})"


def _packed(module: torch.nn.Module) -> bool:
    """Whether a module keeps an object of TorchScript, as quantized layers do."""
    return any(isinstance(value, torch.ScriptObject) for value in vars(module).values())

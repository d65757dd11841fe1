"""Capture a model's forward as ATen graphs: the whole of it, or its exportable submodules.

The graphs hold operators as PyTorch runs them eagerly (`linear`, `layer_norm`,
`scaled_dot_product_attention`, not their decompositions), with parameters as attributes at the module's
own paths. Capturing the same model with the same inputs again gives the same node names.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule

from .normalise import normalise


@dataclass(frozen=True)
class Unit:
    """One exported graph."""

    path: str
    """Path of the submodule; empty for the whole model."""
    graph_module: GraphModule
    """Takes the submodule's `args` and `kwargs`. `get_attr` targets are paths in the submodule, save
    those in `constants`."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    """The arguments really seen."""
    calls: int = 1
    """Calls in one forward of the model."""
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Tensors made in forward (`torch.tensor(...)`), which the submodule does not hold, by target."""


@dataclass(frozen=True)
class Capture:
    """All exported graphs of a model."""

    units: tuple[Unit, ...]
    notes: tuple[str, ...] = ()
    """What could not be exported, and why."""


@dataclass
class _Calls:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    count: int = 1


def capture_units(model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Capture:
    """Export `model`, or where that fails its largest exportable submodules.

    Args:
        model: in eval mode; it is run once more (with hooks) where it cannot be exported whole.
        args: positional arguments of its forward.
        kwargs: keyword arguments of its forward.
    """
    try:
        return Capture((_export("", model, args, dict(kwargs), 1),))
    except Exception as error:
        notes = [f"the model cannot be exported whole ({_reason(error)}); its parts are taken one by one"]
    calls = _observe(model, args, dict(kwargs))
    units: list[Unit] = []
    _descend("", model, calls, units, notes)
    return Capture(tuple(units), tuple(notes))


def _descend(
    path: str, module: torch.nn.Module, calls: dict[str, _Calls], units: list[Unit], notes: list[str]
) -> None:
    """Export the children that were called, going deeper where one does not export."""
    for name, child in module.named_children():
        child_path = f"{path}.{name}" if path else name
        seen = calls.get(child_path)
        if seen is None:  # a container, or never called
            _descend(child_path, child, calls, units, notes)
            continue
        try:
            units.append(_export(child_path, child, seen.args, seen.kwargs, seen.count))
        except Exception as error:
            notes.append(f"{child_path} cannot be exported: {_reason(error)}")
            _descend(child_path, child, calls, units, notes)


def _observe(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, _Calls]:
    """Arguments of each submodule's first call, and how often it was called."""
    calls: dict[str, _Calls] = {}
    handles = []
    for path, module in model.named_modules():
        if not path:
            continue

        def hook(_: Any, a: tuple[Any, ...], k: dict[str, Any], path: str = path) -> None:
            if path in calls:
                calls[path].count += 1
            else:
                calls[path] = _Calls(a, dict(k))

        handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
    try:
        with torch.no_grad():
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _export(
    path: str, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], count: int
) -> Unit:
    """Export one module, non-strict first because it follows the eager semantics most closely."""
    with _quiet(), torch.no_grad():
        try:
            program = torch.export.export(module, args, kwargs, strict=False)
        except Exception as first:
            try:
                program = torch.export.export(module, args, kwargs, strict=True)
            except Exception:
                raise first from None
        takes_guards = "check_guards" in inspect.signature(program.module).parameters
        graph_module = program.module(**({"check_guards": False} if takes_guards else {}))
    normalise(graph_module)
    return Unit(path, graph_module, args, kwargs, count, dict(_constants(graph_module, module)))


def _constants(graph_module: GraphModule, module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for node in graph_module.graph.find_nodes(op="get_attr"):
        target = str(node.target)
        try:
            _attribute(module, target)
        except AttributeError:
            yield target, _attribute(graph_module, target)


def _attribute(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part)
    return root


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter logs and warns at length about what we report in one sentence."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text[:200]

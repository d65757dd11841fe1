"""A module of the model with a stitched forward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules import module as _nn
from torch.utils import _pytree

from .guards import Known, Learn, guards, reader
from .layout import Layout
from .signature import Signature


class Unit:
    """A module of the model with a stitched forward.

    Args:
        forwards: the generated forward with direct kernel calls and with opaque operators.
    """

    def __init__(
        self,
        plan: dict[str, Any],
        constants: Mapping[str, torch.Tensor],
        forwards: tuple[Callable[..., Any], Callable[..., Any]],
        compiled: bool,
    ) -> None:
        self.path: str = plan["path"]
        self.class_name: str = plan["class"]
        self.signature = Signature(plan["signature"])
        self.modules: list[tuple[int, str]] = [(m["parent"], m["name"]) for m in plan["modules"]]
        self.class_names: list[str] = [m["class"] for m in plan["modules"]]
        self.hooks: list[int] = [m["hooks"] for m in plan["modules"]]
        self.training: list[bool] = [plan["training"], *(m["training"] for m in plan["modules"])]
        self.tensors: list[tuple[int, str, str]] = [
            (t["module"], t["kind"], t["name"]) for t in plan["tensors"]
        ]
        self.layouts = [Layout.read(t) for t in plan["tensors"]]
        self.expected: list[tuple[Any, ...]] = [
            (torch.nn.Parameter if kind == "_parameters" else torch.Tensor, lay.dtype, lay.shape, lay.strides)
            for (_, kind, _), lay in zip(self.tensors, self.layouts, strict=True)
        ]
        self.constants = [constants[name] for name in plan["constants"]]
        self.output_spec: str | None = plan["output_spec"]
        """None for what the generated forward returns; empty if each model's original forward shows it."""
        self.device: str = plan["device"]
        self.packs = bool(plan["products"])
        """Whether it computes products from packed weights."""
        self.warned = False
        self.eager, self.traceable = forwards
        self.compiled: Callable[..., Any] | None = None
        if compiled:
            self.compiled = torch.compile(self.traceable, dynamic=False)

    def fits(self, modules: list[Any]) -> bool:
        """True if the modules have the captured classes."""
        if [type(m).__qualname__ for m in modules[1:]] != self.class_names:
            return False
        lineage = type(modules[0]).__mro__
        captured = next((c for c in lineage if c.__qualname__ == self.class_name), None)
        return captured is not None and captured.forward is lineage[0].forward  # type: ignore[attr-defined]

    def guards(self, classes: Sequence[type]) -> tuple[Known, Learn]:
        """See `guards`; for modules of these classes."""
        read = reader(self.modules, classes, self.training, self.hooks, self.tensors)
        return guards(self.signature.direct, read)

    def walk(self, module: Any) -> list[Any] | None:
        """The unit's modules, itself first; None if one is missing."""
        found: list[Any] = [module]
        for parent, name in self.modules:
            child = found[parent]._modules.get(name)
            if child is None:
                return None
            found.append(child)
        return found

    def read(self, modules: list[Any]) -> list[Any]:
        """Current parameters, buffers and other tensors that the modules keep.

        Raises:
            LookupError, TypeError: one was removed.
        """
        return [
            vars(modules[index])[kind][name] if kind else vars(modules[index])[name]
            for index, kind, name in self.tensors
        ]

    def weights(self, module: Any, classes: Sequence[Any]) -> list[Any] | None:
        """Return the weights if the module is still the captured one, else None."""
        if _nn._global_forward_hooks or _nn._global_forward_pre_hooks:
            return None
        modules = self.walk(module)
        if modules is None or module.training is not self.training[0]:
            return None
        for child, cls, training, hooks in zip(
            modules[1:], classes, self.training[1:], self.hooks, strict=True
        ):
            if child.__class__ is not cls or child.training is not training or "forward" in vars(child):
                return None
            if len(child._forward_hooks) + len(child._forward_pre_hooks) != hooks:
                return None
        try:
            tensors = self.read(modules)
        except (LookupError, TypeError):
            return None
        # One list comparison: calling `holds` per weight would take longer than a small kernel.
        if [(t.__class__, t.dtype, t.shape, t.stride()) for t in tensors] != self.expected:
            kept = all(lay.holds(t) for lay, t in zip(self.layouts, tensors, strict=True))
            return tensors if kept else None
        return tensors

    def plain(self, tensors: Sequence[Any]) -> bool:
        """True if neither gradients nor autocast are requested."""
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            if not self.warned and not torch.compiler.is_compiling():
                self.warned = True
                warnings.warn(
                    "gradients are enabled, so the original forward runs; the kernels are for inference: "
                    "call the model under torch.inference_mode() or torch.no_grad()",
                    stacklevel=4,
                )
            return False
        return not torch.is_autocast_enabled(self.device)

    def structure(self) -> Structure:
        """The output structure of a class of models."""
        return Structure(self.output_spec)


class Structure:
    """The model's output structure, which is put around the results of a generated forward.

    Args:
        text: see `Unit.output_spec`.
    """

    def __init__(self, text: str | None) -> None:
        self.known = text != ""
        self._spec = _pytree.treespec_loads(text) if text else None

    def learn(self, output: Any) -> Any:
        """Take the structure of an output of the original forward; returns that output."""
        self._spec, self.known = _pytree.tree_structure(output), True
        return output

    def around(self, results: Any) -> Any:
        """The output that has these results as its leaves."""
        return results if self._spec is None else _pytree.tree_unflatten(list(results), self._spec)

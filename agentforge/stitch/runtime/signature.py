"""The call that a unit was captured for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .layout import Layout


def in_order(kwargs: Mapping[str, Any], ordered: Sequence[str]) -> bool:
    """Whether a call has these keywords, and in this order; others may stand between them."""
    return [name for name in kwargs if name in ordered] == ordered


class Input(NamedTuple):
    """A leaf of the call's arguments: its path and its required value."""

    path: tuple[Any, ...]
    layout: Layout | None
    constant: Any


class Signature:
    """The call that a unit was captured for."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.positional: int = plan["positional"]
        self.keywords: tuple[str, ...] = tuple(plan["keywords"])
        kinds = {"tuple": tuple, "list": list, "dict": dict}
        self.containers = [
            (tuple(c["path"]), kinds[c["type"]], c["length"], c["keys"]) for c in plan["containers"]
        ]
        self.leaves = [
            Input(
                tuple(leaf["path"]),
                Layout.read(leaf["tensor"]) if "tensor" in leaf else None,
                leaf.get("constant"),
            )
            for leaf in plan["leaves"]
        ]

    @property
    def plain(self) -> bool:
        """True if each argument is a tensor that is passed by its position."""
        places = [(0, n) for n in range(self.positional)]
        tensors = [leaf.path for leaf in self.leaves if leaf.layout is not None]
        return tensors == places and len(self.leaves) == self.positional and not self.keywords

    def ordered(self, parameters: inspect.Signature) -> list[str]:
        """Keywords that a forward with these parameters gets in its `**kwargs`, whose order it may follow.

        Empty for fewer than two.
        """
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        named = {name for name, parameter in parameters.parameters.items() if parameter.kind in kinds}
        found = [name for name in self.keywords if name not in named]
        return found if len(found) > 1 else []

    def match(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], ordered: Sequence[str] = ()
    ) -> list[torch.Tensor] | None:
        """Tensor leaves of this call in the captured order; None if the call does not match.

        Args:
            ordered: keywords that must be in this order; see the method `ordered`.
        """
        if len(args) != self.positional or len(kwargs) != len(self.keywords):
            return None
        if ordered and not in_order(kwargs, ordered):
            return None
        root = (args, kwargs)
        try:
            for path, kind, length, keys in self.containers:
                value = _at(root, path)
                if type(value) is not kind or len(value) != length:
                    return None
                if keys is not None and list(value) != keys:  # a forward may iterate over a dict
                    return None
            tensors = []
            for path, layout, constant in self.leaves:
                value = _at(root, path)
                if layout is None:
                    if type(value) is not type(constant) or value != constant:
                        return None
                elif layout.holds(value):
                    tensors.append(value)
                else:
                    return None
        except (KeyError, IndexError, TypeError):
            return None
        return tensors

    def arrange(
        self, signature: inspect.Signature, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Rearrange the arguments to be passed as in the captured call."""
        try:
            bound = signature.bind(module, *args, **kwargs)
        except TypeError:
            return None
        given = list(bound.arguments)[1:]
        bound.apply_defaults()
        names = list(signature.parameters)[1:]
        wanted = [*names[: self.positional], *self.keywords]
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        for name in given:
            parameter = signature.parameters[name]
            if parameter.kind in variadic:
                return None
            if name not in wanted and bound.arguments[name] is not parameter.default:
                return None
        if any(name not in bound.arguments for name in wanted):
            return None
        return (
            tuple(bound.arguments[name] for name in names[: self.positional]),
            {name: bound.arguments[name] for name in self.keywords},
        )


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value

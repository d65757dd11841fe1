"""The call that a unit was captured for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .layout import Layout


def in_order(kwargs: Mapping[str, Any], ordered: Sequence[str]) -> bool:
    """Whether a call has these keywords, and in this order; others may stand between them."""
    return [name for name in kwargs if name in ordered] == ordered


Call = tuple[tuple[Any, ...], dict[str, Any]]
Arrange = Callable[[tuple[Any, ...], dict[str, Any]], Call | None]


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

    def arranger(self, parameters: inspect.Signature, given: int, *names: str) -> Arrange | None:
        """A function that rearranges calls of a form to be passed as in the captured call.

        It returns None if an argument that the captured call lacks has another value than its default.

        Args:
            parameters: of the forward.
            given: number of positional arguments of these calls.
            names: their keywords.

        Returns:
            None if the calls have the captured form, or none that can become it.
        """
        if given == self.positional and {*names} == {*self.keywords}:
            return None
        places = {name: (1, name) for name in names}
        try:
            bound = parameters.bind(None, *((0, n) for n in range(given)), **places).arguments
        except TypeError:
            return None
        _, *own = parameters.parameters.values()
        if any(p.name in bound for p in own if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)):
            return None
        defaults = {p.name: p.default for p in own if p.default is not p.empty}
        first = [p.name for p in own[: self.positional]]
        wanted = [*first, *self.keywords]
        if len(first) < self.positional or any(n not in bound and n not in defaults for n in wanted):
            return None
        sources = {name: bound.get(name, (2, name)) for name in wanted}
        others = [(bound[p.name], p.default) for p in own if p.name in bound and p.name not in wanted]

        def arrange(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
            call = (args, kwargs, defaults)
            if any(call[kind][key] is not default for (kind, key), default in others):
                return None
            values = {name: call[kind][key] for name, (kind, key) in sources.items()}
            return tuple([values[name] for name in first]), {name: values[name] for name in self.keywords}

        return arrange


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value

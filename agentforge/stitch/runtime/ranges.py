"""Calls of any shape in a range: a unit for each, made from common texts at the first call."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .guards import transformed
from .layout import compiling
from .swap import stitched_forward, subclass
from .unit import Unit

_MOST = 256
"""Shapes that are known at a time."""


class Ranges:
    """The ranges of shapes of a model.

    Args:
        entries: of the plan, at least one.
        make: a unit from its plan and its source.
    """

    def __init__(
        self, entries: Sequence[Mapping[str, Any]], make: Callable[[dict[str, Any], str], Unit]
    ) -> None:
        self._entries, self._make = entries, make
        self._places = [(p["position"], p["name"], p["dimension"]) for p in entries[0]["sizes"]]
        unit = self.unit_for(tuple(entries[0]["example"]))
        assert unit is not None
        self.unit: Unit = unit
        """For one of the shapes: modules and classes are the same for all of them."""

    def unit_for(self, sizes: tuple[int, ...]) -> Unit | None:
        """The unit for these sizes; None if no range has them."""
        for entry in self._entries:
            ends = zip(entry["low"], sizes, entry["high"], strict=True)
            if all(low <= size <= high for low, size, high in ends):
                named = dict(zip(entry["names"], sizes, strict=True))
                return self._make(json.loads(_filled(entry["plan"], named)), _filled(entry["source"], named))
        return None

    def stitched_class(self, original: type, classes: tuple[type, ...]) -> type:
        """Subclass of `original` whose forward looks up the shape in a table.

        A shape that is in no range, and one that a kernel has no code for, runs the original.
        """
        places = self._places
        table: dict[tuple[int, ...], Callable[..., Any]] = {}

        def ordinary(self_: Any, *args: Any, **kwargs: Any) -> Any:
            return original.forward(self_, *args, **kwargs)  # type: ignore[attr-defined]  # as it is now

        def first(sizes: tuple[int, ...], self_: Any, args: Any, kwargs: Any) -> Any:
            unit = self.unit_for(sizes)
            found = ordinary if unit is None else stitched_forward(original, unit, classes)
            try:
                result = found(self_, *args, **kwargs)
            except Exception:
                found = ordinary  # the unit writes to nothing, so the call can be repeated
                result = ordinary(self_, *args, **kwargs)
            table[sizes] = found
            for oldest in list(table)[:-_MOST]:
                table.pop(oldest, None)
            return result

        @functools.wraps(original.forward)  # type: ignore[attr-defined]
        def forward(self_: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling() or torch.jit.is_tracing():
                return ordinary(self_, *args, **kwargs)
            given = len(args)
            try:
                sizes = tuple([(args[n] if n < given else kwargs[name]).shape[d] for n, name, d in places])
                run = table.get(sizes)
            except (KeyError, IndexError, AttributeError, TypeError):  # a symbolic size has no hash
                return ordinary(self_, *args, **kwargs)
            if run is None and transformed():
                return ordinary(self_, *args, **kwargs)
            if run is None:
                return first(sizes, self_, args, kwargs)
            return run(self_, *args, **kwargs)

        return subclass(original, self.unit, forward)


def _filled(text: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """A common text for these sizes."""
    values = [str(eval(term, {"__builtins__": {}}, dict(sizes))) for term in text["terms"]]
    return "".join(part + value for part, value in zip(text["parts"], [*values, ""], strict=True))

"""Compare the operators that captured graphs run with those that eager runs."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Interpreter
from torch.utils._python_dispatch import TorchDispatchMode

from ..graph.capture import CapturedUnit
from ..graph.value_capture import flat_arguments

_OF_EXPORTS = ("aten::lift_fresh_copy", "aten::_assert", "aten::sym_")
"""Begin the names of operators that torch.export adds: constants and checks of inputs."""
_NAMED = 4
"""Operators that a note names; it counts the others."""


class _Operators(TorchDispatchMode):
    """Counts operators that compute, by name. One that writes in place has the name of its counterpart."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, torch._ops.OpOverload) and not func.is_view:
            self.found[func._schema.name.removesuffix("_")] += 1
        return func(*args, **(kwargs or {}))


def only_in_graphs(
    model: torch.nn.Module, units: Sequence[CapturedUnit], restore: Callable[[], None]
) -> list[str]:
    """Names of operators that the graphs run more often than the modules that they were captured from.

    Args:
        restore: undoes what runs write to buffers and arguments.
    """
    found: Counter[str] = Counter()
    for unit in units:
        try:
            args, kwargs = copy.deepcopy((unit.args, dict(unit.kwargs)))
            eager, graph = _Operators(), _Operators()
            with torch.no_grad(), eager:
                model.get_submodule(unit.path)(*args, **kwargs)
            restore()
            with torch.no_grad(), graph:
                Interpreter(unit.graph_module).run(*flat_arguments(unit), enable_io_processing=False)
        except Exception:  # code that does not run in a mode of torch is not compared
            continue
        finally:
            restore()
        found += graph.found - eager.found
    return sorted(name for name in found if not name.startswith(_OF_EXPORTS))


def program_notes(names: Sequence[str]) -> list[str]:
    """What a user should know if the graphs are not eager's program."""
    if not names:
        return []
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    listed = ", ".join([*(name.removeprefix("aten::") for name in names[:_NAMED]), *more])
    return [
        f"the exported graph has operators that the eager model does not run ({listed}): "
        "the rows below are those of the graph"
    ]

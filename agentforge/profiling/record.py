"""Look at the values that cross the borders of regions, in one run of the captured graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Interpreter, Node
from torch.utils._pytree import tree_leaves

from agentforge.harness.describe import describe_tensor
from agentforge.schema import TensorInput

from .capture import Unit
from .patterns import pattern_of

_HIDDEN = -9e3
"""A score of this or less weighs nothing: masks are written as -inf, the dtype's lowest, -1e9 or -1e4."""


@dataclass(frozen=True)
class Seen:
    """A value that was seen at a node."""

    tensor: TensorInput
    """Named after the node."""
    pattern: str | None
    """Python expression for values that no distribution draws (a causal mask), else None."""
    visible: float = 1.0
    """Share of its elements that are not hidden: of an attention's mask, or of what a softmax is taken of."""


class _Recorder(Interpreter):
    def __init__(self, unit: Unit, wanted: Collection[Node]) -> None:
        super().__init__(unit.graph_module)
        self.wanted = frozenset(wanted)
        self.seen: dict[Node, Seen] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n in self.wanted and isinstance(value, torch.Tensor):
            self.seen[n] = Seen(describe_tensor(n.name, value), pattern_of(value), _visible(value))
        return value


def record(unit: Unit, wanted: Collection[Node]) -> dict[Node, Seen]:
    """Run a unit once and describe the tensors at `wanted` nodes; values that are no tensors are left out."""
    recorder = _Recorder(unit, wanted)
    with torch.no_grad():
        recorder.run(*flat_arguments(unit), enable_io_processing=False)
    return recorder.seen


def _visible(tensor: torch.Tensor) -> float:
    """True in a boolean mask, above `_HIDDEN` in an additive one, which no 8-bit float is."""
    additive = tensor.is_floating_point() and tensor.itemsize > 1
    if tensor.numel() == 0 or not (tensor.dtype is torch.bool or additive):
        return 1.0
    shown = tensor if tensor.dtype is torch.bool else tensor > _HIDDEN
    return int(torch.count_nonzero(shown)) / tensor.numel()


def flat_arguments(unit: Unit) -> list[Any]:
    """Values of the graph's placeholders in order, for `Interpreter.run(..., enable_io_processing=False)`."""
    in_spec = unit.graph_module.graph._codegen.pytree_info.in_spec
    names = in_spec.child(1).context
    return tree_leaves((unit.args, {name: unit.kwargs[name] for name in names}))

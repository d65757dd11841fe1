"""Record the values at the borders of regions during one run of the captured graph."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Interpreter, Node
from torch.utils._pytree import tree_leaves

from agentforge.problems.describe import describe_tensor
from agentforge.schema import DType, TensorInput

from .capture import Buffers, CapturedUnit
from .patterns import group_sizes, pattern_of

_HIDDEN = -9e3
"""Scores up to this value get no weight: masks use -inf, the dtype's lowest value, -1e9 or -1e4."""


@dataclass(frozen=True)
class CapturedValues:
    """A value captured at a node."""

    tensor: TensorInput
    """Named after the node."""
    pattern: str | None
    """Python expression for values that no distribution reproduces (a causal mask), else None."""
    visible: float = 1.0
    """Share of unmasked elements, of an attention mask or of a softmax's input; share of groups with rows, of
    the ends of groups."""


class Recorder(Interpreter):
    """Keeps the values of some nodes.

    Args:
        keep: gives what to keep of a value; nothing if it is None.
    """

    def __init__(
        self,
        unit: CapturedUnit,
        wanted: Collection[Node],
        keep: Callable[[Node, Any], Any] = lambda _, value: value,
    ) -> None:
        super().__init__(unit.graph_module)
        self.wanted = frozenset(wanted)
        self.keep = keep
        self.kept: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n in self.wanted and (kept := self.keep(n, value)) is not None:
            self.kept[n] = kept
        return value


def _described(node: Node, value: Any) -> CapturedValues | None:
    """Of a dense tensor whose dtype workloads can name; None for sparse, nested and quantized ones."""
    dense = isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_nested
    if not dense or str(value.dtype).removeprefix("torch.") not in tuple(DType):
        return None
    return CapturedValues(describe_tensor(node.name, value), pattern_of(value), _visible(value))


def record(unit: CapturedUnit, wanted: Collection[Node]) -> dict[Node, CapturedValues]:
    """Run a unit once and describe the tensors at `wanted` nodes; other values are omitted."""
    recorder, arguments = Recorder(unit, wanted, _described), flat_arguments(unit)
    buffers = Buffers(unit.graph_module, arguments=arguments)
    with torch.no_grad():
        recorder.run(*arguments, enable_io_processing=False)
    buffers.restore()
    return recorder.kept


def _visible(tensor: torch.Tensor) -> float:
    """Share of elements that are True in a boolean mask, or above `_HIDDEN`. 8-bit floats are never masks.

    Of integers that never fall, the share of those that rise.
    """
    if (sizes := group_sizes(tensor)) is not None:
        return int(torch.count_nonzero(sizes)) / len(sizes)
    additive = tensor.is_floating_point() and tensor.itemsize > 1
    if tensor.numel() == 0 or not (tensor.dtype is torch.bool or additive):
        return 1.0
    shown = tensor if tensor.dtype is torch.bool else tensor > _HIDDEN
    return int(torch.count_nonzero(shown)) / tensor.numel()


def flat_arguments(unit: CapturedUnit) -> list[Any]:
    """Values of the graph's placeholders in order, for `Interpreter.run(..., enable_io_processing=False)`."""
    in_spec = unit.graph_module.graph._codegen.pytree_info.in_spec
    names = in_spec.child(1).context
    return tree_leaves((unit.args, {name: unit.kwargs[name] for name in names}))

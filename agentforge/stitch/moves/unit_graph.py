"""A unit's graph while moves rewrite it: what may be changed, and the layout of what was."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch.fx import Node

from agentforge.profiling.graph.capture import CapturedUnit
from agentforge.profiling.graph.operators import run_fake, value_of
from agentforge.stitch.graph.dataflow import bases, written_to
from agentforge.stitch.graph.derived import DERIVE
from agentforge.stitch.graph.products import CHANNELS_LAST

_aten = torch.ops.aten


class UnitGraph:
    """A graph whose node values (`meta["val"]`) stay true while it is rewritten.

    Args:
        claimed: names of the nodes that kernels compute; they stay, and get inputs in their captured layout.
    """

    def __init__(self, unit: CapturedUnit, claimed: Collection[str]) -> None:
        self.graph = unit.graph_module.graph
        self._claimed = frozenset(claimed)
        nodes = list(self.graph.nodes)
        base, written = bases(nodes), written_to(nodes)
        self._written = {node for node in nodes if base[node] in written}
        self._old: dict[Node, Any] = {}
        """Captured values of the nodes whose layout changed."""
        self._restored: dict[Node, Node] = {}

    def free(self, *nodes: object) -> bool:
        """Whether these are operators that a move may change: no kernel's, and none whose memory is written
        to."""
        return all(
            isinstance(n, Node)
            and n.op == "call_function"
            and n.name not in self._claimed
            and n not in self._written
            for n in nodes
        )

    def is_written(self, node: Node) -> bool:
        """Whether the unit writes to the value's memory, so that its readers must keep their places."""
        return node in self._written

    def is_weight(self, node: object) -> bool:
        """Whether it is a parameter, a buffer or a constant that the unit does not write to, or is derived
        from some."""
        if not isinstance(node, Node) or node in self._written:
            return False
        return node.op == "get_attr" or DERIVE in node.meta

    def call(self, target: Any, *args: Any, before: Node, derive: bool = False, **kwargs: Any) -> Node:
        """Insert an operator.

        Args:
            derive: its value depends on weights alone and is computed once for each content of theirs.
        """
        with self.graph.inserting_before(before):
            node = self.graph.call_function(target, args, kwargs)
        node.meta["val"] = run_fake(node)
        if derive:
            node.meta[DERIVE] = True
        return node

    def relayout(self, changed: dict[Node, Any], enter: Callable[[Node], bool] = lambda node: False) -> None:
        """Let changed strides pass on, and restore the captured ones before whatever needs those.

        That are kernels, outputs, operators that write, and views that other strides do not permit.

        Args:
            changed: captured value of each node whose strides a move has changed.
            enter: called with each operator that may change; returns whether it has changed its inputs.
        """
        self._old.update(changed)
        for node in list(self.graph.nodes):
            entered = node not in changed and self.free(node) and enter(node)
            touched = [source for source in node.all_input_nodes if source in self._old]
            if node in changed or not (touched or entered) or self._passes_on(node):
                continue
            for source in touched:
                node.replace_input_with(source, self._restore(source, node))

    def changed(self, node: Node) -> bool:
        """Whether the node has other strides than were captured."""
        return node in self._old

    def _passes_on(self, node: Node) -> bool:
        old = value_of(node)
        if not self.free(node) or old is None:
            return False
        try:
            value = run_fake(node)
        except Exception:  # a view that these strides do not permit
            return False
        if CHANNELS_LAST in node.meta:
            value = torch.empty_like(value, memory_format=torch.channels_last)
        if value.stride() != old.stride():
            if not _dense(old):
                return False
            self._old.setdefault(node, old)
            node.meta["val"] = value
            node.meta.pop("af_kind", None)
        return True

    def _restore(self, source: Node, user: Node) -> Node:
        """A copy of a value in its captured layout; the same one for all its users."""
        if source not in self._restored:
            value = self._old[source]
            order = sorted(range(value.ndim), key=lambda d: (-value.stride(d), -value.shape[d]))
            straight = order == list(range(value.ndim))
            turned = source if straight else self.call(_aten.permute.default, source, order, before=user)
            copied = self.call(
                _aten.clone.default, turned, before=user, memory_format=torch.contiguous_format
            )
            back = [order.index(d) for d in range(value.ndim)]
            self._restored[source] = (
                copied if straight else self.call(_aten.permute.default, copied, back, before=user)
            )
        return self._restored[source]


def _dense(value: torch.Tensor) -> bool:
    """Whether the elements have no gaps between them and share no memory."""
    last = sum((n - 1) * stride for n, stride in zip(value.shape, value.stride(), strict=True))
    return value.numel() == last + 1


def same_storage_order(node: Node) -> bool:
    """Whether the value's elements lie in memory in the order of its dimensions, without gaps."""
    value = value_of(node)
    return value is not None and value.is_contiguous()

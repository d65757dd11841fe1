"""Prepare an exported graph for partitioning, without changing its results.

- Slices of a `split` become slices of its input.
- Operators without effect (eval dropout, `contiguous` of a contiguous tensor) are removed.
- The transposed output of attention gets a `contiguous`.
- In-place operators become out-of-place if the write has no other observer.
- Each view gets exactly one user, so that a region can own its views.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .operators import Kind, argument, is_in_place, kind_of, mutated, op_name, run_fake, storages, value_of

_SPLITS = {"split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk"}


def normalise(module: GraphModule) -> None:
    """Rewrite `module` in place; surviving nodes keep their names."""
    graph = module.graph
    graph.eliminate_dead_code()
    _drop_guards(graph)
    _unpack_splits(graph)
    _drop_identities(graph)
    _out_of_place(graph)
    _settle_attention(graph)
    _one_user_per_view(graph)
    graph.eliminate_dead_code()
    graph.lint()
    module.recompile()


def is_functional(graph: Graph) -> bool:
    """True if no operator writes to its arguments."""
    return not any(is_in_place(n) for n in graph.nodes)


def _drop_guards(graph: Graph) -> None:
    """Remove input assertions: the original checks them, and they would keep values alive in the graph."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and op_name(node) == "_assert_tensor_metadata" and not node.users:
            graph.erase_node(node)


def _out_of_place(graph: Graph) -> None:
    """Replace `relu_(x)` by `relu(x)` if `x` has no alias."""
    order = {n: i for i, n in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        if not is_in_place(node):
            continue
        written = node.args[0] if node.args else None
        if (
            not isinstance(written, Node)
            or (twin := _twin(node)) is None
            or not _private(written, node, order)
        ):
            continue
        node.target = twin
        node.meta.pop("af_kind", None)
        written.replace_all_uses_with(node, delete_user_cb=lambda u, n=node: order[u] > order[n])


def _twin(node: Node) -> Any:
    """`aten.relu.default` for `aten.relu_.default`; None if no counterpart takes the same arguments."""
    name, overload = op_name(node), node.target._overloadname
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    twin = getattr(packet, overload, None) if name.endswith("_") else None
    if twin is None or twin._schema.is_mutable:
        return None
    names = [[a.name for a in s._schema.arguments] for s in (twin, node.target)]
    source, result = value_of(node.args[0]), value_of(node)
    same_type = source is not None and result is not None and source.dtype == result.dtype
    return twin if names[0] == names[1] and same_type and _keeps_dtype(node, twin) else None


def _keeps_dtype(node: Node, twin: Any) -> bool:
    """In-place operators write in their argument's dtype; the counterpart may promote."""
    written = value_of(node.args[0])
    others = [value_of(n) for n in node.all_input_nodes[1:]]
    return all(o is None or o.dtype == written.dtype or o.ndim == 0 for o in others)  # type: ignore[union-attr]


def _private(written: Node, node: Node, order: dict[Node, int]) -> bool:
    """True if nothing else sees the write: an operator made the value, and no earlier alias is used later."""
    if written.op != "call_function" or _shares(written):
        return False
    earlier = [user for user in written.users if order[user] < order[node]]
    return not any(_shares(user) and _last_use(user, order) > order[node] for user in earlier)


def _shares(node: Node) -> bool:
    """True if a node's result may share the memory of an input: a view, or what an in-place operator returns.

    Schemas do not tell about all: `dropout` and `type_as` may return their input. So fake tensors are asked.
    """
    if node.op != "call_function":
        return False
    if kind_of(node) is Kind.VIEW or is_in_place(node):
        return True
    given = storages([source.meta.get("val") for source in node.all_input_nodes])
    try:
        return bool(given) and not given.isdisjoint(storages(run_fake(node)))
    except Exception:  # fake tensors cannot run it: it may share
        return True


def _last_use(node: Node, order: dict[Node, int]) -> int:
    latest = order[node]
    for user in node.users:
        latest = max(latest, _last_use(user, order) if _shares(user) else order[user])
    return latest


def _unpack_splits(graph: Graph) -> None:
    """`getitem(split(x), i)` becomes a slice of `x`; for `unbind` it becomes a select."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        parent, index = node.args
        if not isinstance(parent, Node) or parent.op != "call_function" or not isinstance(index, int):
            continue
        name, source = op_name(parent), parent.args[0]
        if name == "broadcast_tensors":
            _to_expand(node, source, index)
            continue
        if not isinstance(source, Node) or value_of(source) is None:
            continue
        if name in _SPLITS:
            dim = argument(parent, "dim") or 0
            sizes = [int(v.shape[dim]) for v in parent.meta["val"]]
            index %= len(sizes)
            start = sum(sizes[:index])
            target, args = torch.ops.aten.slice.Tensor, (source, dim, start, start + sizes[index])
        elif name == "unbind":
            dim = argument(parent, "dim") or 0
            target, args = torch.ops.aten.select.int, (source, dim, index)  # type: ignore[assignment]
        else:
            continue
        node.target, node.args = target, args
        node.meta.pop("af_kind", None)
    graph.eliminate_dead_code()


def _to_expand(node: Node, sources: Any, index: int) -> None:
    """Replace one result of `broadcast_tensors` by its source, expanded."""
    value = value_of(node)
    assert value is not None
    node.target, node.args = torch.ops.aten.expand.default, (sources[index], [int(n) for n in value.shape])
    node.meta.pop("af_kind", None)


def _drop_identities(graph: Graph) -> None:
    """Remove operators whose result is their input."""
    for node in list(graph.nodes):
        if node.op != "call_function" or not node.args or not isinstance(node.args[0], Node):
            continue
        dropped = "dropout" in op_name(node) and argument(node, "train") is False
        if dropped or (kind_of(node) is Kind.VIEW and _same_layout(node, node.args[0])):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _settle_attention(graph: Graph) -> None:
    """Copy an attention's transposed output wherever it does not lie as it was captured.

    The backends of `scaled_dot_product_attention` give several layouts, and the user chooses among them. An
    export leaves `contiguous` out if its input is contiguous with the backend that it sees.
    """
    for node in list(graph.nodes):
        source = node.args[0] if op_name(node) in ("transpose", "permute") and node.args else None
        if not isinstance(source, Node) or kind_of(source) is not Kind.ATTENTION or _is_written(source):
            continue
        value = value_of(node)
        if value is None or not value.is_contiguous():
            continue
        with graph.inserting_after(node):
            settled = graph.create_node(
                "call_function", torch.ops.aten.contiguous.default, (node,), name=f"{node.name}_settled"
            )
        settled.meta = dict(node.meta)
        node.replace_all_uses_with(settled, delete_user_cb=lambda user, made=settled: user is not made)


def _is_written(node: Node) -> bool:
    """Whether an operator writes to a value in place, or to a view of it."""
    return any(
        node in mutated(user) or (kind_of(user) is Kind.VIEW and _is_written(user)) for user in node.users
    )


def settles_layout(node: Node) -> bool:
    """True for a `contiguous` of `_settle_attention`."""
    if node.target is not torch.ops.aten.contiguous.default or kind_of(node) is not Kind.VIEW:
        return False
    source: Any = node.args[0]
    return bool(source.all_input_nodes) and kind_of(source.all_input_nodes[0]) is Kind.ATTENTION


def _same_layout(node: Node, source: Node) -> bool:
    a, b = value_of(node), value_of(source)
    if a is None or b is None:
        return False
    return (
        a.shape == b.shape
        and a.stride() == b.stride()
        and a.dtype == b.dtype
        and a.device == b.device
        and a.storage_offset() == b.storage_offset()
        and (a.is_conj(), a.is_neg()) == (b.is_conj(), b.is_neg())
    )


def _one_user_per_view(graph: Graph) -> None:
    """Copy views that several nodes use, so that a region may own one."""
    for node in reversed(list(graph.nodes)):
        if kind_of(node) is not Kind.VIEW or node.target is operator.getitem:
            continue
        for number, user in enumerate(list(node.users)[1:], start=1):
            with graph.inserting_before(user):
                copy = graph.create_node(
                    "call_function",
                    node.target,
                    node.args,
                    dict(node.kwargs),
                    name=f"{node.name}_view{number}",
                )
            copy.meta = dict(node.meta)
            user.replace_input_with(node, copy)

"""Minimum cost of a region: floating-point operations, bytes, speed-of-light seconds."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.utils.flop_counter import FlopCounterMode

from agentforge.devices import DeviceSpec, Roofline
from agentforge.schema import Bound

from .float32 import product_dtype
from .footprint import Footprint, distinct_bytes, footprint, footprint_of
from .graph.chains import source_of
from .graph.experts import grouped_product
from .graph.operators import GATHERS, VENDOR, Kind, argument, kind_of, numel_of, op_name, run_fake, value_of
from .graph.region import Region
from .graph.value_capture import CapturedValues
from .speed_of_light import Work, dtype_of, speed_of_light

_ROW_PASSES = {"layer_norm": 8, "group_norm": 8, "rms_norm": 5, "softmax": 5, "log_softmax": 5, "var": 4}
"""Operations per element of composite reductions; a plain reduction has 1."""
_RECURRENT = {
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "lstm_cell",
    "gru_cell",
    "rnn_tanh_cell",
    "rnn_relu_cell",
}
_EXPONENTIALS = {"softmax", "_softmax", "exp"}
_PICKS = frozenset({"nll_loss", "nll_loss_nd"})
"""Losses that read one element of each row."""
_ATEN = torch.ops.aten
_UNCOUNTED: dict[Any, Callable[..., int]] = {
    _ATEN.mv: lambda matrix, *_, **__: 2 * prod(matrix),
    _ATEN.addmv: lambda _, matrix, *__, **___: 2 * prod(matrix),
    _ATEN.dot: lambda vector, *_, **__: 2 * prod(vector),
    _ATEN.vdot: lambda vector, *_, **__: 2 * prod(vector),
    _ATEN._trilinear: lambda left, weight, *_, **__: 2 * left[0] * prod(weight),
    _ATEN.conv_tbc: lambda _, taps, *__, out_shape, **___: 2 * prod(out_shape) * taps[0] * taps[1],
}
"""FLOPs, from shapes, of products that PyTorch's counter does not know."""


@dataclass(frozen=True)
class Cost:
    """Cost of one call."""

    flops: float
    bytes: float
    dtype: str
    """Dtype whose peak counts; empty if unknown."""
    sol_s: float
    """Speed-of-light time in seconds."""
    bound: Bound
    """`memory`, `compute` or `overhead`."""
    floor_s: float
    """The larger of the speed of light and the time of one empty operator call, in seconds."""


def cost_of(
    region: Region, seen: Mapping[Node, CapturedValues], device: DeviceSpec, roofline: Roofline
) -> Cost:
    """Compute a region's cost with the roofline model (Williams et al., Roofline, CACM 2009)."""
    flops = sum(_flops(n, seen) for n in region.nodes)
    flops *= _visible(region, seen)
    work = Work(_bytes(region, seen), flops, _dtype(region, seen, roofline))
    light = speed_of_light(work, device, roofline)
    return Cost(work.flops, work.bytes, work.dtype, light.seconds, light.bound, light.floor_s)


def _bytes(region: Region, seen: Mapping[Node, CapturedValues]) -> float:
    """Bytes to read once every distinct element that the operators use, and to write every output once.

    What views leave out is not read. A lookup reads only the rows that it returns, not the table, and a loss
    only what its labels name. A grouped product reads no weights of groups without rows.
    """
    share: dict[Node, float] = {}
    for product in filter(None, map(grouped_product, region.nodes)):
        share[_memory(product.weights)] = seen[product.ends].visible if product.ends in seen else 1.0
    members = set(region.nodes)
    views: defaultdict[Node, set[Footprint]] = defaultdict(set)
    rows: defaultdict[Node, int] = defaultdict(int)
    for node in region.nodes:
        for value in node.all_input_nodes if kind_of(node) is not Kind.VIEW else ():
            memory, view = _memory(value), _covered(value, seen)
            if memory in members or view is None:
                continue
            if op_name(node) in GATHERS | _PICKS and value is node.all_input_nodes[0]:
                rows[memory] = max(rows[memory], min(_looked_up(node, seen), distinct_bytes([view])))
            else:
                views[memory].add(view)
    memories = dict.fromkeys((*views, *rows))
    read = (max(distinct_bytes(views[m]), rows[m]) * share.get(m, 1.0) for m in memories)
    return sum(_captured_bytes(o, seen) for o in region.outputs) + sum(read)


def _memory(node: Node) -> Node:
    """The node whose memory a value shares; each result of an operator with several has its own."""
    while kind_of(node) is Kind.VIEW and node.all_input_nodes:
        source = node.all_input_nodes[0]
        if node.target is operator.getitem and kind_of(source) is not Kind.VIEW:
            break
        node = source
    return node


def _covered(node: Node, seen: Mapping[Node, CapturedValues]) -> Footprint | None:
    """What a value covers of its memory; None if that is not known, or nothing."""
    value = value_of(node)
    found = footprint_of(value) if value is not None else None
    return found or (_captured(node, seen) if node in seen else None)


def _captured(node: Node, seen: Mapping[Node, CapturedValues]) -> Footprint | None:
    tensor = seen[node].tensor
    if tensor.strides is None:
        return footprint((tensor.numel,), (1,), tensor.dtype.itemsize)
    return footprint(tensor.shape, tensor.strides, tensor.dtype.itemsize)


def _captured_bytes(node: Node, seen: Mapping[Node, CapturedValues]) -> int:
    """Bytes of a captured value's memory; 0 if it was not captured."""
    found = _captured(node, seen) if node in seen else None
    return distinct_bytes([found]) if found else 0


def _looked_up(node: Node, seen: Mapping[Node, CapturedValues]) -> int:
    """Bytes of a table that a lookup reads, if all its places are different."""
    if op_name(node) in _PICKS:
        table = value_of(node.all_input_nodes[0])
        return numel_of(argument(node, "target")) * table.element_size() if table is not None else 0
    if "embedding_bag" not in op_name(node):
        found = _covered(node, seen)
        return distinct_bytes([found]) if found else 0
    table, indices = (value_of(argument(node, name)) for name in ("weight", "indices"))
    if table is None or indices is None:
        return 0
    return numel_of(argument(node, "indices")) * int(table.shape[-1]) * table.element_size()


def _dtype(region: Region, seen: Mapping[Node, CapturedValues], roofline: Roofline) -> str:
    """Dtype whose peak counts: the narrowest of what products multiply.

    Without products it is that of the first floating-point output; empty if there is none. float32 products
    have that of the precision which the model's file allows. cuDNN computes float32 convolutions and
    recurrent layers in TF32 unless it is forbidden.
    """
    products = [n for n in region.nodes if kind_of(n) in VENDOR]
    operands = [value for product in products for value in product.all_input_nodes]
    values = [v for v in map(value_of, operands) if v is not None and v.is_floating_point()]
    dtypes = {v.dtype for v in values}
    if not dtypes:
        return dtype_of(seen[o].tensor for o in region.outputs if o in seen)
    found = str(min(dtypes, key=lambda d: (d.itemsize, str(d)))).removeprefix("torch.")
    if found != "float32":
        return found
    by_cudnn = any(kind_of(n) is Kind.CONV or op_name(n) in _RECURRENT for n in products)
    lower = "tf32" if by_cudnn else product_dtype(values[0].device.type)
    return lower if lower in roofline.peak_flops else found


def least_bytes(graph: Graph) -> float:
    """Bytes that any program for a whole graph moves: what it uses of each input and weight is read once, and
    every output is written once.

    A table that is looked up does not count, because only some of its rows are read.
    """
    read: dict[tuple[str, str], int] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            place = (node.op, str(node.target))
            read[place] = max(read.get(place, 0), _bytes_used(node))
    written: dict[Node, int] = {}
    for output in graph.find_nodes(op="output"):
        for node in output.all_input_nodes:
            size, base = _size(node), source_of(node)
            if base.op == "call_function":
                written[base] = min(_size(base) or size, written.get(base, 0) + size)
    return float(sum(read.values()) + sum(written.values()))


def _bytes_used(node: Node) -> int:
    """Bytes of a value that operators read, directly or through views."""
    size = _size(node)
    used = [
        _bytes_used(user)
        if kind_of(user) is Kind.VIEW
        else 0
        if user.op == "output" or op_name(user) in GATHERS
        else size
        for user in node.users
    ]
    return min(size, max(used, default=0))


def _size(node: Node) -> int:
    """Bytes of a value's memory; 0 if it is no dense tensor."""
    found = _covered(node, {})
    return distinct_bytes([found]) if found else 0


def _flops(node: Node, seen: Mapping[Node, CapturedValues]) -> float:
    kind, name = kind_of(node), op_name(node)
    if name in GATHERS:
        return 0.0
    if name in _PICKS:
        return float(numel_of(argument(node, "target")))
    if name == "cdist":
        return 3.0 * numel_of(node) * _width(argument(node, "x1"))
    if kind is Kind.ATTENTION:
        return _attention_flops(node, seen)
    if name in _RECURRENT:
        return _recurrent_flops(node)
    if product := grouped_product(node):
        return 2.0 * numel_of(product.rows) * _width(product.weights)
    if kind in VENDOR:
        return _counted(node)
    if kind is Kind.POINTWISE:
        value = value_of(node)
        return float(numel_of(node)) if value is not None and value.is_floating_point() else 0.0
    if kind in (Kind.REDUCTION, Kind.POOLING) and node.all_input_nodes:
        return float(numel_of(node.all_input_nodes[0]) * _ROW_PASSES.get(name, 1))
    return 0.0


def _width(node: Node) -> int:
    """Size of a value's last dimension; 0 if it has none."""
    value = value_of(node)
    return int(value.shape[-1]) if value is not None and value.ndim else 0


def _attention_flops(node: Node, seen: Mapping[Node, CapturedValues]) -> float:
    """FLOPs of two products of (queries x width) by (keys x width), for the unmasked part."""
    query, key, value = (argument(node, name) for name in ("query", "key", "value"))
    q, k, v = (value_of(n) for n in (query, key, value))
    if q is None or k is None or v is None:
        return 0.0
    queries, keys = int(q.shape[-2]), int(k.shape[-2])
    flops = 2.0 * prod(map(int, q.shape[:-1])) * keys * (int(q.shape[-1]) + int(v.shape[-1]))
    if flops and argument(node, "is_causal"):
        hidden_from = min(queries, keys)  # row i sees its first i + 1 keys
        below = hidden_from * (hidden_from + 1) / 2 + (queries - hidden_from) * keys
        return flops * below / (queries * keys)
    mask = argument(node, "attn_mask")
    return flops * seen[mask].visible if mask in seen else flops


def _recurrent_flops(node: Node) -> float:
    """FLOPs of the products: each weight matrix meets every row of every time step once."""
    source = value_of(node.all_input_nodes[0])
    weights = argument(node, "params") or [argument(node, name) for name in ("w_ih", "w_hh")]
    matrices = [value_of(w) for w in weights if isinstance(w, Node)]
    if source is None or not source.ndim:
        return 0.0
    rows = numel_of(node.all_input_nodes[0]) // int(source.shape[-1])
    return 2.0 * rows * sum(m.numel() for m in matrices if m is not None and m.ndim == 2)


def _visible(region: Region, seen: Mapping[Node, CapturedValues]) -> float:
    """Share of an unfused attention's scores that its mask leaves visible: a kernel may skip the others."""
    return min((seen[n].visible for n in _scores(region) if n in seen), default=1.0)


def _scores(region: Region) -> list[Node]:
    """Nodes whose softmax an unfused attention computes; empty for other regions."""
    if region.op_type != "attention":
        return []
    return [n.all_input_nodes[0] for n in region.nodes if op_name(n) in _EXPONENTIALS]


def masked_at(region: Region) -> list[Node]:
    """Nodes whose values show which part an attention mask hides."""
    masks = [argument(n, "attn_mask") for n in region.nodes if kind_of(n) is Kind.ATTENTION]
    return [*_scores(region), *(m for m in masks if isinstance(m, Node))]


def _counted(node: Node) -> float:
    """FLOPs by PyTorch's own counter on fake tensors; 0 if it cannot count them."""
    try:
        with FlopCounterMode(display=False, custom_mapping=_UNCOUNTED) as counter:
            run_fake(node)
        return float(counter.get_total_flops())
    except Exception:  # an operator that fake tensors cannot run
        return 0.0

"""What a region costs at least: floating-point operations, bytes, speed-of-light seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from torch.fx import Node
from torch.utils.flop_counter import FlopCounterMode

from agentforge.devices import DeviceSpec, Roofline
from agentforge.schema import Bound, TensorInput

from .achieved import bandwidth_for
from .operators import VENDOR, Kind, argument, kind_of, numel_of, op_name, run_fake, value_of
from .record import Seen
from .region import Region

_GATHERS = {"embedding", "embedding_bag", "_embedding_bag", "index", "index_select", "gather"}
_ROW_PASSES = {"layer_norm": 8, "group_norm": 8, "rms_norm": 5, "softmax": 5, "log_softmax": 5, "var": 4}
"""Operations an element of composite reductions; 1 for a plain one."""


@dataclass(frozen=True)
class Cost:
    """Of one call."""

    flops: float
    bytes: float
    sol_s: float
    """Speed-of-light seconds."""
    bound: Bound
    """`memory`, `compute` or `overhead`."""
    floor_s: float
    """The speed of light, or where longer the seconds of one empty operator call."""


def cost_of(region: Region, seen: Mapping[Node, Seen], device: DeviceSpec, roofline: Roofline) -> Cost:
    """The roofline's answer for a region (Williams et al., Roofline, CACM 2009)."""
    flops = sum(_flops(n) for n in region.nodes)
    moved = _bytes(region, seen)
    dtype = next((seen[o].tensor.dtype.value for o in region.outputs if o in seen), "float32")
    peak = roofline.peak_flops.get(dtype) or max(roofline.peak_flops.values(), default=0.0)
    compute = flops / peak if peak else 0.0
    memory = moved / bandwidth_for(moved, device, roofline)
    sol = max(compute, memory)
    bound = Bound.COMPUTE if compute > memory else Bound.MEMORY
    if sol < roofline.call_overhead_s:
        bound = Bound.OVERHEAD
    return Cost(flops, moved, sol, bound, max(sol, roofline.call_overhead_s))


def _bytes(region: Region, seen: Mapping[Node, Seen]) -> float:
    """Every distinct element that enters read once, every output written once.

    A lookup reads the rows that it returns, not the table.
    """
    written = sum(_distinct_bytes(seen[o].tensor) for o in region.outputs if o in seen)
    first = region.nodes[0]
    if len(region.nodes) == 1 and op_name(first) in _GATHERS:
        return 2.0 * written
    return float(written + sum(_distinct_bytes(seen[i].tensor) for i in region.inputs if i in seen))


def _distinct_bytes(tensor: TensorInput) -> int:
    """Bytes of a tensor's memory; a dimension of stride 0 is one element."""
    strides = tensor.strides or (1,) * len(tensor.shape)
    return prod(n for n, s in zip(tensor.shape, strides, strict=True) if s) * tensor.dtype.itemsize


def _flops(node: Node) -> float:
    kind = kind_of(node)
    if kind is Kind.ATTENTION:
        return _attention_flops(node)
    if kind in VENDOR:
        return _counted(node)
    if kind is Kind.POINTWISE:
        value = value_of(node)
        return float(numel_of(node)) if value is not None and value.is_floating_point() else 0.0
    if kind in (Kind.REDUCTION, Kind.POOLING) and node.all_input_nodes:
        return float(numel_of(node.all_input_nodes[0]) * _ROW_PASSES.get(op_name(node), 1))
    return 0.0


def _attention_flops(node: Node) -> float:
    """Two products of (queries x width) by (keys x width), halved where the mask is causal."""
    query, key, value = (argument(node, name) for name in ("query", "key", "value"))
    q, k, v = (value_of(n) for n in (query, key, value))
    if q is None or k is None or v is None:
        return 0.0
    scores = prod(map(int, q.shape[:-1])) * int(k.shape[-2])
    flops = 2.0 * scores * (int(q.shape[-1]) + int(v.shape[-1]))
    return flops / 2 if argument(node, "is_causal") else flops


def _counted(node: Node) -> float:
    """By PyTorch's own counter, on fake tensors; 0 where it cannot tell."""
    try:
        with FlopCounterMode(display=False) as counter:
            run_fake(node)
        return float(counter.get_total_flops())
    except Exception:  # an operator that fake tensors cannot run
        return 0.0

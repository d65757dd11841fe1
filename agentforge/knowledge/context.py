"""The context of a bottleneck on a device: the key of its experience."""

from __future__ import annotations

import math

from agentforge.devices import DeviceSpec
from agentforge.schema import Bottleneck, CallSite, Context, TensorInput, Workload

ROWS_PER_THREAD = 4
"""With fewer rows per thread, splitting the rows leaves threads idle."""


WHOLE_REFERENCE = "custom"
"""Operator class of a reference that is made faster as one piece."""


def context_for(bottleneck: Bottleneck, device: DeviceSpec) -> Context:
    """The context of a bottleneck, from its most expensive workload."""
    site = max(bottleneck.call_sites, key=lambda s: s.time_s)
    workload = max(bottleneck.workloads, key=lambda w: (w.nbytes, w.weight))
    tensors = _tensors(site, workload)
    nbytes = max((s.bytes for s in bottleneck.call_sites), default=0.0) or float(
        sum(t.nbytes for t in tensors)
    )
    return Context(
        op_type=_operator_class(bottleneck),
        shape_class=f"{memory_class(nbytes, device)}/{row_class(tensors, device.threads)}",
        dtype=_dtype(tensors),
        architecture=device.architecture,
        toolchain=toolchain_name(device),
        bound=bottleneck.bound,
        operators=tuple(sorted(site.kinds.items())),
        intensity=round(math.log2(site.flops / site.bytes)) if site.flops > 0 < site.bytes else None,
    )


_CLASSES = {
    "cross_entropy": ("cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss_forward"),
    "attention": ("scaled_dot_product_attention",),
    "softmax": ("softmax", "log_softmax", "_softmax", "_log_softmax"),
    "norm": ("layer_norm", "native_layer_norm", "rms_norm", "group_norm", "native_group_norm", "batch_norm"),
    "reduction": (
        "sum",
        "mean",
        "var",
        "var_mean",
        "amax",
        "amin",
        "argmax",
        "cumsum",
        "cumprod",
        "logsumexp",
    ),
}
"""Operators whose strategies apply to a reference that contains them, the class that decides first."""


def _operator_class(bottleneck: Bottleneck) -> str:
    """The definition's class; that of its most telling operator if it is a whole reference."""
    own = bottleneck.definition.op_type
    if own != WHOLE_REFERENCE:
        return own
    names = {part for s in bottleneck.call_sites for o in s.operators for part in o.split(".")[1:2]}
    return next((name for name, operators in _CLASSES.items() if names & set(operators)), own)


def memory_class(nbytes: float, device: DeviceSpec) -> str:
    """The smallest memory level that fits all bytes: `l1`, `l2`, `llc` or `dram`.

    Caches that belong to one core count once per thread, because threads share the work.
    """
    caches = device.cache_bytes
    for level, size in enumerate(caches):
        last = level == len(caches) - 1
        if nbytes <= size * (1 if last else device.threads):
            return "llc" if last else f"l{level + 1}"
    return "dram"


def row_class(tensors: tuple[TensorInput, ...], threads: int) -> str:
    """`many-rows`, `few-rows` or `one-row`: rows of the largest tensor compared with the threads."""
    largest = max(tensors, key=lambda t: t.numel, default=None)
    if largest is None or not largest.shape or largest.numel == 0:
        return "one-row"
    rows = largest.numel // largest.shape[-1]
    if rows <= 1:
        return "one-row"
    return "many-rows" if rows >= ROWS_PER_THREAD * threads else "few-rows"


def toolchain_name(device: DeviceSpec) -> str:
    """Compiler and major version: `g++-12`, `nvcc-13`, `triton-3`; empty if there is none."""
    order = ("triton", "nvcc", "cuda") if device.kind == "cuda" else ("g++", "clang++")
    for tool in order:
        if version := device.toolchain.get(tool):
            return f"{tool}-{version.split('.')[0]}"
    return ""


def _tensors(site: CallSite, workload: Workload) -> tuple[TensorInput, ...]:
    found = (*site.inputs, *site.outputs)
    return found or tuple(i for i in workload.inputs if isinstance(i, TensorInput))


def _dtype(tensors: tuple[TensorInput, ...]) -> str:
    """The floating dtype with the most bytes; if none is floating, the dtype with the most bytes."""
    weights: dict[str, int] = {}
    for tensor in [t for t in tensors if t.dtype.is_floating] or tensors:
        weights[tensor.dtype.value] = weights.get(tensor.dtype.value, 0) + tensor.nbytes
    return max(weights, key=lambda d: weights[d]) if weights else "float32"

"""From a bottleneck on a device to the key under which experience is kept."""

from __future__ import annotations

from agentforge.devices import DeviceSpec
from agentforge.schema import Bottleneck, CallSite, Context, TensorInput, Workload

ROWS_PER_THREAD = 4
"""Below this many rows a thread, splitting the rows leaves threads idle."""


def context_for(bottleneck: Bottleneck, device: DeviceSpec) -> Context:
    """The context of a bottleneck: its costliest workload decides.

    Args:
        bottleneck: with call sites as profiled.
        device: where it runs.
    """
    site = max(bottleneck.call_sites, key=lambda s: s.time_s)
    workload = max(bottleneck.workloads, key=lambda w: (w.nbytes, w.weight))
    tensors = _tensors(site, workload)
    nbytes = max((s.bytes for s in bottleneck.call_sites), default=0.0) or float(
        sum(t.nbytes for t in tensors)
    )
    return Context(
        op_type=bottleneck.definition.op_type,
        shape_class=f"{memory_class(nbytes, device)}/{row_class(tensors, device.threads)}",
        dtype=_dtype(tensors),
        architecture=device.architecture,
        toolchain=toolchain_name(device),
        bound=bottleneck.bound,
    )


def memory_class(nbytes: float, device: DeviceSpec) -> str:
    """The smallest level that holds all bytes: `l1`, `l2`, `llc` or `dram`.

    The caches that each core has for itself count once a thread, because threads share the work.
    """
    caches = device.cache_bytes
    for level, size in enumerate(caches):
        last = level == len(caches) - 1
        if nbytes <= size * (1 if last else device.threads):
            return "llc" if last else f"l{level + 1}"
    return "dram"


def row_class(tensors: tuple[TensorInput, ...], threads: int) -> str:
    """`many-rows`, `few-rows` or `one-row`, by the rows of the largest tensor against the threads."""
    largest = max(tensors, key=lambda t: t.numel, default=None)
    if largest is None or not largest.shape or largest.numel == 0:
        return "one-row"
    rows = largest.numel // largest.shape[-1]
    if rows <= 1:
        return "one-row"
    return "many-rows" if rows >= ROWS_PER_THREAD * threads else "few-rows"


def toolchain_name(device: DeviceSpec) -> str:
    """Compiler and its major version: `g++-12`, `nvcc-13`, `triton-3`; empty where there is none."""
    order = ("triton", "nvcc", "cuda") if device.kind == "cuda" else ("g++", "clang++")
    for tool in order:
        if version := device.toolchain.get(tool):
            return f"{tool}-{version.split('.')[0]}"
    return ""


def _tensors(site: CallSite, workload: Workload) -> tuple[TensorInput, ...]:
    found = (*site.inputs, *site.outputs)
    return found or tuple(i for i in workload.inputs if isinstance(i, TensorInput))


def _dtype(tensors: tuple[TensorInput, ...]) -> str:
    """The floating dtype that most bytes have; of all dtypes where none is floating."""
    weights: dict[str, int] = {}
    for tensor in [t for t in tensors if t.dtype.is_floating] or tensors:
        weights[tensor.dtype.value] = weights.get(tensor.dtype.value, 0) + tensor.nbytes
    return max(weights, key=lambda d: weights[d]) if weights else "float32"

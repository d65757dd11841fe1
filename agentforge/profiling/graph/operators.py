"""Classify ATen operators as a fuser sees them: pointwise, reduction, view, vendor call, or opaque."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves, tree_map


class Kind(StrEnum):
    """How an operator may take part in a region."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    VIEW = "view"
    """Moves no data."""
    FACTORY = "factory"
    """Takes no tensor: `arange`, `full`, `zeros`."""
    POOLING = "pooling"
    GEMM = "gemm"
    CONV = "conv"
    ATTENTION = "attention"
    EMBEDDING = "embedding"
    OPAQUE = "opaque"
    """Random, data-dependent, in-place, or unknown: never fused."""
    NONE = "none"
    """Placeholder, attribute or output."""


VENDOR = frozenset({Kind.GEMM, Kind.CONV, Kind.ATTENTION, Kind.EMBEDDING})
_LIBRARIES = ("aten", "transformers")
"""Libraries whose operators are known. What another one calls `silu` may compute anything."""

_GEMM = {
    "linear", "addmm", "mm", "bmm", "matmul", "einsum", "baddbmm", "addbmm", "bilinear", "mv", "addmv",
    "dot", "vdot", "inner", "tensordot", "chain_matmul", "linalg_multi_dot", "cdist", "outer", "addr",
    "lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "_grouped_mm", "grouped_mm_fallback",
}  # fmt: skip
_CONV = {
    "conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "conv_tbc",
}  # fmt: skip
_ATTENTION = {"scaled_dot_product_attention", "_native_multi_head_attention"}
_EMBEDDING = {"embedding", "embedding_bag", "_embedding_bag"}
GATHERS = frozenset({*_EMBEDDING, "index", "index_select", "gather", "take"})
"""Operators that read places which an input names."""
_REDUCTION = {
    "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "var", "std",
    "var_mean", "std_mean", "any", "all", "logsumexp", "linalg_vector_norm", "norm",
    "frobenius_norm", "softmax", "_softmax", "log_softmax", "_log_softmax", "layer_norm",
    "native_layer_norm", "rms_norm", "_fused_rms_norm", "group_norm", "native_group_norm",
    "instance_norm", "cumsum", "cumprod", "gather", "logcumsumexp", "softmin", "cross_entropy_loss",
    "nll_loss", "nll_loss_nd", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_similarity",
    "triplet_margin_loss", "hinge_embedding_loss", "nansum", "nanmean", "count_nonzero", "aminmax",
    "cosine_embedding_loss", "soft_margin_loss", "pairwise_distance", "cdist",
}  # fmt: skip
_POOLING = {
    f"{prefix}{kind}_pool{n}d{suffix}"
    for prefix in ("", "adaptive_", "_adaptive_")
    for kind in ("max", "avg")
    for n in (1, 2, 3)
    for suffix in ("", "_with_indices")
}
_POINTWISE = {
    "to", "_to_copy", "clone", "contiguous", "reshape", "type_as", "batch_norm",
    "cat", "concat", "stack", "pad", "constant_pad_nd", "relu6", "hardswish", "selu", "celu",
    "prelu", "mish", "softplus", "log_sigmoid", "square", "rsub", "where", "masked_fill",
    "_native_batch_norm_legit_no_training", "silu", "gelu", "glu", "hardtanh", "hardsigmoid",
    "threshold", "float_power", "true_divide", "divide", "multiply", "subtract", "negative",
    "absolute", "flatten", "expand_as", "tanhshrink", "softsign", "hardshrink", "softshrink",
    "__and__", "__or__", "__xor__", "logical_and", "logical_or", "logical_not", "greater", "less",
    "less_equal", "greater_equal", "not_equal", "_assert_tensor_metadata", "clip", "rrelu",
    "complex", "polar", "addcmul", "addcdiv", "lerp",
}  # fmt: skip
_FACTORIES = {
    "lift_fresh_copy", "new_ones", "new_zeros", "new_full", "ones_like", "zeros_like", "full_like",
    "new_empty", "empty_like",
}  # fmt: skip
CONCATENATIONS = frozenset({"cat", "concat", "stack", "pad", "constant_pad_nd"})
"""Pointwise operators with inputs smaller than their output."""
_ORDERED_VIEWS = {
    "view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "expand",
    "expand_as", "broadcast_to", "view_as", "detach", "alias", "contiguous", "to",
}  # fmt: skip
LOSSES = frozenset({
    "cross_entropy_loss", "nll_loss", "nll_loss_nd", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_similarity",
    "triplet_margin_loss", "hinge_embedding_loss", "cosine_embedding_loss", "soft_margin_loss",
    "pairwise_distance",
})  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Iteration space of a reduction: `outer x reduced x inner`, reduced over the middle.

    Two reductions with equal `Rows` can share one pass over the rows.
    """

    outer: int
    reduced: int
    inner: int
    dims: tuple[int, ...] = ()
    """Set only if the reduced dimensions are not adjacent; then only an equal space fits."""

    @property
    def count(self) -> int:
        return self.outer * self.inner

    @property
    def numel(self) -> int:
        return self.outer * self.reduced * self.inner


def op_name(node: Node) -> str:
    """`rsqrt` for `aten.rsqrt.default`, `mylib::rsqrt` for another library's; else the target's own name."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        library, _, name = target._schema.name.partition("::")
        return name if library in _LIBRARIES else f"{library}::{name}"
    return getattr(target, "__name__", str(target))


def schema_of(node: Node) -> Any:
    """The operator's schema; None for non-operators such as `getitem`."""
    target = node.target
    return target._schema if isinstance(target, torch._ops.OpOverload) else None


def is_in_place(node: Node) -> bool:
    """True if the operator writes to an argument."""
    schema = schema_of(node)
    return schema is not None and schema.is_mutable


def mutated(node: Node) -> list[Node]:
    """Arguments that the operator writes to, also those in a list."""
    if not is_in_place(node):
        return []
    written = [value for formal, value in arguments(node) if formal.alias_info and formal.alias_info.is_write]
    return [leaf for leaf in tree_leaves(written) if isinstance(leaf, Node)]


def arguments(node: Node) -> Iterator[tuple[Any, Any]]:
    """The arguments that an operator is given, each with its place in the schema."""
    for index, formal in enumerate(schema_of(node).arguments):
        if index < len(node.args):
            yield formal, node.args[index]
        elif formal.name in node.kwargs:
            yield formal, node.kwargs[formal.name]


def value_of(node: Node) -> torch.Tensor | None:
    """The fake tensor that the export recorded for a node; None if its value is no tensor, or a nested one,
    which has no sizes."""
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) and not value.is_nested else None


def numel_of(node: Node) -> int:
    """Number of elements of a node's value, or of its first tensor."""
    for leaf in tree_leaves(node.meta.get("val")):
        if isinstance(leaf, torch.Tensor) and not leaf.is_nested:
            return prod(int(s) for s in leaf.shape)
    return 0


def kind_of(node: Node) -> Kind:
    """Classify a node and cache the result in its `meta`."""
    if "af_kind" not in node.meta:
        node.meta["af_kind"] = _classify(node)
    kind: Kind = node.meta["af_kind"]
    return kind


def _classify(node: Node) -> Kind:
    if node.op != "call_function":
        return Kind.NONE
    if node.target is operator.getitem:
        return Kind.VIEW
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return Kind.OPAQUE
    name = op_name(node)
    tags = target.tags
    if target.namespace not in _LIBRARIES or is_in_place(node) or _forbidden(node, name):
        return Kind.OPAQUE
    for kind, names in ((Kind.GEMM, _GEMM), (Kind.CONV, _CONV), (Kind.ATTENTION, _ATTENTION)):
        if name in names and not _other_distance(node):
            return kind
    if name in _EMBEDDING:
        return Kind.EMBEDDING
    if name in _POOLING:
        return Kind.POOLING
    if name in _FACTORIES or not any(value_of(n) is not None for n in node.all_input_nodes):
        return Kind.FACTORY
    if _is_view(node):
        return Kind.VIEW
    if value_of(node) is None and name not in ("max", "min", "var_mean", "std_mean", "aminmax"):
        return Kind.OPAQUE
    if name in ("max", "min") and len(node.all_input_nodes) == 2:
        return Kind.POINTWISE
    if name in _REDUCTION:
        return Kind.REDUCTION if rows_of(node) is not None else Kind.OPAQUE
    if torch.Tag.pointwise in tags or name in _POINTWISE:
        return Kind.POINTWISE
    return Kind.OPAQUE


def _forbidden(node: Node, name: str) -> bool:
    """True if the operator is random, data-dependent, or in training mode."""
    tags = node.target.tags
    if torch.Tag.nondeterministic_seeded in tags and not _eval_dropout(node):
        return name not in _ATTENTION and name not in _GEMM
    if torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags:
        return True
    return name in ("batch_norm", "instance_norm") and bool(argument(node, "training")) | bool(
        argument(node, "use_input_stats") and argument(node, "running_mean") is not None
    )


def _other_distance(node: Node) -> bool:
    """True for distances that are no products: only Euclidean ones are."""
    return op_name(node) == "cdist" and argument(node, "p") != 2


def _eval_dropout(node: Node) -> bool:
    return "dropout" in op_name(node) and argument(node, "train") is False


def argument(node: Node, name: str) -> Any:
    """An argument by its name in the operator's schema, or its default; None if it has neither."""
    schema = node.target._schema
    for index, formal in enumerate(schema.arguments):
        if formal.name == name:
            if name in node.kwargs:
                return node.kwargs[name]
            if index < len(node.args):
                return node.args[index]
            return formal.default_value if formal.has_default_value() else None
    return None


def _is_view(node: Node) -> bool:
    """True if the result shares memory with the first tensor argument, tested on fake tensors.

    The schema cannot tell: `reshape`, `contiguous` and `to` copy or not, depending on their input's strides.
    """
    returns = node.target._schema.returns
    if not returns or returns[0].alias_info is None:
        return False
    source = node.all_input_nodes[0] if node.all_input_nodes else None
    base = value_of(source) if source is not None else None
    if base is None:
        return False
    try:
        result = run_fake(node)
    except Exception:  # an operator that fake tensors cannot run is not a known view
        return False
    first = next((t for t in tree_leaves(result) if isinstance(t, torch.Tensor)), None)
    if first is None:
        return False
    return first.untyped_storage()._cdata == base.untyped_storage()._cdata


def run_fake(node: Node) -> Any:
    """Run a node's operator on the fake tensors of its inputs."""
    args, kwargs = tree_map(
        lambda a: a.meta["val"] if isinstance(a, Node) else a, (node.args, dict(node.kwargs))
    )
    mode = next(
        (t.fake_mode for t in tree_leaves((args, kwargs)) if isinstance(t, torch._subclasses.FakeTensor)),
        None,
    )
    if mode is None:
        raise ValueError(f"{node.name} has no fake inputs")
    with torch.no_grad(), mode:
        return node.target(*args, **kwargs)


def storages(values: Any) -> set[int]:
    """Identities of the memory of tensors, also of fake ones."""
    return {t.untyped_storage()._cdata for t in tree_leaves(values) if isinstance(t, torch.Tensor)}


def keeps_order(node: Node) -> bool:
    """True if a view visits its elements in its input's order, apart from broadcasting."""
    if node.target is torch.ops.aten.view.dtype:  # elements of another type, perhaps of another number
        return False
    return op_name(node) in _ORDERED_VIEWS or node.target is operator.getitem


def rows_of(node: Node) -> Rows | None:
    """Iteration space of a reduction; None if it is unknown, or empty."""
    source = value_of(node.all_input_nodes[0]) if node.all_input_nodes else None
    if source is None:
        return None
    shape, name = tuple(int(s) for s in source.shape), op_name(node)
    total = prod(shape)
    if not total:
        return None
    if name in ("group_norm", "native_group_norm"):
        groups = argument(node, "num_groups") or argument(node, "group")
        count = shape[0] * int(groups)
        return Rows(count, total // count, 1)
    if name == "instance_norm":
        return Rows(shape[0] * shape[1], prod(shape[2:]), 1)
    if name in ("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"):
        reduced = prod(int(s) for s in argument(node, "normalized_shape"))
        return Rows(total // reduced, reduced, 1)
    if name == "cdist":  # one row of differences for each distance
        return Rows(numel_of(node), shape[-1], 1)
    if name in ("cross_entropy_loss", "nll_loss", "nll_loss_nd"):
        return _contiguous_rows(shape, (1 if len(shape) > 1 else 0,))
    if name in ("triplet_margin_loss", "pairwise_distance", "cosine_embedding_loss"):
        return _contiguous_rows(shape, (len(shape) - 1,))
    if name == "gather":
        return _picked_rows(node, shape)
    dims = argument(node, "dim")
    if dims is None or dims == []:
        return Rows(1, total, 1)
    wanted = [dims] if isinstance(dims, int) else dims
    if not all(isinstance(d, int) for d in wanted) or not shape:
        return Rows(1, total, 1)
    return _contiguous_rows(shape, tuple(sorted(d % len(shape) for d in wanted)))


def _picked_rows(node: Node, shape: tuple[int, ...]) -> Rows | None:
    """Rows of a `gather` that takes one element per row (the loss of a label); other gathers are opaque."""
    index, dim = value_of(argument(node, "index")), int(argument(node, "dim"))
    wanted = tuple(1 if d == dim % len(shape) else size for d, size in enumerate(shape)) if shape else ()
    if index is None or tuple(int(n) for n in index.shape) != wanted:
        return None
    return _contiguous_rows(shape, (dim % len(shape),)) if shape else None


@lru_cache(maxsize=4096)
def _contiguous_rows(shape: Sequence[int], dims: tuple[int, ...]) -> Rows:
    significant = [d for d in dims if shape[d] != 1] or [dims[0]]
    first, last = significant[0], significant[-1]
    between = [d for d in range(first, last + 1) if d not in significant and shape[d] != 1]
    outer, inner = prod(shape[:first]), prod(shape[last + 1 :])
    if between:
        reduced = prod(shape[d] for d in significant)
        return Rows(prod(shape) // reduced, reduced, 1, dims)
    return Rows(outer, prod(shape[first : last + 1]), inner)

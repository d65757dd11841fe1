"""Let transformers decide in an export as it does in eager, and refuse what torch decides by values in eager.

transformers asks whether it is exported. Then it builds masks that eager leaves out, and repeats keys that
eager reads as they are: the graph would be another program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

_MASKS, _ATTENTION = "transformers.masking_utils", "transformers.integrations.sdpa_attention"
_FIND_PACKED = "find_packed_sequence_indices"
_ENCODE = torch.nn.TransformerEncoder.forward


@contextmanager
def eager_branches() -> Iterator[None]:
    """Take eager's branches while a module is exported.

    What transformers reads from the values of an input stays as in an export: the graph must be right for
    other values too. A `TransformerEncoder` that reads its mask's raises DataDependentOutputException.
    """
    masks, attention = sys.modules.get(_MASKS), sys.modules.get(_ATTENTION)
    functions: list[tuple[Any, str, Callable[..., Any]]] = [
        (masks, "is_torchdynamo_exporting", _never),
        (attention, "is_torchdynamo_compiling", _never),
        (masks, _FIND_PACKED, partial(_packed, getattr(masks, _FIND_PACKED, _never))),
        (torch.nn.TransformerEncoder, "forward", _encode),
    ]
    with _replaced(functions):
        yield


def _encode(
    encoder: torch.nn.TransformerEncoder,
    src: torch.Tensor,
    mask: torch.Tensor | None = None,
    src_key_padding_mask: torch.Tensor | None = None,
    is_causal: bool | None = None,
) -> torch.Tensor:
    """The encoder's own forward, which is refused with a mask of padding.

    If the mask's values allow it, eager leaves padded places out and gives zeros there. An export would
    compute them.
    """
    fast = torch.backends.mha.get_fastpath_enabled() and getattr(encoder, "use_nested_tensor", False)
    batch = src.dim() == 3 and not encoder.layers[0].training
    if fast and batch and mask is None and src_key_padding_mask is not None:
        raise DataDependentOutputException(torch.ops.aten._nested_tensor_from_mask_left_aligned.default)
    return _ENCODE(encoder, src, mask, src_key_padding_mask, is_causal)


def _never(*_: Any) -> bool:
    return False


@contextmanager
def _replaced(functions: Iterable[tuple[Any, str, Callable[..., Any]]]) -> Iterator[None]:
    """Replace functions of modules and classes, by name, if they have them."""
    found = [
        (place, name, getattr(place, name), new) for place, name, new in functions if hasattr(place, name)
    ]
    try:
        for place, name, _, new in found:
            setattr(place, name, new)
        yield
    finally:
        for place, name, old, _ in found:
            setattr(place, name, old)


def _packed(find: Callable[[torch.Tensor], Any], positions: torch.Tensor) -> Any:
    """What finds several sequences in one row: no mask, as in eager, if the row is one for any input."""
    known = None if torch.compiler.is_dynamo_compiling() else _known(positions)
    if known is not None:
        with _real(), _replaced([(sys.modules[_MASKS], "is_tracing", _never)]):
            if find(known) is None:
                return None
    return find(positions)


@contextmanager
def _real() -> Iterator[None]:
    """Compute with real tensors during an export."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def _known(value: torch.Tensor) -> torch.Tensor | None:
    """The value of a traced tensor that no input decides; None for another one."""
    mode = get_proxy_mode()
    found: Any = get_proxy_slot(value, mode.tracer, None) if mode is not None else None
    if found is None:
        return None
    with _real():
        try:
            known: torch.Tensor = _computed(found.proxy.node)
            return known
        except (ValueError, RuntimeError):
            return None


def _computed(node: Node) -> Any:
    """A node's value; a size that may change has its example's.

    Raises:
        ValueError: an input or a weight decides it.
    """
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return value.node.hint
    if node.op != "call_function":
        raise ValueError(f"{node.name} is given")
    args, kwargs = tree_map(
        lambda a: _computed(a) if isinstance(a, Node) else a, (node.args, dict(node.kwargs))
    )
    return node.target(*args, **kwargs)

"""Let transformers decide in an export as it does in eager.

It asks whether it is exported. Then it builds masks that eager leaves out, and repeats keys that eager reads
as they are: the graph would be another program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

_MASKS, _ATTENTION = "transformers.masking_utils", "transformers.integrations.sdpa_attention"
_FIND_PACKED = "find_packed_sequence_indices"


@contextmanager
def eager_branches() -> Iterator[None]:
    """Take eager's branches while a module is exported.

    What transformers reads from the values of an input stays as in an export: the graph must be right for
    other values too.
    """
    functions: dict[tuple[str, str], Callable[..., Any]] = {
        (_MASKS, "is_torchdynamo_exporting"): _never,
        (_ATTENTION, "is_torchdynamo_compiling"): _never,
    }
    find = getattr(sys.modules.get(_MASKS), _FIND_PACKED, None)
    if find is not None:
        functions[_MASKS, _FIND_PACKED] = partial(_packed, find)
    with _replaced(functions):
        yield


def _never(*_: Any) -> bool:
    return False


@contextmanager
def _replaced(functions: Mapping[tuple[str, str], Callable[..., Any]]) -> Iterator[None]:
    """Replace functions, by module and name, if the module is loaded and has them."""
    found = [
        (module, name, getattr(module, name), new)
        for (place, name), new in functions.items()
        if hasattr(module := sys.modules.get(place), name)
    ]
    try:
        for module, name, _, new in found:
            setattr(module, name, new)
        yield
    finally:
        for module, name, old, _ in found:
            setattr(module, name, old)


def _packed(find: Callable[[torch.Tensor], Any], positions: torch.Tensor) -> Any:
    """What finds several sequences in one row: no mask, as in eager, if the row is one for any input."""
    known = None if torch.compiler.is_dynamo_compiling() else _known(positions)
    if known is not None:
        with _real(), _replaced({(_MASKS, "is_tracing"): _never}):
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

"""Deep copies of modules, also of those with attributes that cannot be copied."""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch

M = TypeVar("M", bound="torch.nn.Module")


def copied(model: M, share: Callable[[Any], bool] = lambda value: False) -> M:
    """A deep copy of a module. It shares the attributes that cannot be copied, such as Python modules.

    Args:
        share: says which other attributes of the module and its parts it shares. It is asked about those in
            lists, tuples and dicts too.
    """
    seen: set[int] = set()
    memo: dict[int, Any] = {}
    for module in model.modules():
        held = (value for name, value in vars(module).items() if name != "_modules")
        leaves = (leaf for value in held for leaf in _leaves(value, seen))
        memo |= {id(leaf): leaf for leaf in leaves if share(leaf) or _refuses(leaf)}
    return copy.deepcopy(model, memo)


def _leaves(value: Any, seen: set[int]) -> Iterator[Any]:
    """What lists, tuples and dicts contain."""
    if not isinstance(value, (dict, list, tuple)):
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item, seen)


def _refuses(value: Any) -> bool:
    """Whether `copy.deepcopy` raises for it, as for Python modules, streams and `dict.keys()`."""
    if hasattr(value, "__deepcopy__") or type(value) in copyreg.dispatch_table:
        return False
    try:
        value.__reduce_ex__(4)
    except Exception:  # also of classes and functions, which deepcopy shares as well
        return True
    return False

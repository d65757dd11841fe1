"""Tensors that a module keeps in a list, tuple or dict; an exported graph has them as constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from .printer import Unprintable

_DEEPEST = 6
"""Containers and objects within each other that are searched: a list of modules has three."""


def kept_tensors(
    module: torch.nn.Module, modules: Sequence[Mapping[str, Any]], constants: Mapping[str, torch.Tensor]
) -> dict[str, dict[str, Any]]:
    """Where each call finds the constants that the module keeps: module, attribute, and number or key.

    Args:
        modules: the plan's submodules.
        constants: of the graph, by target.

    Raises:
        Unprintable: the module keeps one elsewhere, where the runtime does not look.
    """
    owners: list[Any] = [module]
    for entry in modules:
        owners.append(owners[entry["parent"]]._modules[entry["name"]])
    places: dict[int, dict[str, Any]] = {}
    for index, owner in enumerate(owners):
        for name, value in vars(owner).items():
            for key, item in _items(value):
                if isinstance(item, torch.Tensor) and type(key) in (int, str):
                    places.setdefault(id(item), {"module": index, "kind": name, "name": key})
    found = {target: places[id(t)] for target, t in constants.items() if id(t) in places}
    if len(found) < len(constants):
        others = {id(tensor) for target, tensor in constants.items() if target not in found}
        for owner in owners:
            for name, value in vars(owner).items():
                if any(id(tensor) in others for tensor in _tensors(value, {id(o) for o in owners})):
                    raise Unprintable(
                        f"a tensor deep within the attribute {name} of a {type(owner).__name__}"
                    )
    return found


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    return list(value.items()) if isinstance(value, dict) else []


def _tensors(value: Any, seen: set[int], depth: int = 0) -> Iterator[torch.Tensor]:
    """All tensors in nested containers and in the attributes of objects."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < _DEEPEST and id(value) not in seen and not isinstance(value, (str, bytes, type)):
        seen.add(id(value))
        held = [item for _, item in _items(value)] or list(getattr(value, "__dict__", {}).values())
        for item in held:
            yield from _tensors(item, seen, depth + 1)

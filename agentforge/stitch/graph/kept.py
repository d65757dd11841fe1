"""Places of the tensors that modules keep: an exported graph has one name for a tensor in several places, and
those in a list, tuple or dict as constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .printer import Unprintable
from .structure import stores_items

_DEEPEST = 6
"""Containers and objects within each other that are searched: a list of modules has three."""


class Place(NamedTuple):
    """Where a module keeps a tensor: its index, the attribute with the container, and number or key in it.

    The kind is empty if the tensor itself is the attribute.
    """

    module: int
    kind: str
    name: int | str


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
    owners = _owners(module, modules)
    places: dict[int, dict[str, Any]] = {}
    for place, tensor in _places(owners):
        if place.kind:
            places.setdefault(id(tensor), place._asdict())
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


def tied(
    module: torch.nn.Module, modules: Sequence[Mapping[str, Any]], tensors: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The other places of the tensors of a unit, each with the tensor's number.

    Args:
        modules: the plan's submodules.
        tensors: the plan's entries; the unit reads each of them in one place.
    """
    places = dict(_places(_owners(module, modules)))
    read = [Place(entry["module"], entry["kind"], entry["name"]) for entry in tensors]
    numbers = {id(places[place]): n for n, place in reversed([*enumerate(read)]) if place in places}
    return [
        {"tensor": numbers[id(tensor)], **place._asdict()}
        for place, tensor in places.items()
        if id(tensor) in numbers and place != read[numbers[id(tensor)]]
    ]


def lengths(
    module: torch.nn.Module, modules: Sequence[Mapping[str, Any]], tensors: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The containers of these tensors with their lengths: a forward may iterate over them.

    A dict that a forward stores items in is a cache, which other calls let grow.
    """
    owners = _owners(module, modules)
    held = dict.fromkeys((entry["module"], entry["kind"]) for entry in tensors)
    found = []
    for index, kind in held:
        if kind not in ("", "_parameters", "_buffers"):
            container = vars(owners[index])[kind]
            if not isinstance(container, dict) or not stores_items(type(owners[index])):
                found.append({"module": index, "kind": kind, "length": len(container)})
    return found


def _owners(module: torch.nn.Module, modules: Sequence[Mapping[str, Any]]) -> list[Any]:
    owners: list[Any] = [module]
    for entry in modules:
        owners.append(owners[entry["parent"]]._modules[entry["name"]])
    return owners


def _places(owners: Sequence[Any]) -> Iterator[tuple[Place, torch.Tensor]]:
    for index, owner in enumerate(owners):
        for name, value in vars(owner).items():
            if isinstance(value, torch.Tensor):
                yield Place(index, "", name), value
            for key, item in _items(value):
                if isinstance(item, torch.Tensor) and type(key) in (int, str):
                    yield Place(index, name, key), item


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

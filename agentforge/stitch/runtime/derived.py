"""Compute values that depend on weights alone once for each content of the weights."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

DERIVED = "derived weights"
"""Counter name: a forward read its derived values."""

_COLUMNS = 1021
"""Least number of words in a row of the sums that a weight is recognised by."""
_SMALL = 1 << 14
"""Bytes up to which tensors are joined and compared by one call: calls take longer than reading them."""

Derive = Callable[..., tuple[torch.Tensor, ...]]


class Contents:
    """Addresses, versions and all bits of tensors as they were, the bits by sums of their words.

    A sum takes the time of reading the tensor. A tensor that is not contiguous or not made of words is
    copied and compared instead; so are small tensors, all at once.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._addresses = [t.data_ptr() for t in tensors]
        self._versions = [0 if t.is_inference() else t._version for t in tensors]
        self._rows: list[torch.Tensor] = []
        self._whole: list[torch.Tensor] = []
        self._small: list[torch.Tensor] = []
        for tensor in map(torch.Tensor.detach, tensors):
            self._add(tensor)
        self._sums = [rows.sum(0) for rows in self._rows]
        self._values = [part.clone() for part in self._whole]
        self._joined = torch.cat(self._small) if self._small else None

    def _add(self, tensor: torch.Tensor) -> None:
        whole_words = tensor.nbytes % 4 == 0 and tensor.storage_offset() * tensor.itemsize % 4 == 0
        if not (tensor.is_contiguous() and whole_words and tensor.ndim):
            self._whole.append(tensor)
            return
        flat = tensor.view(-1).view(torch.int32)
        if tensor.nbytes <= _SMALL:
            self._small.append(flat)
            return
        even = flat.numel() & ~1
        words = flat[:even].view(torch.int64 if flat.storage_offset() % 2 == 0 else torch.int32)
        columns = _columns(len(tensor), tensor.numel() // len(tensor))
        whole = words.numel() // columns * columns
        self._rows.append(words[:whole].view(-1, columns))
        self._whole += [words[whole:], flat[even:]]

    def same(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether these are the tensors, and their memory still has this content."""
        if [t.data_ptr() for t in tensors] != self._addresses:
            return False
        sums, parts = zip(self._rows, self._sums, strict=True), zip(self._whole, self._values, strict=True)
        return (
            all(torch.equal(rows.sum(0), known) for rows, known in sums)
            and all(torch.equal(part, known) for part, known in parts)
            and (self._joined is None or torch.equal(torch.cat(self._small), self._joined))
        )

    def untouched(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether they are the same, and PyTorch has not written to them, not even the same values."""
        return [t._version for t in tensors] == self._versions and self.same(tensors)


@functools.cache
def _columns(rows: int, width: int) -> int:
    """A prime above the sides of a matrix: two of its rows or columns that change places change the sums."""
    number = (max(rows, width, _COLUMNS - 1) + 1) | 1
    while any(number % divisor == 0 for divisor in range(3, math.isqrt(number) + 1, 2)):
        number += 2
    return number


class _Made(NamedTuple):
    values: tuple[torch.Tensor, ...]
    contents: Contents


class Derived:
    """Keeps the values that a unit derives from its weights, for each model that has these weights.

    They are derived again if a weight was written, moved or replaced, and freed with the first weight.
    """

    def __init__(self, counts: ModuleType) -> None:
        self._counts = counts
        self._nothing = torch.empty(0)
        self._kept: Any = WeakTensorKeyDictionary()

    def __call__(self, derive: Derive, *sources: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What `derive` returns for these weights and constants."""
        self._counts.count(DERIVED)
        if any(source.is_inference() for source in sources):  # writes to them leave no trace
            return derive(*sources)
        key = sources[0] if sources else self._nothing
        forms = self._kept.get(key)
        if forms is None:
            forms = self._kept[key] = {}
        found = forms.get(derive)
        if found is None or not found.contents.untouched(sources):
            with torch.inference_mode(False), torch.no_grad():
                # Contents first: a concurrent write is noticed at the next call.
                contents = Contents(sources)
                found = forms[derive] = _Made(_own(derive(*sources), sources), contents)
        return found.values

    def forget(self) -> None:
        """Free all values."""
        self._kept.clear()


def _own(values: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The values in memory of their own, so that nothing but this cache can change them."""
    shared = {source.untyped_storage().data_ptr() for source in sources}
    made = [v.clone() if v.untyped_storage().data_ptr() in shared else v for v in values]
    for value in made:
        value._agentforge_derived = True
    return tuple(made)


def is_derived(tensor: torch.Tensor) -> bool:
    """Whether the tensor is a value that `Derived` made: it never changes."""
    return hasattr(tensor, "_agentforge_derived")


def derived(derive: Derive, *sources: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The same values, computed at each call."""
    return derive(*sources)

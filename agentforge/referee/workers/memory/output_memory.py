"""The memory of a worker's outputs belongs to the caller: living outputs share none, and a caller may write.

Outputs that the next call drops are overwritten at random places first. A kernel that relies on what it had
written there leaves those bytes in a later output.
"""

from __future__ import annotations

import mmap
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

from ..pytree import LeafSpec
from .process_memory import runs_of
from .shared_memory import Layout

Run = tuple[int, int]
"""Address and number of bytes."""

_RUNS, _ELEMENTS = 8, 64
"""Runs of elements that are overwritten in an output."""
_REMEMBERED = 512
"""Runs of earlier outputs that are looked for in later ones."""
_WORD = 8
"""Bytes that must be what was written there; random bytes agree with a right answer by chance otherwise."""
_EFFORT = 100_000
"""Of numpy's exact answer to whether two layouts have a common element; no honest ones take as much."""


@dataclass(frozen=True)
class Sharing:
    """Which leaves of the reference's outputs share memory: those of others may then do so too."""

    leaves: int = 0
    """Number of leaves; 0 if nothing is known yet."""
    pairs: frozenset[tuple[int, int, int]] = frozenset()
    """0 for two leaves of one output (twice the same one if its own elements overlap), 1 for those of two
    outputs that live at the same time; and the numbers of the leaves, in order or the newer one first."""

    def joined(self, other: Sharing) -> Sharing:
        """What was seen in one of two calls."""
        return Sharing(other.leaves, self.pairs | other.pairs)

    def to_json(self) -> list[Any]:
        """For a message."""
        return [self.leaves, sorted(self.pairs)]

    @staticmethod
    def from_json(value: Sequence[Any]) -> Sharing:
        """What `to_json` gave."""
        return Sharing(value[0], frozenset((a, b, c) for a, b, c in value[1]))


class OutputMemory:
    """Places of the living outputs of one worker, and what was written to those that are gone."""

    def __init__(self, allowed: Sharing) -> None:
        self.living: list[list[LeafSpec]] = []
        """Outputs, the newest last."""
        self._allowed = allowed
        self._static = {i for older, i, _ in allowed.pairs if older}
        """Leaves that the reference itself gives out again and again, such as its state."""
        self._written: deque[tuple[int, bytes]] = deque(maxlen=_REMEMBERED)
        self._random = Random(secrets.randbits(64))

    def drop(self, keep: int) -> tuple[list[Run], bytearray]:
        """Forget all but the last `keep` outputs; what to write to the others as long as they live."""
        count = max(0, len(self.living) - keep)
        dropped, self.living = self.living[:count], self.living[count:]
        runs = [run for specs in dropped if self._allowed.leaves for run in self._chosen(specs)]
        content = bytearray(self._random.randbytes(sum(nbytes for _, nbytes in runs)))
        offset = 0
        for address, nbytes in runs:
            self._written.append((address, bytes(content[offset : offset + nbytes])))
            offset += nbytes
        return runs, content

    def _chosen(self, specs: Sequence[LeafSpec]) -> list[Run]:
        tensors = [s for i, s in enumerate(specs) if s.layout and s.layout.numel and i not in self._static]
        runs: list[Run] = []
        for _ in range(_RUNS if tensors else 0):
            spec = self._random.choice(tensors)
            assert spec.layout is not None
            numel, size = spec.layout.numel, spec.layout.itemsize
            count = min(_ELEMENTS, numel)
            first = self._random.randrange(numel - count + 1)
            if _is_dense(spec.layout):
                runs.append((spec.address + first * size, count * size))
            else:
                runs += runs_of(spec, first, count)
        return runs

    def sharing(self) -> Sharing:
        """What the leaves of the newest output share, with one another and with older outputs."""
        newest = self.living[-1]
        pairs = {(0, i, i) for i, spec in enumerate(newest) if spec.layout and _overlaps_itself(spec.layout)}
        tensors = [
            (*_range(spec), age > 0, i, spec)
            for age, specs in enumerate(reversed(self.living))
            for i, spec in enumerate(specs)
            if spec.layout and spec.layout.numel
        ]
        near: list[tuple[int, int, bool, int, LeafSpec]] = []
        for entry in sorted(tensors, key=lambda entry: entry[0]):
            near = [other for other in near if entry[0] < other[1]]
            for other in near:
                if not (entry[2] and other[2]) and overlap(entry[4], other[4]):
                    new, old = sorted((entry, other), key=lambda x: x[2:4])
                    pairs.add((int(old[2]), new[3], old[3]))
            near.append(entry)
        return Sharing(len(newest), frozenset(pairs))

    def pages(self) -> list[range]:
        """Addresses in the pages of the newest output's leaves, one in each."""
        places = [_range(s) for s in self.living[-1] if s.layout and s.layout.numel]
        return [range(first, end, mmap.PAGESIZE) for first, end in places]

    def lies_in(self, ranges: Sequence[tuple[int, int]]) -> frozenset[int]:
        """Leaves of the newest output that have bytes between the first and last addresses of some ranges."""
        mine = [(i, *_range(s)) for i, s in enumerate(self.living[-1]) if s.layout and s.layout.numel]
        return frozenset(
            i for i, begin, end in mine if any(begin < last and first < end for first, last in ranges)
        )

    def complaint(self, read: Callable[[list[Run]], bytearray | None]) -> str:
        """The fault in the memory of the newest output; empty if there is none.

        Args:
            read: gives the bytes that lie at some runs now, or None.
        """
        if len(self.living[-1]) != self._allowed.leaves:
            return ""  # of another form: the comparison says so
        for older, i, j in sorted(self.sharing().pairs - self._allowed.pairs):
            path = self.living[-1][i].path
            if older:
                return f"{path} shares memory with an earlier output that is still in use: static buffers"
            if i == j:
                return f"elements of {path} share memory (an expanded view), and the reference's do not"
            return f"{path} and {self.living[-1][j].path} share memory, and the reference's outputs do not"
        reused = self._reused()
        found = read([(address, len(content)) for address, content in reused])
        if found is not None and _untouched(reused, found):
            return "its answers depend on what the caller writes to earlier ones: it does not rewrite all"
        return ""

    def _reused(self) -> list[tuple[int, bytes]]:
        """What was written to memory that the newest output is made of now, by address; it is forgotten."""
        places = [_range(s) for s in self.living[-1] if s.layout and _is_dense(s.layout)]
        found: list[tuple[int, bytes]] = []
        left: list[tuple[int, bytes]] = []
        for address, content in self._written:
            inside = any(first <= address and address + len(content) <= end for first, end in places)
            (found if inside else left).append((address, content))
        if found:
            self._written = deque(left, maxlen=_REMEMBERED)
        return found


def _untouched(written: Sequence[tuple[int, bytes]], found: bytearray) -> bool:
    """Whether any word of what was written, by address, is in the bytes that lie there now."""
    offset = 0
    for _, content in written:
        ours = np.frombuffer(content[: len(content) // _WORD * _WORD], dtype=np.uint64)
        now = np.frombuffer(found, dtype=np.uint64, count=len(ours), offset=offset)
        if bool((ours == now).any()):
            return True
        offset += len(content)
    return False


def overlap(a: LeafSpec, b: LeafSpec) -> bool:
    """Whether two tensors with elements have a common byte."""
    assert a.layout is not None and b.layout is not None
    (begin, end), (other, last) = _range(a), _range(b)
    return begin < last and other < end and _common(a.layout, b.layout, b.address - a.address)


@lru_cache(maxsize=1 << 12)
def _common(a: Layout, b: Layout, distance: int) -> bool:
    """Whether tensors of these layouts have a common byte, the second one `distance` bytes behind the first:
    columns of one matrix lie between one another and have none."""
    base = 1 << 61
    try:
        return np.shares_memory(_view(a, base), _view(b, base + distance), max_work=_EFFORT)  # type: ignore[arg-type]
    except (np.exceptions.TooHardError, ValueError, OverflowError):
        return True


def _view(layout: Layout, address: int) -> np.ndarray[Any, Any]:
    """An array of this layout; its memory is never touched."""
    size = layout.itemsize
    interface = {
        "version": 3,
        "data": (address, True),
        "shape": layout.shape,
        "strides": tuple(step * size for step in layout.strides),
        "typestr": f"|V{size}",
    }
    return np.asarray(type("Place", (), {"__array_interface__": interface})())


def _overlaps_itself(layout: Layout) -> bool:
    """Whether elements share memory: each step must lead beyond all that the shorter ones reach."""
    reach = 0
    steps = sorted((step, size) for step, size in zip(layout.strides, layout.shape, strict=True) if size > 1)
    for step, size in steps if layout.numel else ():
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def _range(spec: LeafSpec) -> Run:
    """First address and the one after the last."""
    assert spec.layout is not None
    return spec.address, spec.address + spec.layout.nbytes


def _is_dense(layout: Layout) -> bool:
    return layout.nbytes == layout.numel * layout.itemsize

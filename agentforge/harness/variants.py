"""The same problem in other layouts and sizes: inputs that are not contiguous, fewer rows, one row.

A variant is tried only where the reference itself accepts it. A candidate may refuse one (a kernel for one
shape says so by raising); it may not give a wrong answer.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import torch

from agentforge.schema import EvaluationStatus

from .bench import Bench, Course
from .candidate import Candidate
from .inputs import Inputs
from .judge import Judge
from .memory import Layout, aligned
from .party import PartyFailure

Change = Callable[[torch.Tensor], torch.Tensor | None]
"""From an input to the variant's; None leaves it as it is."""


def _padded(tensor: torch.Tensor) -> torch.Tensor | None:
    """The same values with a gap after each row."""
    if tensor.dim() < 2 or tensor.numel() < 2:
        return None
    wide = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] + 3))
    wide[..., :-3] = tensor
    return wide[..., :-3]


def _transposed(tensor: torch.Tensor) -> torch.Tensor | None:
    """The same values, the last two dimensions laid out the other way round."""
    if tensor.dim() < 2 or tensor.numel() < 2:
        return None
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def _first_rows(rows: int, of: int) -> Change:
    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.dim() == 0 or tensor.shape[0] != of:
            return None
        return tensor[:rows].contiguous()

    return change


def _first_columns(columns: int, of: int) -> Change:
    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.dim() == 0 or tensor.shape[-1] != of:
            return None
        return tensor[..., :columns].contiguous()

    return change


def _more_rows(rows: int, of: int) -> Change:
    """More than there were: the first ones once more."""

    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.dim() == 0 or tensor.shape[0] != of:
            return None
        return torch.cat([tensor, tensor[: rows - of]])

    return change


def _prime_below(size: int) -> int:
    """The largest prime below; 1 where there is none."""
    return next((n for n in range(size - 1, 1, -1) if all(n % d for d in range(2, math.isqrt(n) + 1))), 1)


def changes(tensors: Sequence[torch.Tensor]) -> dict[str, Change]:
    """Variants that fit these inputs, by name."""
    found: dict[str, Change] = {"padded rows": _padded, "transposed memory": _transposed}
    shaped = [t for t in tensors if t.dim()]
    rows, columns = {t.shape[0] for t in tensors if t.dim() > 1}, {t.shape[-1] for t in shaped}
    inner, outer = {n for t in shaped for n in t.shape[1:]}, {n for t in shaped for n in t.shape[:-1]}
    # With several inputs a size must name one dimension: cutting another one would mean something else.
    if len(rows) == 1 and (len(shaped) == 1 or not rows & inner):
        size = rows.pop()
        found |= {f"{n} rows": _first_rows(n, size) for n in (size - 1, 7, 1, 0) if 0 <= n < size}
        found[f"{size + 1} rows"] = _more_rows(size + 1, size)
    if len(columns) == 1 and (len(shaped) == 1 or not columns & outer):
        size = columns.pop()
        found |= {f"{n} columns": _first_columns(n, size) for n in (_prime_below(size), 1) if 0 < n < size}
    return found


def changed(tensors: Sequence[torch.Tensor], change: Change) -> list[torch.Tensor] | None:
    """The inputs of a variant; None where it is none of these."""
    found = [change(t) for t in tensors]
    if all(t is None for t in found):
        return None
    return [t if c is None else c for t, c in zip(tensors, found, strict=True)]


def replaced(arguments: Any, layouts: Sequence[Layout]) -> Any:
    """Encoded arguments with other layouts, in order."""
    remaining = iter(layouts)

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            if "tensor" in value:
                return {"tensor": next(remaining).to_json()}
            return value if "dtype" in value else {key: walk(item) for key, item in value.items()}
        return value

    return walk(arguments)


class Variants:
    """Tries the variants of one workload.

    Args:
        bench: gives the right answers.
        candidate: is asked for its own.
        judge: compares.
    """

    def __init__(self, bench: Bench, candidate: Candidate, judge: Judge) -> None:
        self._bench = bench
        self._candidate = candidate
        self._judge = judge

    def run(self, course: Course) -> str:
        """Try all; afterwards bench and candidate have the course as before.

        Raises:
            PartyFailure: a wrong answer, a crash.
        """
        course.inputs.fill(0)
        tensors = course.inputs.copies(0)
        self._bench.disturbed()
        outcome: dict[str, list[str]] = {"right": [], "refused": []}
        for name, change in changes(tensors).items():
            variant, broadcast = self._changed(course, tensors, change)
            if variant is not None:
                outcome.setdefault(self._try(variant, name, broadcast), []).append(name)
        result = self._try(self._guarded(course, tensors), "forbidden pages around its inputs")
        outcome.setdefault(result, []).append("forbidden pages")
        self._bench.enter(course)
        self._candidate.party.configure(course.body(), course.inputs, course.outputs_bytes)
        return "; ".join(f"{key}: {', '.join(names)}" for key, names in outcome.items() if names)

    @staticmethod
    def _changed(
        course: Course, tensors: Sequence[torch.Tensor], change: Change
    ) -> tuple[Course | None, frozenset[int]]:
        """The variant, None where nothing changes, and sizes that became one."""
        content = changed(tensors, change)
        if content is None:
            return None, frozenset()
        return laid_out(course, content), _became_one(tensors, content)

    def _try(self, variant: Course, name: str, broadcast: frozenset[int] = frozenset()) -> str:
        """How it went; sizes in `broadcast` that are still in the answer came from weights of that size."""
        try:
            try:
                self._bench.eager.configure(variant.body(), variant.inputs, variant.outputs_bytes)
                expected = self._bench.expect(variant, 0)
                bounds = self._bench.bounds_for(variant, 0)
            except PartyFailure:
                if not self._bench.eager.worker.running:
                    raise
                return "not defined by the reference"
            if any(isinstance(x.value, torch.Tensor) and broadcast & {*x.value.shape} for x in expected):
                return "broadcast by the reference"
            party = self._candidate.party
            party.configure(variant.body(), variant.inputs, variant.outputs_bytes)
            try:
                party.call(0)
            except PartyFailure as failure:
                if failure.status is EvaluationStatus.RUNTIME_ERROR and party.worker.running:
                    return "refused"
                raise
            got = party.fetch(0)
            self._judge.check(got, expected, bounds, f"with {name} (as the reference accepts)")
            return "right"
        finally:
            variant.inputs.close()

    def _guarded(self, course: Course, content: Sequence[torch.Tensor]) -> Course:
        """Every input ends where a page begins that must not be read, and another lies before it."""
        layouts, guards, offset = [], [0], mmap.PAGESIZE
        for tensor in content:
            layout = Layout.of(tensor)
            end = -(-(offset + aligned(layout.nbytes)) // mmap.PAGESIZE) * mmap.PAGESIZE
            layouts.append(layout.at(end - aligned(layout.nbytes)))
            guards.append(end)
            offset = end + mmap.PAGESIZE
        variant = _placed(course, content, layouts, offset)
        # Slots follow one another: only the first is used, and its pages are guarded.
        variant.guards = guards
        return variant


def _became_one(before: Sequence[torch.Tensor], after: Sequence[torch.Tensor]) -> frozenset[int]:
    """Sizes that were cut down to one: where a weight has them, one row is spread, which nobody asked for."""
    pairs = [
        (a, b) for x, y in zip(before, after, strict=True) for a, b in zip(x.shape, y.shape, strict=True)
    ]
    return frozenset(a for a, b in pairs if b == 1 < a)


def laid_out(course: Course, content: Sequence[torch.Tensor]) -> Course:
    """A course like another one with these inputs, one after the other."""
    layouts, offset = [], 0
    for tensor in content:
        layouts.append(Layout.of(tensor, offset))
        offset += aligned(layouts[-1].nbytes)
    return _placed(course, content, layouts, offset)


def _placed(
    course: Course, content: Sequence[torch.Tensor], layouts: Sequence[Layout], offset: int
) -> Course:
    arguments = type(course.inputs.arguments)(replaced(course.inputs.arguments.encoded, layouts), offset)
    inputs = Inputs(course.workload, arguments, None)
    inputs.give(0, content)
    bytes_needed = max(course.outputs_bytes, offset + (1 << 16))
    return Course(course.workload, inputs, course.copy_inputs, bytes_needed, exact_ok=course.exact_ok)

"""Cells of the map of solutions: what was measured of their machine code (KernelFoundry, MAP-Elites).

A cell has one level, 0 to 3, for each dimension; `UNKNOWN` if nothing was measured for it. Levels come from
the metrics that the build recorded, never from the source text. prompts/shared/target.md.j2 says in words
what each level is and how to reach it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean

from agentforge.schema import Evaluation

Cell = tuple[int, ...]

LEVELS = 4
"""Of each dimension."""

UNKNOWN = -1

CPU_DIMENSIONS = ("vectors", "unrolling", "memory", "parallelism")
GPU_DIMENSIONS = ("registers", "staging", "block", "occupancy")

SEEN_OFTEN = 3
"""Transitions in one direction before their mean gain is shown."""

_VECTOR_BITS = (128, 256, 512)
_OPERATIONS = (16, 48, 96)
"""Floating-point instructions of the heaviest loop, of levels 1 to 3."""
_STAGED_BYTES = (1, 16 << 10, 64 << 10)
"""Shared memory of a block, of levels 1 to 3."""
_THREADS = (129, 257, 513)
_OCCUPANCY = (0.25, 0.5, 0.75)
_REGISTERS = (64, 128)


def dimensions(evaluation: Evaluation) -> tuple[str, ...]:
    """Names of the dimensions of this solution's cell."""
    return GPU_DIMENSIONS if evaluation.resources else CPU_DIMENSIONS


def cell_of(evaluation: Evaluation | None) -> Cell:
    """The cell of a solution that passed; empty if nothing was recorded of its machine code."""
    if evaluation is None or not evaluation.passed:
        return ()
    if evaluation.resources:
        return _of_gpu(evaluation)
    values = {m.name: m.value for m in evaluation.metrics}
    cell = (
        _vectors(values),
        _level(values.get("loop_operations"), _OPERATIONS),
        _memory(values),
        _level(values.get("parallel_regions"), (1, 2, 3)),
    )
    return () if set(cell) == {UNKNOWN} else cell


def highest_cell(vector_bits: int) -> Cell:
    """The highest level of each dimension of C++ with vectors this wide; empty if it is unknown (0)."""
    return (bisect_right(_VECTOR_BITS, vector_bits), *[LEVELS - 1] * 3) if vector_bits else ()


def neighbours(cell: Cell, highest: Cell = ()) -> list[Cell]:
    """The cells that differ by one level in one known dimension.

    Args:
        highest: level of each dimension that the machine allows; empty if all.
    """
    return [
        (*cell[:place], level + step, *cell[place + 1 :])
        for place, level in enumerate(cell)
        for step in (1, -1)
        if level != UNKNOWN and 0 <= level + step <= (highest[place] if highest else LEVELS - 1)
    ]


def mean_gains(transitions: Iterable[tuple[Cell, Cell, float]]) -> dict[tuple[int, int], tuple[float, int]]:
    """What moves on the map brought: mean log gain and number, by dimension and direction (1 or -1).

    Args:
        transitions: cell of the parent, cell of the child, and ln(parent's time / child's time).
    """
    seen: dict[tuple[int, int], list[float]] = defaultdict(list)
    for before, after, gain in transitions:
        for place, (old, new) in enumerate(zip(before, after, strict=False)):
            if UNKNOWN not in (old, new) and old != new:
                seen[place, 1 if new > old else -1].append(gain)
    return {move: (fmean(gains), len(gains)) for move, gains in seen.items() if len(gains) >= SEEN_OFTEN}


def _level(value: float | None, least: tuple[float, ...]) -> int:
    """Number of thresholds that a value reaches."""
    return UNKNOWN if value is None else bisect_right(least, value)


def _vectors(values: Mapping[str, float]) -> int:
    """The width in the heaviest loop; without a disassembler, the widest that the compiler reports."""
    reported = values.get("vector_bytes")
    return _level(values.get("loop_vector_bits", None if reported is None else 8 * reported), _VECTOR_BITS)


def _memory(values: Mapping[str, float]) -> int:
    """0: the heaviest loop gathers or scatters. 1: it uses the stack, as spilled registers do. 2: neither.
    3: also stores past the cache, or prefetches."""
    if "loop_gathers" not in values:
        return UNKNOWN
    if values["loop_gathers"]:
        return 0
    if values.get("loop_stack_accesses"):
        return 1
    return 3 if values.get("streaming_stores") or values.get("prefetches") else 2


def _of_gpu(evaluation: Evaluation) -> Cell:
    """What the assembler says of the kernels, the worst or the largest of each."""
    used = evaluation.resources
    registers = max(r.registers for r in used)
    spilled = any(r.spill_store_bytes or r.spill_load_bytes for r in used)
    return (
        0 if spilled else 3 - sum(registers > most for most in _REGISTERS),
        _level(max(r.shared_bytes for r in used), _STAGED_BYTES),
        _level(max(r.threads for r in used) or None, _THREADS),
        _level(min((r.occupancy for r in used if r.occupancy is not None), default=None), _OCCUPANCY),
    )

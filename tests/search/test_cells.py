"""Cells of machine code: levels, neighbours, and what moves between them brought."""

from __future__ import annotations

from typing import Any

import pytest

from agentforge.schema import (
    Evaluation,
    EvaluationStatus,
    Metric,
    ResourceUsage,
)
from agentforge.search.cells import (
    CPU_DIMENSIONS,
    GPU_DIMENSIONS,
    UNKNOWN,
    cell_of,
    dimensions,
    highest_cell,
    mean_gains,
    neighbours,
)
from tests.store import nouns


def evaluation(metrics: dict[str, float] | None = None, **changes: Any) -> Evaluation:
    named = tuple(Metric(name=name, value=value) for name, value in (metrics or {}).items())
    return nouns.evaluation(speedup=None, metrics=named, **changes)


LOOP = {
    "loop_vector_bits": 256.0, "loop_operations": 20.0, "loop_gathers": 0.0, "loop_stack_accesses": 0.0,
    "streaming_stores": 0.0, "prefetches": 0.0, "parallel_regions": 1.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        ({}, (2, 1, 2, 1)),
        ({"loop_vector_bits": 0.0}, (0, 1, 2, 1)),
        ({"loop_vector_bits": 512.0, "loop_operations": 300.0}, (3, 3, 2, 1)),
        ({"streaming_stores": 4.0}, (2, 1, 3, 1)),
        ({"loop_stack_accesses": 2.0, "streaming_stores": 4.0}, (2, 1, 1, 1)),
        ({"loop_gathers": 1.0}, (2, 1, 0, 1)),
        ({"parallel_regions": 9.0}, (2, 1, 2, 3)),
    ],
)
def test_a_cell_is_measured_from_machine_code(changes: dict[str, float], cell: tuple[int, ...]) -> None:
    assert cell_of(evaluation({**LOOP, **changes})) == cell


def test_what_was_not_measured_is_unknown() -> None:
    assert cell_of(None) == cell_of(evaluation()) == cell_of(evaluation({"threads_busy": 2.0})) == ()
    assert cell_of(evaluation({"vector_bytes": 64.0})) == (3, UNKNOWN, UNKNOWN, UNKNOWN)
    assert cell_of(evaluation(LOOP, status=EvaluationStatus.CRASHED)) == ()


def test_a_gpu_kernels_cell_is_what_the_assembler_says() -> None:
    light = ResourceUsage(kernel="k", target="sm_90", registers=40, threads=256, occupancy=0.8)
    heavy = light.model_copy(update={"registers": 100, "shared_bytes": 32 << 10, "occupancy": 0.3})
    spilled = heavy.model_copy(update={"registers": 255, "spill_store_bytes": 8, "threads": 0})
    assert cell_of(evaluation(resources=(light,))) == (3, 0, 1, 3)
    assert cell_of(evaluation(resources=(light, heavy))) == (2, 2, 1, 1)
    assert cell_of(evaluation(resources=(spilled,))) == (0, 2, UNKNOWN, 1)
    assert dimensions(evaluation(resources=(light,))) == GPU_DIMENSIONS
    assert dimensions(evaluation(LOOP)) == CPU_DIMENSIONS


def test_neighbours_differ_by_one_level_in_a_known_dimension() -> None:
    assert neighbours((0, 3, UNKNOWN, 1)) == [(1, 3, -1, 1), (0, 2, -1, 1), (0, 3, -1, 2), (0, 3, -1, 0)]
    assert neighbours(()) == []


@pytest.mark.parametrize(("bits", "vectors"), [(0, [2, 0]), (128, [0]), (256, [2, 0]), (512, [2, 0])])
def test_no_neighbour_has_wider_vectors_than_the_machine(bits: int, vectors: list[int]) -> None:
    own = (1, UNKNOWN, UNKNOWN, UNKNOWN)
    assert neighbours(own, highest_cell(bits)) == [(level, *own[1:]) for level in vectors]
    assert ((3, 3, 2, 3) in neighbours((2, 3, 2, 3), highest_cell(bits))) == (bits in (0, 512))


def test_the_mean_gain_of_a_move_is_told_if_it_was_seen_often() -> None:
    up = ((2, 1), (3, 1))
    seen = [
        (*up, 0.1),
        (*up, 0.2),
        (*up, 0.3),
        ((3, 1), (2, 1), -0.5),
        ((3, UNKNOWN), (3, 1), 9.0),
        (*up[:1], (), 1.0),
    ]
    assert mean_gains(seen) == {(0, 1): (pytest.approx(0.2), 3)}
    assert mean_gains(seen[:2]) == {}

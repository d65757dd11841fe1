"""An answer may be as far off as the reference is in the very draw, if that is further than usual."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentforge.referee.comparison.allowance import Allowance
from agentforge.referee.comparison.draw_bounds import DrawBounds
from agentforge.referee.comparison.tolerance import Bound
from agentforge.referee.workers.pytree import Leaf

USUAL = Bound(1e-6, 1e-6, 2e-6, 1e-7)
OWN = Bound(4e-6, 1e-7, 1e-6, 1e-6)


def bounds_of(scale: float, *, strict: bool = False, before: float = 1.0) -> tuple[DrawBounds, list[int]]:
    asked: list[int] = []

    def own() -> tuple[list[Leaf], list[Bound]]:
        asked.append(1)
        return [Leaf("out", torch.full((5,), scale))], [OWN]

    prepared: Any = SimpleNamespace(bounds=[USUAL], scales=[before], strict=strict)
    return DrawBounds(prepared, own), asked


def test_the_looser_one_counts_and_is_computed_once() -> None:
    found, asked = bounds_of(1.0)
    assert not asked
    assert found.of(0) == Allowance(Bound(4e-6, 1e-6, 2e-6, 1e-6), 1.0)
    assert found.all() == [Allowance(found.of(0).bound)]
    assert len(asked) == 1


@pytest.mark.parametrize(("scale", "absolute"), [(10.0, 2e-5), (0.1, 2e-6)])
def test_absolute_errors_grow_with_the_answer(scale: float, absolute: float) -> None:
    found = bounds_of(scale)[0].of(0)
    assert found.scale == max(scale, 1.0)
    assert found.bound.absolute == pytest.approx(absolute)


def test_an_output_without_a_scale_keeps_its_bound() -> None:
    assert bounds_of(1.0, before=0.0)[0].of(0).bound.absolute == USUAL.absolute


def test_half_the_tolerance_stays_half() -> None:
    assert bounds_of(1.0, strict=True)[0].of(0).bound.relative == pytest.approx(2.2e-6)

"""The generators of random numbers that a process shares."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

from agentforge.referee.candidates.generators import shared_generators


def _draws() -> tuple[float, float, float]:
    return float(torch.rand(())), random.random(), float(np.random.random())


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: torch.rand(2), "torch (cpu)"),
        (lambda: torch.manual_seed(0), "torch (cpu)"),
        (random.random, "random"),
        (lambda: random.seed(0), "random"),
        (lambda: np.random.random(3), "numpy.random"),
        (lambda: np.random.seed(0), "numpy.random"),
    ],
)
def test_seeds_and_draws_are_seen_each_time(call: Callable[[], object], name: str) -> None:
    for _ in range(2):
        with shared_generators() as changed:
            call()
        assert changed == [name]


def test_what_is_drawn_elsewhere_or_put_back_is_no_change() -> None:
    with shared_generators() as changed:
        torch.rand(2, generator=torch.Generator().manual_seed(0))
        random.Random(0).random()
        np.random.default_rng(0).random()
        with torch.random.fork_rng():
            torch.manual_seed(0)
    assert changed == []


def test_all_go_on_from_where_they_were() -> None:
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    expected = _draws()
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    with pytest.raises(ValueError, match="wrong"), shared_generators():
        _draws()
        raise ValueError("wrong")
    assert _draws() == expected

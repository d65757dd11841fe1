"""Workers on a GPU that take turns, as far as a simulated GPU can tell."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest

from agentforge.referee.timing.gpu.device import CallTime

pytestmark = pytest.mark.usefixtures("flat_imports")


@pytest.fixture
def compare() -> ModuleType:
    return importlib.import_module("gpu.compare")


class Simulated:
    """A GPU on which a call takes as long as it says; what it says of other streams only the clock sees."""

    def __init__(self) -> None:
        self.cold = True

    def prepare(self) -> None:
        self.cold = True

    def time(self, call: Callable[[], Any]) -> CallTime:
        assert self.cold or call() is None
        self.cold = False
        seconds, aside = call() or (0.0, 0.0)
        return CallTime(seconds, max(seconds, aside) + 20e-6)


def test_parties_take_turns_and_inputs_rotate(compare: ModuleType) -> None:
    seen: dict[str, list[int]] = {"a": [], "b": []}
    order: list[str] = []

    def client(name: str, copy: int, seconds: float) -> Callable[[], tuple[float, float]]:
        def call() -> tuple[float, float]:
            seen[name].append(copy)
            order.append(name)
            return seconds, 0.0

        return call

    clients = {
        "a": [client("a", c, 2e-3) for c in range(3)],
        "b": [client("b", c, 1e-3) for c in range(3)],
    }
    times = compare.compare(clients, Simulated(), blocks=30, untimed=0, random=Random(0))
    assert seen["a"] == seen["b"] == [block % 3 for block in range(30)]
    assert {tuple(order[i : i + 2]) for i in range(0, 60, 2)} == {("a", "b"), ("b", "a")}
    assert times.speedup("a", "b") == pytest.approx(2.0) and times.median("b") == pytest.approx(1e-3)
    assert times.hidden == {"a": 0, "b": 0}


def test_work_on_another_stream_counts(compare: ModuleType) -> None:
    clients = {"honest": [lambda: (1e-3, 0.0)], "aside": [lambda: (1e-5, 1e-3)]}
    times = compare.compare(clients, Simulated(), blocks=10, random=Random(0))
    assert times.hidden == {"honest": 0, "aside": 10}
    assert times.speedup("honest", "aside") == pytest.approx(1.0, rel=0.05)


def test_a_server_pauses(compare: ModuleType) -> None:
    pauses: list[float] = []
    client = {"a": [lambda: (1e-3, 0.0)]}
    server = compare.Mode.SERVER
    compare.compare(client, Simulated(), mode=server, blocks=200, random=Random(0), sleep=pauses.append)
    assert len(pauses) == 200 and 2e-3 < sum(pauses) / 200 < 8e-3 and min(pauses) < 1e-3


def test_rotations(compare: ModuleType) -> None:
    assert compare.rotations(1 << 30, 50 << 20) == 2
    assert compare.rotations(10 << 20, 50 << 20) == 10
    assert compare.rotations(4, 50 << 20) == 64
    assert compare.rotations(0, 50 << 20) == 1

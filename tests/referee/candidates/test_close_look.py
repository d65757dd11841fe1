"""What a second look sees that a dispatch mode does not."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentforge.referee.candidates.attestation import observe
from agentforge.referee.candidates.close_look import own_function_times, profiled


def _waits(seconds: float) -> None:
    time.sleep(seconds)


def _library(function: Callable[..., Any]) -> SimpleNamespace:
    """Like one of the C++ runtime: a caller whose globals have the function as `_f`."""
    scope: dict[str, Any] = {"_f": function}
    exec("def call(*args): return _f(*args)", scope)
    return SimpleNamespace(call=scope["call"], _path="k.so")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = _library(_waits)
    runtime = SimpleNamespace(_LIBRARIES={"k.so": made}, calls=lambda: {"call": 1})
    monkeypatch.setitem(sys.modules, "agentforge_cpp", runtime)
    return made


def _exp_in_a_thread(x: torch.Tensor) -> None:
    thread = threading.Thread(target=lambda: x.exp())
    thread.start()
    thread.join()


def test_an_operator_in_another_thread_is_seen() -> None:
    x = torch.ones(1 << 18)
    assert profiled(lambda: _exp_in_a_thread(x), set()).torchs.keys() == {"aten.exp"}
    other = observe(_exp_in_a_thread, (x,), {}, closely=True)["other"]
    assert other["aten.exp"][0] > 0


def test_what_a_seen_operator_runs_is_its_own() -> None:
    x = torch.ones(64, 64)
    linear = torch.nn.functional.linear
    assert profiled(lambda: linear(x, x), {"aten.linear"}).torchs.keys() == {"aten.linear"}
    assert "aten.mm" in profiled(lambda: linear(x, x), {"aten.mm"}).torchs


def test_own_functions_are_timed_and_stay_as_they_were(library: SimpleNamespace) -> None:
    for whole, own in own_function_times(lambda: library.call(0.01)):
        assert 10_000_000 <= own <= whole + 100_000
    assert library.call.__globals__["_f"] is _waits


@pytest.mark.parametrize(("own", "others", "unknown"), [(0.02, 0.0, False), (0.0, 0.02, True)])
def test_time_of_no_known_author_is_told(
    library: SimpleNamespace, own: float, others: float, unknown: bool
) -> None:
    def model(x: torch.Tensor) -> None:
        library.call(own)
        _waits(others)

    missed, whole = observe(model, (torch.ones(1),), {}, closely=True)["other"].get("", [0, 1])
    assert (2 * missed > whole) == unknown

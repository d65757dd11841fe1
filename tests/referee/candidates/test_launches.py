"""Launches that a CUDA graph repeats, with a class in the place of torch's."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from agentforge.referee.candidates import launches
from agentforge.referee.candidates.attestation import observe
from agentforge.referee.workers import server
from agentforge.referee.workers.memory.shared_memory import Block
from agentforge.referee.workers.protocol import pair
from agentforge.referee.workers.runner import HostRunner
from agentforge.referee.workers.server import Server


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counters of a runtime, as launches in Python raise them."""
    counts: Counter[str] = Counter()
    monkeypatch.setitem(sys.modules, "agentforge_cpp", SimpleNamespace(calls=lambda: dict(counts)))
    monkeypatch.setattr(launches, "_replayed", Counter())
    return counts


@pytest.fixture
def graph() -> type:
    class Graph:
        fails = False

        def capture_begin(self, pool: object = None) -> None: ...

        def capture_end(self) -> None:
            if self.fails:
                raise RuntimeError("the capture was invalidated")

        def replay(self) -> None: ...

    launches.count_replays(Graph)
    return Graph


def test_a_replay_counts_what_its_graph_captured_before(counted: Counter[str], graph: type) -> None:
    counted["warm-up"] += 3
    captured = graph()
    captured.capture_begin(pool=None)
    counted["softmax"] += 2
    captured.capture_end()

    def model(x: torch.Tensor) -> torch.Tensor:
        captured.replay()
        return x

    assert observe(model, (torch.ones(3),), {})["own"] == {"softmax": 2}
    assert observe(lambda x: model(model(x)), (torch.ones(3),), {})["own"] == {"softmax": 4}
    assert observe(lambda x: x, (torch.ones(3),), {})["own"] == {}
    assert launches.own_calls() == {"warm-up": 3, "softmax": 8}


def test_a_graph_that_was_not_captured_or_is_counted_by_its_owner_adds_nothing(
    counted: Counter[str], graph: type
) -> None:
    failed, owned = graph(), graph()
    failed.fails = owned.agentforge_counted = True
    for one in (failed, owned):
        one.capture_begin()
        counted["softmax"] += 1
        if one is owned:
            one.capture_end()
            continue
        with pytest.raises(RuntimeError, match="invalidated"):
            one.capture_end()
    for one in (failed, owned, graph()):
        one.replay()
    assert launches.own_calls() == {"softmax": 2}


@pytest.mark.parametrize(("device", "counts"), [("cpu", 0), ("null", 0), ("cuda:0", 1)])
def test_a_gpus_worker_counts_replays_before_the_solution_is_imported(
    device: str, counts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[object] = []
    monkeypatch.setattr(server, "runner_for", lambda *_, **__: HostRunner())
    monkeypatch.setattr(server, "count_replays", installed.append)
    monkeypatch.setattr(sys, "path", list(sys.path))
    ours, theirs = pair()
    weights = Block.create("weights", 64)
    body = {
        "op": "load", "device": device, "events": True, "threads": torch.get_num_threads(),
        "compiled": "", "folder": str(tmp_path), "module": "there_is_none",
    }  # fmt: skip
    reply = Server(theirs).answer(body, (os.dup(weights.fd),))
    assert reply["error"]["type"] == "ModuleNotFoundError"
    assert installed == [torch.cuda.CUDAGraph] * counts
    for end in (ours, theirs, weights):
        end.close()

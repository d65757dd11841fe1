"""Rungs that confine a worker, with stand-ins for the worker and for CUDA."""

from __future__ import annotations

from typing import Any

import pytest

from agentforge.devices import DeviceSpec
from agentforge.ladder._failure import RungFailure
from agentforge.ladder.rungs import confinement
from agentforge.referee.workers.device_backend import DeviceBackend
from agentforge.schema import HarnessError


@pytest.mark.parametrize(
    ("needs_unfiltered", "cuda_starts_filtered", "tried", "works"),
    [
        (False, True, [True], True),
        (True, False, [True, False], True),  # only the filter is lost: the sandbox is kept
        (True, True, [True], False),  # something else than the filter keeps it from working
    ],
)
@pytest.mark.parametrize("rung", [confinement.worker, confinement.memory_limit])
def test_a_gpu_that_lacks_only_the_filter_keeps_the_sandbox(
    needs_unfiltered: bool,
    cuda_starts_filtered: bool,
    tried: list[bool],
    works: bool,
    rung: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    def probe(sandbox: Any, *, backend: DeviceBackend, **_: Any) -> str:
        seen.append(backend.filtered)
        if needs_unfiltered and backend.filtered:
            raise HarnessError("a worker could not be confined")
        return "nothing"

    def inside(program: str) -> None:
        if not cuda_starts_filtered:
            raise RungFailure("Bad system call")

    gpu = DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90")
    monkeypatch.setattr("agentforge.referee.probe.probe_worker", probe)
    monkeypatch.setattr("agentforge.devices.detect", lambda _: gpu)
    monkeypatch.setattr(confinement, "_inside", inside)
    if works:
        assert rung().endswith("limited by nothing")
    else:
        with pytest.raises(RungFailure, match="could not be confined"):
            rung()
    assert seen[: len(tried)] == tried and all(seen) == (False not in tried)

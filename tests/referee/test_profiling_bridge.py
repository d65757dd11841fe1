"""Limits of the process that a profiler looks at, with stand-ins for all that it needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentforge.isolation.sandboxes.rlimits import Rlimits
from agentforge.languages import CommandResult
from agentforge.referee.profiling_bridge import session
from agentforge.referee.workers.device_backend import CPU, DeviceBackend
from tests.referee.judging import problem, solution_of


class Recorded:
    """A forkserver that runs nothing, and keeps how it was asked to."""

    def __init__(self, *_: Any) -> None:
        self.asked: list[dict[str, Any]] = []

    def execute(self, argv: Any, **options: Any) -> CommandResult:
        self.asked.append(options)
        return CommandResult(0, "", "", 0.0)

    def close(self) -> None: ...


@contextlib.contextmanager
def profiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch, backend: DeviceBackend, slot_bytes: int
) -> Iterator[session.Profiled]:
    monkeypatch.setattr(session, "Forkserver", Recorded)
    monkeypatch.setattr(session, "_write_requests", lambda *_: None)
    built = folder / "built"
    built.mkdir()
    builder: Any = SimpleNamespace(
        backend=backend,
        folder=folder,
        memory_limit=lambda _: 1 << 30,
        stack_bytes=lambda: 0,
        processes=lambda least: least,
        build=lambda _: (built, None),
    )
    inputs = SimpleNamespace(slot_bytes=slot_bytes)
    prepared: Any = SimpleNamespace(
        prepared=[SimpleNamespace(inputs=inputs, workload=SimpleNamespace(weight=1))]
    )
    solution = solution_of(problem("return torch.relu(x)", "torch.randn(4)"))
    with session.profiled(
        solution, prepared, builder, sandbox=Rlimits(), environment={}, programs=()
    ) as found:
        yield found


def test_its_copy_of_the_inputs_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with profiled(tmp_path, monkeypatch, CPU, 512 << 20) as found:
        found.run(["true"], timeout_s=1.0)
        (asked,) = found._server.asked  # type: ignore[attr-defined]
    assert asked["limits"].file_bytes == (512 << 20) + (1 << 28)


@pytest.mark.parametrize("filtered", [True, False])
def test_it_is_filtered_as_candidates_are(
    filtered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with profiled(tmp_path, monkeypatch, replace(CPU, filtered=filtered), 4096) as found:
        found.run(["true"], timeout_s=1.0)
        (asked,) = found._server.asked  # type: ignore[attr-defined]
    assert asked["box"].filtered == filtered

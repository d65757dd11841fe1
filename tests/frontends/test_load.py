"""What hangs or lacks memory while it is loaded is known to later runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from agentforge.devices import DeviceSpec
from agentforge.frontends import FrontendOptions, load_target
from agentforge.problems.failures import KnownFailures
from agentforge.schema import UnsupportedTargetError

from .test_kernelbench import write

DEVICE = DeviceSpec(kind="cpu", name="test", architecture="test")


def again(spec: str, failures: KnownFailures, **fields: Any) -> tuple[str, float]:
    """Why a model is unsupported, and after how many seconds."""
    begin = time.monotonic()
    with pytest.raises(UnsupportedTargetError) as caught:
        load_target(spec, FrontendOptions(failures=failures, **fields))
    return str(caught.value), time.monotonic() - begin


@pytest.mark.slow
def test_a_hang_is_waited_for_twice_unless_the_machine_was_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentforge.frontends._load._STARTING_S", 2.0)
    failures = KnownFailures(tmp_path / "cache", DEVICE)
    hangs = write(tmp_path, "__import__('time').sleep(600)")
    for starved in (True, False, False):
        monkeypatch.setattr("agentforge.isolation.procfs.starved", lambda _, found=starved: found)
        said, took = again(hangs, failures, longest_s=0.1)
        assert took > 3 and said.endswith("make its inputs smaller or end its loop")
    said, took = again(hangs, failures, longest_s=0.1)
    assert took < 1 and "did not run within 3 s" in said and "; known since" in said
    monkeypatch.setattr("agentforge.frontends._load._STARTING_S", 3.0)
    said, took = again(hangs, failures, longest_s=0.1)
    assert took > 4 and "known" not in said


def test_what_needs_more_memory_is_tried_once_there_is_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = KnownFailures(tmp_path / "cache", DEVICE)
    large = write(tmp_path, "return self.fc(x).new_zeros(1 << 44)")
    said = [again(large, failures)[0] for _ in range(3)]
    assert ["known since" in text for text in said] == [False, False, True]
    monkeypatch.setattr("agentforge.frontends._load.free_memory", lambda: 1 << 50)
    assert "known since" not in again(large, failures)[0]


def test_a_model_with_files_beside_it_is_always_tried(tmp_path: Path) -> None:
    failures = KnownFailures(tmp_path / "cache", DEVICE)
    (tmp_path / "helper_of_problem.py").write_text("size = 1 << 44\n")
    head = {"import torch\n": "import torch\nfrom helper_of_problem import size\n"}
    large = write(tmp_path, "return self.fc(x).new_zeros(size)", **head)
    assert "known since" not in [again(large, failures)[0] for _ in range(3)][2]

"""The table of `agentforge profile`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import agentforge
from agentforge import profiling
from agentforge.cli.commands.profile import show
from agentforge.devices import cached_roofline, detect, with_threads
from agentforge.referee.timing.device_lock import _taken
from agentforge.schema import Profile
from tests.loop.scripted import bottleneck, profile

from .conftest import Run


@pytest.mark.parametrize(("number", "said"), [(41, "29 more take 2.9% of the time together"), (12, "")])
def test_what_takes_next_to_no_time_is_added_up(
    number: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    large = [bottleneck(f"large{n}", time_s=2.0, share=0.09) for n in range(10)]
    small = [bottleneck(f"small{n}", time_s=0.2, sol_s=0.2, share=0.001) for n in range(number - 10)]
    show(profile(*large, *small))
    shown = capsys.readouterr().out
    assert "large9" in shown
    assert "small1" in shown
    assert "small2" not in shown
    assert said in shown


THREADED = """
import time

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if torch.get_num_threads() > 1:
            time.sleep(0.3)
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_a_profile_has_the_threads_of_the_referee(run: Run, tmp_path: Path, known_roofline: None) -> None:
    (tmp_path / "model.py").write_text(THREADED)
    command = ("profile", "model.py", "--device", "cpu", "--json", "-c")
    found = run(*command, "referee.threads=1").json
    assert found["total_s"] < 0.3
    assert found["bottlenecks"][0]["ablation_share"] is not None
    assert cached_roofline(with_threads(detect("cpu"), 1), tmp_path / "home" / "cache") is not None
    refused = run(*command, "referee.threads=100000")
    assert refused.code == 2
    assert "set it to" in refused.out + refused.err


@pytest.mark.slow
@pytest.mark.parametrize("way", ["command", "API"])
def test_no_other_process_measures_during_a_profile(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_roofline: None, way: str
) -> None:
    def profile_target(*_: Any, **__: Any) -> Profile:
        assert _taken(tmp_path / "home" / "cache" / "cpu.timing.lock") is None
        return profile(bottleneck("norm"))

    monkeypatch.setattr(profiling, "profile_target", profile_target)
    (tmp_path / "model.py").write_text(THREADED)
    if way == "API":
        assert agentforge.profile("model.py", device="cpu").bottlenecks
    else:
        assert run("profile", "model.py", "--device", "cpu", "--json").code == 0

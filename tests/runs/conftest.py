"""A small model, settings with a home of their own, and agents under the names `echo` and `interrupted`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.agents import coders, judges, planners
from agentforge.config import Settings, load_settings
from agentforge.store import Store

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x)) * torch.sigmoid(x) + x

def get_inputs():
    return [torch.randn(256, 128)]

def get_init_inputs():
    return [128]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def settings(
    tmp_path: Path, known_roofline: None, no_slow_parts: None, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENTFORGE_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    here = "tests.runs.agents"
    monkeypatch.setitem(planners._builtin, "echo", f"{here}:EchoPlanner")
    monkeypatch.setitem(coders._builtin, "echo", f"{here}:EchoCoder")
    monkeypatch.setitem(coders._builtin, "wrong", f"{here}:WrongCoder")
    monkeypatch.setitem(coders._builtin, "interrupted", f"{here}:InterruptedCoder")
    monkeypatch.setitem(judges._builtin, "echo", f"{here}:EchoJudge")
    return load_settings(
        [
            "search.planner=echo",
            "search.coder=echo",
            "search.judge=echo",
            "referee.compile_baseline=false",
            "referee.quick_seconds=0.2",
            "referee.quick_blocks=2",
            "referee.full_seconds=0.3",
            "referee.full_blocks=4",
            "referee.task_seconds=0",
            "referee.threads=2",
            "budget.attempts=2",
        ]
    )


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """The database that the settings name."""
    with Store(settings.url) as opened:
        yield opened

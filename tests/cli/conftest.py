"""`run`: the command line in this process, with a home of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentforge.cli import main


@dataclass
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Answer]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("AGENTFORGE_HOME", str(folder))
    monkeypatch.delenv("AGENTFORGE_DATABASE_URL", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> Answer:
        with pytest.raises(SystemExit) as exit_info:
            main(arguments)
        out, err = capsys.readouterr()
        assert isinstance(exit_info.value.code, int)
        return Answer(exit_info.value.code, out, err)

    return call

"""A database with one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.store import Store
from tests.loop.conftest import make_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as opened:
        opened.create_run(make_run())
        yield opened

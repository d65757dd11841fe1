from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from agentforge.referee import Referee

from .judging import quick_referee


@pytest.fixture(scope="session")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    """One for all modules: each would import torch."""
    with quick_referee(tmp_path_factory.mktemp("referee")) as it:
        yield it


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The referee's own process works at one thread; tests beside each other do too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))

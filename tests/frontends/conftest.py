from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children of tests that run side by side must not fight for the cores."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

"""Random faults of the endpoint and kill -9 of the supervisor: the run ends, and nothing is paid twice.

Three hundred attempts and twenty kills: `benchmarks/llm_faults.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.store import Store
from tests.llm.server import LLMServer
from tests.loop.conftest import make_run

from .chaos import Chaos, check, run_through


@pytest.mark.slow
def test_twelve_attempts_of_chaos(tmp_path: Path) -> None:
    with LLMServer(Chaos(1, 0.3)) as server:
        with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
            store.create_run(make_run())
        assert run_through(tmp_path, server, attempts=12, kills=2, seed=1) == 2
        account = check(tmp_path, server, 12)
        assert account.ledger_tokens == account.server_tokens

"""A search by model agents in its own process, for tests that kill it: `faulty.py FOLDER URL ATTEMPTS`.

The referee is simulated (a solution says what will be measured); SDK, wire, ledger, store and loop are real.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agentforge.config import LLMSettings, SearchSettings
from agentforge.devices import DeviceSpec
from agentforge.llm import Ledger
from agentforge.schema import Budget
from agentforge.search import BestFirst
from agentforge.store import Store
from tests.loop.scripted import DEVICE, bottleneck, context_for, profile

from .searching import agents_of, search_with


def main(folder: Path, url: str, attempts: int) -> int:
    """Search to the end, or until killed."""
    region = bottleneck("a", time_s=1.0, sol_s=1e-6)
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store, store.lock_run("run"):
        run = store.get_run("run")
        ledger = Ledger(store, run.id, run.budget)
        settings = LLMSettings(retries=0, timeout_s=3.0, max_tokens=512)
        result = search_with(
            agents_of(f"openai:m@{url}", ledger, settings),
            store,
            folder,
            budget=Budget(attempts=attempts),
            policy=BestFirst(),
            settings=SearchSettings(language="python", patience=10_000, agents="one-shot"),
            region=profile(region),
            context_for=context_for,
            device=DeviceSpec(kind="null", name=DEVICE, architecture="null"),
        )
    print(result.attempts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))

"""A search in its own process, for tests that kill it.

Each step of the simulated referee writes a line to `evaluations.txt` when it has finished, so that the
test sees from outside what was measured and how often.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

from agentforge.agents import BanditCoder
from agentforge.loop import _describe, supervisor
from agentforge.schema import Level, Solution
from agentforge.search import policies
from agentforge.store import Store

from .conftest import Bench
from .scripted import ScriptedCoder, SimulatedReferee, bottleneck, profile

SCRIPT = {
    "a": [{"speed": 1.2}, {"speed": 1.0, "cannot": "no"}, {"speed": 1.1}, {"speed": 2.0}, {"speed": 3.0}],
    "b": [{"speed": 1.0, "status": "CRASHED"}, {"speed": 1.4}, {"speed": 1.6}],
}


class SlowReferee(SimulatedReferee):
    """Takes its time, and keeps a log that no database is behind."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log
        self.before = self._before

    def _before(self, solution: Solution, level: Level) -> None:
        with self.log.open("a") as file:
            file.write(f"{solution.hash} {level}\n")
        time.sleep(0.02)


def search(folder: Path, children: int, policy: str, models: tuple[str, ...] = ()) -> None:
    """Search to the end, or until killed, and write how it ended to `result.txt`.

    Attempts take no time, because what they took decides what is next.

    Args:
        models: between which a bandit draws.
    """
    for module in (_describe, supervisor):
        module.time = SimpleNamespace(monotonic=lambda: 0.0)  # type: ignore[attr-defined]
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store, store.lock_run("run"):
        referee = SlowReferee(folder / "evaluations.txt")
        bench = Bench(store, folder, referee=referee, policy=policies.create(policy))
        if models:
            bench.coder = BanditCoder({model: ScriptedCoder() for model in models})
        result = bench.search(
            profile(bottleneck("a"), bottleneck("b", time_s=0.8)), SCRIPT, children=children
        )
    (folder / "result.txt").write_text(f"{len(result.wins)} {result.attempts}")

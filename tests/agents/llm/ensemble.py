"""A search whose planner, coder and judge are models at one local server, each known by its name."""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentforge.agents import create_coder, create_editor, create_judge, create_planner
from agentforge.config import LLMSettings, SearchSettings
from agentforge.knowledge import KnowledgeBase
from agentforge.llm import Ledger, Prices
from agentforge.loop import Agents, SearchResult
from agentforge.schema import Budget
from agentforge.search import BestFirst
from agentforge.store import Store
from tests.llm.server import LLMServer, Reply
from tests.loop.scripted import NullKnowledge

from .scene import Script, role_of
from .searching import search_with


class Ensemble(Script):
    """Each plan is a new strategy. What a model writes is measured at the speed that `speed` gives.

    Args:
        speed: of a model's next answer, by the model's name and the answer's number.
    """

    def __init__(self, speed: Callable[[str, int], float]) -> None:
        super().__init__(deque())
        self.speed = speed
        self.writers: list[str] = []
        self.numbers = itertools.count(1)

    def __call__(self, body: dict[str, Any]) -> Reply:
        if role_of(body) == "coder":
            self.writers.append(body["model"])
            number = next(self.numbers)
            said = json.dumps({"speed": self.speed(body["model"], number), "answer": number})
            self.codes.append(f"FILE: model_new.py\n```python\nSAID = {said}\nclass ModelNew: ...\n```\n")
        self.strategies.append(f"rows-{len(self.of('planner'))}")
        return super().__call__(body)


def searched(
    store: Store,
    folder: Path,
    server: LLMServer,
    coder: str,
    attempts: int,
    *,
    run: str = "run",
    knowledge: KnowledgeBase | None = None,
    prices: Path | None = None,
    **settings: Any,
) -> SearchResult:
    boss, llm = f"openai:boss@{server.url}", LLMSettings(retries=0)
    ledger = Ledger(store, run, Budget(), Prices(prices))
    planner, judge = create_planner(boss, ledger, llm), create_judge(boss, ledger, llm)
    search = SearchSettings.model_validate(
        {"language": "python", "children": 1, "min_share": 0, "patience": 99, "sol_fraction": 1,
         "agents": "one-shot", "coder": coder, **settings}
    )  # fmt: skip
    editor = create_editor(search, ledger, llm)
    return search_with(
        Agents(planner, create_coder(coder, ledger, llm), judge, editor=editor),
        store,
        folder,
        run=run,
        budget=Budget(attempts=attempts),
        policy=BestFirst(starts=99),
        settings=search,
        knowledge=knowledge or NullKnowledge(),
    )

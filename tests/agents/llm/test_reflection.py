"""What was expected, measured and learned: shown in the run, and in the next one where it is verified."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentforge.config import LLMSettings, SearchSettings
from agentforge.knowledge import KnowledgeBase
from agentforge.llm import Ledger
from agentforge.schema import AttemptReflected, Budget
from agentforge.search import BestFirst
from agentforge.store import Store
from tests.llm.server import LLMServer, Reply
from tests.loop.conftest import make_run

from .scene import Script, measured
from .searching import agents_of, search_with


@dataclass
class Teaching(Script):
    """Its judge teaches a lesson after each success, and refutes earlier ones."""

    lessons: deque[tuple[str, list[int]]] = field(default_factory=deque)

    def _judge(self, prompt: str) -> Reply:
        lesson, refuted = self.lessons.popleft()
        answer = json.loads(super()._judge(prompt).text)
        assert measured(prompt, "latency_s")
        return Reply(json.dumps({**answer, "lesson": lesson, "refuted": refuted}))


def searched(store: Store, run: str, url: str, folder: Path, attempts: int) -> None:
    store.create_run(make_run().model_copy(update={"id": run}))
    search_with(
        agents_of(f"openai:m@{url}", Ledger(store, run), LLMSettings(retries=0)),
        store,
        folder,
        run=run,
        budget=Budget(attempts=attempts),
        policy=BestFirst(starts=9),  # each attempt is planned from the definition
        settings=SearchSettings(language="python", children=1, min_share=0, patience=100),
        knowledge=KnowledgeBase(store, ()),
    )


def code(speed: float) -> str:
    return f"FILE: model_new.py\n```python\nSAID = {json.dumps({'speed': speed})}\nclass ModelNew: ...\n```\n"


@pytest.mark.slow
def test_a_verified_lesson_is_shown_in_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")
    script = Teaching(deque([code(1.5), code(1.8), code(1.2), code(1.1)]))
    script.lessons.extend(
        [("one is enough", []), ("threads over rows gain", [1, 9]), ("not verified", []), ("", [])]
    )
    with LLMServer(script) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        searched(store, "run", server.url, tmp_path, 3)
        first = script.of("planner")
        assert "Learned in this run" not in first[0]
        line = "#1 `one-pass-rows` on rms_norm_test, 2x expected, 1.5x measured, verified: one is enough"
        assert line in first[1]
        assert "one is enough" not in first[2], "what a later attempt contradicts does not hold"
        assert "2x expected, 1.8x measured, verified: threads over rows gain" in first[2]
        assert "Name the numbers of the lessons" in script.of("judge")[1]
        (kept,) = store.lessons()["one-pass-rows"]
        assert (kept.expected_speedup, kept.speedup) == (2.0, 1.8)
        reflected = [e for e in store.events("run") if isinstance(e, AttemptReflected)]
        assert [(r.expected_speedup, r.measured_speedup) for r in reflected] == [
            (2.0, 1.5),
            (2.0, 1.8),
            (2.0, 1.2),
        ]
        searched(store, "next", server.url, tmp_path, 1)
    shown = "Lesson, verified (2x expected, 1.8x measured): threads over rows gain"
    assert shown in script.of("planner")[-1]
    assert "not verified" not in script.of("planner")[-1]


class Citing(Teaching):
    """Its planner rests each plan on the lesson of the first attempt, and on one that is not there."""

    def _planner(self, prompt: str) -> Reply:
        text = super()._planner(prompt).text.replace('"risks": []', '"risks": [], "uses": [1, 7]')
        return Reply(text)


def test_a_plan_names_the_lessons_that_it_rests_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")
    script = Citing(deque([code(1.5), code(1.8), code(1.2)]))
    script.lessons.extend([("one is enough", []), ("", []), ("", [])])
    with LLMServer(script) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        searched(store, "run", server.url, tmp_path, 3)
        plans = [a.plan for a in store.attempts("run")]
    assert [plan.uses for plan in plans if plan] == [(), (1,), (1,)]
    assert re.search(r"reward \+0\.\d\d in attempts that used it: one is enough", script.of("planner")[2])

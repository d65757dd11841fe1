"""The language-model agents inherit the contracts of all agents; a model answers by what it is shown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentforge.agents import Task
from agentforge.agents.llm import LLMAuthor, LLMCoder, LLMJudge, LLMModelPlanner, LLMPlanner
from agentforge.agents.llm.role import Role
from agentforge.config import LLMSettings
from agentforge.llm import Ledger, Request, Response
from agentforge.schema import Plan
from agentforge.store import Store
from agentforge.testing.agents import (
    AuthorContract,
    CoderContract,
    JudgeContract,
    ModelPlannerContract,
    PlannerContract,
    make_task,
)
from tests.loop.conftest import make_run

from .kernels import MODEL, RIGHT_AND_FAST
from .scene import Script

REFERENCE = """FILE: reference.py
```python
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
```
"""


class Responder:
    """A language model that plans, codes and judges sensibly, by the values in its prompts."""

    spec, model, endpoint = "anthropic:claude-haiku-4-5", "scripted", "nowhere"

    def __init__(self, role: str) -> None:
        self._role = role
        self._script = Script(codes=[])  # type: ignore[arg-type]
        self._numbers = itertools.count()

    def complete(self, request: Request) -> Response:
        return Response(text=self._answer(request.messages[0].text), model="scripted-1")

    def _answer(self, prompt: str) -> str:
        if self._role == "coder":
            return RIGHT_AND_FAST + MODEL
        if self._role == "author":
            return REFERENCE
        text: str = getattr(self._script, f"_{self._role}")(prompt).text
        return text.replace("one-pass-rows", f"one-pass-rows-{next(self._numbers)}")


@pytest.fixture
def role(tmp_path: Path) -> Iterator[Callable[[str], Role]]:
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        yield lambda name: Role(name, Responder(name), Ledger(store, "run"), LLMSettings())


class TestPlanner(PlannerContract):
    ends = False

    @pytest.fixture
    def planner(self, role: Callable[[str], Role]) -> LLMPlanner:
        return LLMPlanner(role("planner"))


class TestModelPlanner(ModelPlannerContract):
    @pytest.fixture
    def model_planner(self, role: Callable[[str], Role]) -> LLMModelPlanner:
        return LLMModelPlanner(role("planner"))


class TestCoder(CoderContract):
    @pytest.fixture
    def coder(self, role: Callable[[str], Role]) -> LLMCoder:
        return LLMCoder(role("coder"))

    def plan(self) -> Plan:
        return Plan(strategy="rows", diagnosis="slow", steps=("go",), parameters={"tile": 512})

    def impossible(self) -> tuple[Task, Plan]:
        return make_task(), self.plan().model_copy(update={"language": "fortran"})


class TestJudge(JudgeContract):
    @pytest.fixture
    def judge(self, role: Callable[[str], Role]) -> LLMJudge:
        return LLMJudge(role("judge"))


class TestAuthor(AuthorContract):
    @pytest.fixture
    def author(self, role: Callable[[str], Role]) -> LLMAuthor:
        return LLMAuthor(role("author"))

"""Dialogues that a person recorded by answering the prompts of whole runs, from plan to kernel.

`recordings/NAME.py` is the model, `recordings/NAME.jsonl` its cassette. Its answers were
replayed on an idle machine, which verified the kernels.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agentforge.config import LLMSettings, SearchSettings
from agentforge.devices import detect
from agentforge.knowledge import KnowledgeBase, context_for
from agentforge.llm import Ledger, read_measured
from agentforge.referee import EvaluationRequest, OnStage
from agentforge.resources import resource
from agentforge.runs.evaluators.recording import ReplayedEvaluator
from agentforge.schema import Budget, Evaluation
from agentforge.search import BestFirst
from agentforge.store import Store
from tests.loop.conftest import make_run

from .searching import agents_of, search_with

RECORDINGS = Path(__file__).parent / "recordings"
STRATEGIES = {"masked_cumsum": "interleaved-row-scans", "cross_entropy": "loss-without-probabilities"}
ANSWERS = {"masked_cumsum": 1, "cross_entropy": 2}
"""Of the coder: the first one for the loss did not compile."""

names = pytest.mark.parametrize("name", list(STRATEGIES))


class Nowhere:
    """No referee: what the cassette does not hold is a failure of the test."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        raise AssertionError(f"the cassette holds no verdict at {request.level.value}")


@pytest.mark.slow
@names
def test_a_recorded_search_is_repeated_without_a_machine(tmp_path: Path, name: str) -> None:
    cassette = RECORDINGS / f"{name}.jsonl"
    (profile,) = (line.profile for line in read_measured(cassette) if line.profile)
    recorded = [line.evaluation for line in read_measured(cassette) if line.evaluation]
    spec, budget, llm = f"replay:{cassette}", Budget(attempts=1), LLMSettings()
    settings = SearchSettings(planner=spec, coder=spec, judge=spec, children=1, min_share=0)
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run(budget=budget))
        search_with(
            agents_of(spec, Ledger(store, "run", budget), llm),
            store,
            tmp_path,
            budget=budget,
            policy=BestFirst(**settings.policy_options),
            settings=settings,
            region=profile,
            evaluator=ReplayedEvaluator(Nowhere(), cassette),
            knowledge=KnowledgeBase(store, (resource("knowledge_base", "playbook"),)),
            context_for=partial(context_for, device=detect("cpu")),
            device=detect("cpu"),
        )
        (attempt,) = store.attempts("run")
        assert attempt.plan is not None
        assert attempt.plan.strategy == STRATEGIES[name]
        assert attempt.solution == recorded[-1].solution
        roles = [call.role for call in store.calls("run")]
        evaluation = store.get_evaluation(attempt.evaluation or "")
    assert sorted(roles) == sorted(["planner", *["coder"] * ANSWERS[name], "judge"])
    assert evaluation.verified
    assert evaluation.performance == recorded[-1].performance

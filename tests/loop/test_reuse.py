"""A later run of the same search takes what an earlier one measured, and goes on from there."""

from __future__ import annotations

from agentforge.agents import Draft, Past, Task
from agentforge.knowledge import KnowledgeBase
from agentforge.loop import RunLog
from agentforge.schema import Budget, Plan

from .conftest import Bench, make_run
from .scripted import ScriptedCoder, bottleneck, profile

REGION = bottleneck("a", sol_s=1e-6)
SCRIPT = [{"speed": 1.5}, {"speed": 1.0, "status": "TIMEOUT"}, {"speed": 1.0, "status": "OUT_OF_MEMORY"}]


def later(bench: Bench, script: list[dict[str, object]], **settings: object) -> None:
    bench.store.create_run(make_run("later", Budget(attempts=len(script))))
    bench.search(profile(REGION), {"a": script}, name="later", conditions="here", patience=99, **settings)


def test_what_was_measured_once_is_not_measured_again(bench: Bench) -> None:
    bench.search(profile(REGION), {"a": SCRIPT}, conditions="here", patience=99)
    measured = list(bench.referee.evaluations)
    later(bench, [*SCRIPT, {"speed": 2.0}])
    fresh = [solution for solution, _ in bench.referee.evaluations[len(measured) :]]
    attempts = bench.store.attempts("later")
    assert set(fresh) == {attempts[3].solution}
    found = [bench.store.get_evaluation(a.evaluation or "") for a in attempts]
    assert [bool(e.reused) for e in found] == [True, True, True, False]
    assert [e.status.value for e in found] == ["PASSED", "TIMEOUT", "OUT_OF_MEMORY", "PASSED"]
    promoted = bench.store.promotions("later")
    assert [p.solution for p in promoted] == [attempts[3].solution]
    told = [e for e in bench.of("attempt.evaluated") if e["attempt"].startswith("later/")]
    assert [e["reused"] for e in told if e["number"] < 4] == [True] * 4  # the first at both levels


class Parameterised(ScriptedCoder):
    """Its code does not depend on `tile`."""

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        same = {name: value for name, value in plan.parameters.items() if name != "tile"}
        draft = super().code(task, plan.model_copy(update={"parameters": same}), parent)
        return Draft(draft.solution.model_copy(update={"parameters": plan.parameters}))


def test_the_history_of_a_resumed_run_is_its_own(bench: Bench) -> None:
    """An earlier run stored the same code with other parameters."""
    bench.coder = Parameterised()
    bench.search(profile(REGION), {"a": [{"speed": 1.5, "tile": 8}]}, patience=99)
    later(bench, [{"speed": 1.5, "tile": 16}])
    for run, tile in (("run", 8), ("later", 16)):
        (past,) = RunLog(bench.store, bench.store.get_run(run)).past(REGION.definition.hash)
        assert past.solution is not None
        assert (past.solution.author, past.solution.parameters["tile"]) == ("scripted", tile)


def test_without_conditions_nothing_is_shared(bench: Bench) -> None:
    bench.search(profile(REGION), {"a": SCRIPT[:1]}, patience=99)
    measured = len(bench.referee.evaluations)
    later(bench, SCRIPT[:1])
    assert len(bench.referee.evaluations) == 2 * measured


def test_the_knowledge_base_counts_a_shared_verdict_once(bench: Bench) -> None:
    bench.knowledge = KnowledgeBase(bench.store, ())  # type: ignore[assignment]
    bench.search(profile(REGION), {"a": SCRIPT}, conditions="here", patience=99)
    later(bench, SCRIPT)
    assert KnowledgeBase(bench.store, ()).stats().outcomes == len(SCRIPT)


def test_other_words_for_the_same_machine_code_share_a_verdict_over_runs(bench: Bench) -> None:
    model = {"coder": "openai:m", "children": 1}
    bench.search(
        profile(REGION), {"a": [{"speed": 1.5, "code": "abc"}]}, conditions="here", patience=99, **model
    )
    measured = len(bench.referee.evaluations)
    later(bench, [{"speed": 9.0, "code": "abc"}], **model)
    (attempt,) = bench.store.attempts("later")
    evaluation = bench.store.get_evaluation(attempt.evaluation or "")
    assert len(bench.referee.evaluations) == measured
    assert evaluation.solution == attempt.solution
    assert evaluation.performance is not None
    assert evaluation.performance.speedup["eager"].point == 1.5
    assert evaluation.reused.endswith("of run run (the same machine code)")
    assert bench.store.promotions("later")[0].solution == attempt.solution


def test_a_lesson_of_a_shared_verdict_whose_strategy_has_no_entry_ends_no_run(bench: Bench) -> None:
    bench.knowledge = KnowledgeBase(bench.store, ())  # type: ignore[assignment]
    model = {"coder": "openai:m", "children": 1}
    script = [{"speed": 1.5, "code": "abc"}]
    bench.search(profile(REGION), {"a": script}, conditions="here", patience=99, **model)
    later(bench, [{"speed": 9.0, "code": "abc", "strategy": "new-slug", "lesson": "rows fit"}], **model)
    assert len(bench.store.promotions("later")) == 1
    assert not bench.store.lessons()

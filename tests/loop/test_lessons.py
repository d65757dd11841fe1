"""Lessons of a run: what rests on them decides their credit, and the referee's tools teach too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from agentforge.agents import Draft, Past, Task
from agentforge.knowledge import KnowledgeBase
from agentforge.loop import RunLog
from agentforge.loop._base import SearchedBottleneck
from agentforge.loop.lessons import MOST_FINDINGS, learned
from agentforge.schema import Attempt, Budget, Context, Lesson, Plan, Strategy
from agentforge.search import BestFirst
from agentforge.store import Store

from .conftest import Bench
from .scripted import NullKnowledge, ScriptedCoder, bottleneck, context_for, profile

pytestmark = pytest.mark.parametrize("bench", [Budget(attempts=12)], indirect=True)


def shown(bench: Bench, script: list[dict[str, object]]) -> dict[int, tuple[str, float, int, bool]]:
    region = bottleneck("a", sol_s=1e-6)
    bench.policy = BestFirst(starts=99)
    bench.search(profile(region), {"a": script}, patience=99)
    run_log = RunLog(bench.store, bench.store.get_run("run"))
    known = {region.definition.hash: SearchedBottleneck(region, context_for(region), 0.5)}
    return {x.number: (x.text, x.credit, x.used, x.finding) for x in learned(run_log, known)}


def test_what_an_attempt_gains_is_credit_of_the_lessons_that_it_rests_on(bench: Bench) -> None:
    script = [
        {"speed": 1.5, "lesson": "vectors help"},
        {"speed": 1.2, "lesson": "threads hurt"},
        {"speed": 3.0, "uses": (1,)},
        {"speed": 4.0, "uses": (1,)},
        {"speed": 0.5, "uses": (1, 2, 9)},
    ]
    found = shown(bench, script)
    assert set(found) == {1, 2}
    (_, first, used, _), (_, second, once, _) = found[1], found[2]
    assert (used, once) == (3, 1)
    assert first > 0 > second
    assert second == pytest.approx(-0.05)  # reward of 0.5x is 0.15, and these are starts: 0.2 less


def test_a_repair_gives_back_what_its_failure_took(bench: Bench) -> None:
    script = [
        {"speed": 1.5, "lesson": "vectors help"},
        {"speed": 1.0, "uses": (1,), "status": "CRASHED"},
        {"speed": 2.0, "uses": (1,)},
    ]
    found, attempts = shown(bench, script), bench.store.attempts("run")
    assert attempts[2].parent == attempts[1].id
    whole = shown_reward(attempts[2], bench) - 0.2
    assert found[1][1:3] == (pytest.approx(whole), 2)


def shown_reward(attempt: Attempt, bench: Bench) -> float:
    from agentforge.search import reward_of

    evaluation = bench.store.get_evaluation(attempt.evaluation or "")
    return reward_of(evaluation, limit=bottleneck("a").time_s / 1e-6)


def test_findings_of_the_referees_tools_are_lessons(bench: Bench) -> None:
    script = [
        {"speed": 1.0, "status": "CRASHED", "error": f"data race between  threads {i // 2}"}
        for i in range(10)
    ]
    found = shown(bench, [*script, {"speed": 1.5, "lesson": "one thread is enough"}])
    texts = [text for text, *_ in found.values()]
    assert texts == [*(f"data race between threads {i}" for i in range(1, 5)), "one thread is enough"]
    assert [finding for *_, finding in found.values()] == [True] * MOST_FINDINGS + [False]
    assert bench.knowledge.lessons == [("strategy-10", "one thread is enough")], "a finding is not kept"


def test_equal_machine_code_is_not_measured_again(bench: Bench) -> None:
    script = [
        {"speed": 1.5, "code": "one"},
        {"speed": 1.6, "code": "one"},
        {"speed": 1.7, "code": "two"},
        {"speed": 1.8},
        {"speed": 1.9},
    ]
    shown_after = bench.search(
        profile(bottleneck("a", sol_s=1e-6)), {"a": script}, patience=99, coder="openai:m", children=1
    )
    attempts = bench.store.attempts("run")
    assert shown_after.attempts == len(attempts) == 5
    assert "machine code is that of attempt 1" in attempts[1].error
    assert [bool(a.evaluation) for a in attempts] == [True, False, True, True, True]
    measured = {solution for solution, _ in bench.referee.evaluations}
    assert attempts[1].solution not in measured


def test_machine_code_that_the_referee_could_not_judge_is_measured(bench: Bench) -> None:
    script = [{"speed": 1.5, "code": "one", "status": "HARNESS_ERROR"}, {"speed": 1.6, "code": "one"}]
    region = profile(bottleneck("a", sol_s=1e-6))
    assert len(bench.search(region, {"a": script}, patience=99, coder="openai:m").wins) == 1


def test_what_the_playbook_writes_is_not_compared(bench: Bench) -> None:
    script = [{"speed": 1.5, "code": "one"}, {"speed": 1.6, "code": "one"}]
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {"a": script}, patience=99)
    assert all(a.evaluation for a in bench.store.attempts("run"))


def test_a_lesson_that_is_refuted_after_a_resume_is_taken_back(bench: Bench) -> None:
    bench.knowledge = KnowledgeBase(bench.store, [])  # type: ignore[assignment]
    region, script = profile(bottleneck("a", sol_s=1e-6)), [{"speed": 2.0, "lesson": "one thread is enough"}]
    bench.store.update_run("run", budget=Budget(attempts=1))
    bench.search(region, {"a": script}, patience=99)
    (mine,) = taught(bench)
    assert mine.text == "one thread is enough"
    told = mine.model_copy(update={"id": "over MCP", "text": "a person's"})
    bench.store.save_lesson(told)
    bench.store.save_lesson(mine.model_copy(update={"id": "another run's", "run": "other"}))

    bench.store.update_run("run", budget=Budget(attempts=2))
    later = [*script, {"speed": 3.0, "lesson": "threads gain", "refutes": "1"}]
    bench.search(region, {"a": later}, patience=99)
    found = {(lesson.run, lesson.text) for lesson in taught(bench)}
    assert found == {("run", "threads gain"), ("run", "a person's"), ("other", "one thread is enough")}


def test_a_lesson_whose_evaluation_is_in_another_database_ends_no_run(bench: Bench) -> None:
    """As in a replay: the knowledge base that it teaches has no verdicts."""
    with Store(f"sqlite:///{bench.folder / 'replayed.db'}") as other:
        bench.knowledge = KnowledgeBase(other, ())  # type: ignore[assignment]
        script = {"a": [{"speed": 2.0, "lesson": "one thread is enough"}]}
        assert len(bench.search(profile(bottleneck("a")), script).wins) == 1
        assert not other.lessons() and not taught(bench)


def taught(bench: Bench) -> list[Lesson]:
    return [lesson for found in bench.store.lessons().values() for lesson in found]


class Taught(NullKnowledge):
    """Knows a strategy with a lesson of the run that asks and one of another run."""

    def retrieve(
        self, context: Context, languages: Sequence[str], device: str, *, after: str = ""
    ) -> tuple[Strategy, ...]:
        lessons = tuple(
            Lesson(
                id=run, strategy="fuse", context=context, evaluation="e", text=run, speedup=2.0, author="me",
                run=run, time=datetime(2026, 1, 2, tzinfo=UTC),
            )
            for run in ("run", "other")
        )  # fmt: skip
        return (Strategy(id="fuse", title="Fuse", summary="s", lessons=lessons),)


class Reading(ScriptedCoder):
    """Keeps the lessons of the strategies that it is shown."""

    def __init__(self) -> None:
        self.read: list[list[str]] = []

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        self.read.append([lesson.text for strategy in task.strategies for lesson in strategy.lessons])
        return super().code(task, plan, parent)


def test_a_run_does_not_read_its_own_lessons_as_knowledge(bench: Bench) -> None:
    """They were not there before it was interrupted, and it would ask its models something else."""
    bench.knowledge, bench.coder = Taught(), (coder := Reading())
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {"a": [{"speed": 2.0}]}, patience=99)
    assert coder.read == [["other"]]

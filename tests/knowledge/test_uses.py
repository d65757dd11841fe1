"""Counters of the cards that agents were shown: they come from the attempts, each of which counts once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentforge.agents import Past, Task
from agentforge.knowledge import KnowledgeBase, card_uses
from agentforge.loop.tasks import with_cards
from agentforge.schema import (
    COPY_OF,
    REUSED,
    Attempt,
    AttemptStatus,
    Critique,
    Evaluation,
    EvaluationStatus,
    Interval,
    Plan,
    Solution,
)
from agentforge.store import Store
from tests.cli.conftest import Run, home, run
from tests.loop.conftest import Bench, bench
from tests.loop.scripted import ScriptedJudge, ScriptedPlanner, bottleneck, profile
from tests.store import nouns

__all__ = ["bench", "home", "run"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/a.db") as opened:
        opened.create_run(nouns.run())
        yield opened


def attempt(
    store: Store, number: int, speedup: float | None, served: str, diagnosis: str, parent: str | None = None
) -> None:
    """An attempt whose planner was shown some cards."""
    solution = nouns.solution(f"{number}")
    status = EvaluationStatus.TIMEOUT if speedup is None else EvaluationStatus.PASSED
    evaluation = nouns.evaluation(solution, speedup=speedup, status=status)
    KnowledgeBase(store, []).record("trick", nouns.context(), solution, evaluation)
    made = Attempt(
        id=f"a{number}", run=nouns.run().id, bottleneck="b", number=number, status=AttemptStatus.DONE,
        parent=parent,
        plan=Plan(strategy="trick", diagnosis=diagnosis), solution=solution.hash,
        evaluation=store.save_evaluation(evaluation),
    )  # fmt: skip
    for _ in range(2):  # a resumed run keeps it again
        store.save_attempt(with_cards(made, served.split()))


def fill(store: Store) -> None:
    attempt(store, 1, 2.0, "trick wide-rows", "As wide-rows says.")
    attempt(store, 2, 8.0, "trick wide-rows", "As wide-rows-elsewhere says.")
    attempt(store, 3, None, "trick", "")
    attempt(store, 4, 3.0, "", "wide-rows was not shown")


def test_each_attempt_counts_once(store: Store) -> None:
    fill(store)
    uses = card_uses(store)
    assert set(uses) == {"trick", "wide-rows"}
    wide, trick = uses["wide-rows"], uses["trick"]
    assert (wide.served, wide.cited, wide.verified) == (2, 1, 2)
    assert wide.gain == pytest.approx(math.sqrt(2.0 * 8.0))
    assert wide.gain_if_cited == pytest.approx(2.0)
    assert (trick.served, trick.cited, trick.verified) == (3, 3, 2), "a plan cites its strategy"


def test_what_came_before_is_no_gain_of_a_card(store: Store) -> None:
    """fuse (3x) <- a change that fails <- its repair (3.1x), which the card was served to."""
    attempt(store, 1, 3.0, "", "")
    attempt(store, 2, None, "", "", parent="a1")
    attempt(store, 3, 3.1, "low-occupancy", "As low-occupancy says.", parent="a2")
    use = card_uses(store)["low-occupancy"]
    assert (use.served, use.cited, use.verified) == (1, 1, 1)
    assert use.gain == use.gain_if_cited == pytest.approx(3.1 / 3.0)


def test_a_verdict_that_another_run_got_counts_too(store: Store) -> None:
    """The copy's outcome is that of the original."""
    attempt(store, 1, 2.0, "", "")
    (first,) = store.attempts(nouns.run().id)
    found = store.get_evaluation(first.evaluation or "")
    notes = {REUSED: "an evaluation", COPY_OF: first.evaluation}
    environment = found.environment.model_copy(update={"notes": notes})
    copy = found.model_copy(update={"environment": environment})
    other = nouns.run("20260103-0304-llama-7f3b")
    store.create_run(other)
    KnowledgeBase(store, []).record("trick", nouns.context(), nouns.solution("1"), copy, run=other.id)
    later = first.model_copy(
        update={"id": "a2", "run": other.id, "evaluation": store.save_evaluation(copy, other.id)}
    )
    store.save_attempt(with_cards(later, ["wide-rows"]))
    use = card_uses(store)["wide-rows"]
    assert (use.served, use.verified, use.gain) == (1, 1, pytest.approx(2.0))


def test_a_gain_is_over_the_baseline_that_both_were_measured_against(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 is 1.05x over torch.compile, which 1 was not measured against."""
    attempt(store, 1, 1.7, "", "")
    measured = nouns.evaluation

    def compiled(*args: Any, **options: Any) -> Evaluation:
        found = measured(*args, **options)
        assert found.performance is not None
        found.performance.baseline_s["compile"] = 1.05
        found.performance.speedup["compile"] = Interval(point=1.05, low=1.0, high=1.1)
        return found

    monkeypatch.setattr(nouns, "evaluation", compiled)
    attempt(store, 2, 2.1, "low-occupancy", "", parent="a1")
    use = card_uses(store)["low-occupancy"]
    assert (use.verified, use.gain) == (1, pytest.approx(2.1 / 1.7))


def test_the_commands(run: Run, home: Path) -> None:
    (home / "playbook").mkdir(parents=True)
    card = "---\nid: wide-rows\nkind: avoid\ntitle: T\nsummary: S.\nsource: A paper, 2020\n---\n"
    (home / "playbook" / "wide-rows.md").write_text(card)
    assert "No language model was shown this card." in run("kb", "show", "wide-rows").out
    with Store(f"sqlite:///{home}/agentforge.db") as store:
        store.create_run(nouns.run())
        fill(store)
    shown = run("kb", "show", "wide-rows").out
    assert "Served to 2 attempts, cited by 1; 2 of these are verified and gained 4x in the mean" in shown
    assert run("kb", "show", "trick", "--json").json["use"]["served"] == 3
    assert run("kb", "list", "--json").json["uses"]["wide-rows"]["cited"] == 1
    row = next(line for line in run("kb", "list", "--kind", "avoid").out.splitlines() if "wide-rows" in line)
    assert " 2 " in row and " 1 " in row


class Reading(ScriptedPlanner):
    """A planner that is shown a card, and hands on what the judge was shown with the judge's change."""

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        plan = super().plan(task, parent)
        task.served.add("wide-rows")
        if plan is None or parent is None or parent.critique is None:
            return plan
        task.served.update(parent.critique.served)
        return plan.model_copy(update={"change": parent.critique.cause})


class Citing(ScriptedJudge):
    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: object) -> Critique:
        task.served.add("low-occupancy")
        return Critique(kind="optimize", cause="low-occupancy: raise it")


def test_a_run_counts_what_its_agents_were_shown(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.loop import conftest

    monkeypatch.setattr(conftest, "ScriptedPlanner", Reading)
    monkeypatch.setattr(conftest, "ScriptedJudge", Citing)
    script = {"b": [{"speed": 1.5}, {"speed": 1.6}, {"speed": 1.7}]}
    bench.search(profile(bottleneck("b")), script)
    uses = card_uses(bench.store)
    assert (uses["wide-rows"].served, uses["wide-rows"].cited) == (3, 0)
    built = [a for a in bench.store.attempts("run") if a.parent]
    assert built
    assert uses["low-occupancy"].served == uses["low-occupancy"].cited == len(built)
    bench.search(profile(bottleneck("b")), script)
    assert card_uses(bench.store) == uses, "a resumed run counts nothing again"

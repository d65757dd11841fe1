"""What an item's run may spend and know."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from agentforge.campaigns import worker as workers
from agentforge.campaigns.item import local_file, run_item, visited, without
from agentforge.campaigns.suites import Selection, open_suite
from agentforge.campaigns.suites._base import file_problem
from agentforge.config import Settings, load_settings
from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.loop import RunLog
from agentforge.runs import ModelStart
from agentforge.runs.pipeline import RunPipeline
from agentforge.schema import (
    Arm,
    Attempt,
    AttemptStatus,
    Budget,
    LLMCall,
    NativeVerdict,
    Progress,
    RunStatus,
    SuiteProblem,
    TryOutcome,
    UsageError,
)
from agentforge.store import Store
from tests.campaigns.conftest import finish
from tests.store import nouns

ONE = Budget(minutes=2.0, attempts=5)
LONG = [
    "langgraph.graph",
    "torch",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch.export._trace",
    "agentforge.referee.referee",
    "agentforge.profiling.worker",
    "agentforge.stitch.stitch",
]
"""Modules that take long to import."""


def test_each_visit_has_the_budget_once_more() -> None:
    assert visited(ONE, 1) == ONE
    assert visited(ONE, 3) == Budget(minutes=6.0, attempts=15)


@pytest.mark.parametrize(
    ("status", "used", "minutes"),
    [
        (RunStatus.FINISHED, 90.0, 4.0),
        (RunStatus.FINISHED, 600.0, 12.0),  # a verdict took it beyond its minutes
        (RunStatus.SEARCHING, 600.0, 12.0),  # its worker died in the second visit, which had 12 minutes
    ],
)
def test_a_visit_of_a_run_that_took_longer_has_time_left(
    status: RunStatus, used: float, minutes: float
) -> None:
    had = Budget(minutes=2.0 if status is RunStatus.FINISHED else 12.0)
    run = nouns.run(status=status, seconds_used=used, budget=had)
    assert visited(ONE, 2, run) == Budget(minutes=minutes, attempts=10)


def test_stitching_gives_the_next_visit_no_further_minutes() -> None:
    run = nouns.run(status=RunStatus.FINISHED, seconds_used=600.0, stitched_s=450.0, budget=ONE)
    assert visited(ONE, 2, run) == Budget(minutes=4.5, attempts=10)


def test_runs_that_were_given_up_count_against_the_share() -> None:
    share = Budget(minutes=2.0, dollars=1.0)
    assert without(ONE, 5.0) == ONE, "there is no limit"
    assert without(share, 0.0) == share
    assert without(share, 0.75) == Budget(minutes=2.0, dollars=0.25)
    with pytest.raises(UsageError, match=r"spent 1\.00 dollars, and its share of --dollars is 1\.00"):
        without(share, 1.0)


def test_an_arms_run_does_not_know_what_the_other_arm_found(store: Store) -> None:
    own = next(item.run for item in store.campaign_items("night") if item.arm == "base" and item.run)
    names = ("target", "meter", "device", "agents", "policy", "allocator", "out")
    unused: dict[str, Any] = dict.fromkeys(names)
    log = RunLog(store, store.get_run(own))
    pipeline = RunPipeline(run_log=log, settings=Settings(), **unused)
    scope = pipeline._knowledge_store()._scope
    assert scope is not None and scope == store.scope_of(own)
    assert (scope.arm, scope.before) == ("base", store.get_campaign("night").created)


def test_a_result_without_kernels_names_the_attempt_that_was_not_judged(store: Store) -> None:
    names = ("target", "meter", "device", "agents", "policy", "allocator", "out")
    unused: dict[str, Any] = dict.fromkeys(names)
    log = RunLog(store, store.get_run("run-1"))
    pipeline = RunPipeline(run_log=log, settings=Settings(), **unused)
    assert pipeline._unjudged() == ""
    for number, status in enumerate((AttemptStatus.DONE, AttemptStatus.CODED), 1):
        made = Attempt(id=log.attempt_id(number), run="run-1", bottleneck="b", number=number, status=status)
        log.put(made)
    assert pipeline._unjudged() == "; attempt 2 was not judged before the budget ended"


def test_an_item_whose_run_was_removed_begins_anew_beside_its_modules(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "s.pytorch"
    folder.mkdir()
    (folder / "_helper.py").write_text("")
    (folder / "good.py").write_text("import _helper\n")
    problems = list(open_suite(f"folder:{folder}").problems(Selection()))
    settings, begun = load_settings(), list[str]()

    def start(what: ModelStart, *args: Any, **options: Any) -> SimpleNamespace:
        begun.append(what.spec)
        return SimpleNamespace(run=SimpleNamespace(id="new"), headline="")

    monkeypatch.setattr("agentforge.campaigns.item.start_run", start)
    with Store(settings.url) as store:
        store.create_campaign(nouns.campaign(1)[0], problems)
        item = store.take_item("night", "host:1", 600)
        assert item is not None
        gone = item.model_copy(update={"run": "removed", "visits": 2})
        found = run_item({"item": gone.model_dump(mode="json"), "overrides": [], "limit_s": 60.0}, print)
    assert (found["run"], begun) == ("new", [str(folder / "good.py")])


def test_a_run_of_another_device_is_given_up_and_its_dollars_count(
    home: Path, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, seen = file_problem(problems / "good.py", identifier="good"), list[float | None]()
    arms, budget = (Arm(name="llm", agent="openai:m"),), Budget(minutes=1.0, dollars=1.0)

    def start(_: ModelStart, settings: Settings, **options: Any) -> SimpleNamespace:
        seen.append(settings.budget.dollars)
        return SimpleNamespace(run=SimpleNamespace(id="new"), headline="")

    monkeypatch.setattr("agentforge.campaigns.item.start_run", start)
    with Store(load_settings().url) as store:
        store.create_campaign(nouns.campaign(1, arms=arms, budget=budget)[0], [problem])
        first = store.take_item("night", "host:1", 600)
        assert first is not None
        store.create_run(nouns.run("first", device="the GPU of another machine with this name"))
        call = {"run": "first", "role": "coder", "model": "openai:m", "prompt": "p", "status": "answered"}
        store.save_call(LLMCall.model_validate({**call, "key": "k", "dollars": 0.75, "time": nouns.NOW}))
        store.attach_run(first, "first")
        store.end_item(first, TryOutcome.RELEASED)
        item = store.take_item("night", "host:1", 600)
        assert item is not None and item.run == "first"
        found = run_item({"item": item.model_dump(mode="json"), "overrides": [], "limit_s": 60.0}, print)
    assert (found["run"], seen) == ("new", [0.25])


LATE, TOLERANCE = "no time was left for the task's own checker", "the suite's own tolerance"


@pytest.mark.parametrize(
    ("suite", "native", "said"),
    [
        ("gpu-mode:/x", {"checker": True}, ("the task's own checker", LATE)),
        ("sol:/x", {"tolerance": {"max_atol": 1e-3}}, (TOLERANCE, LATE)),
        (
            "sol:/x",  # as an earlier version kept it
            {"tolerance": {"max_atol": None}},
            (TOLERANCE, f"{TOLERANCE} cannot be read: Input should be a valid number"),
        ),
        ("flashinfer:/x", {"tolerance": {"max_atol": 1e-3}}, None),
    ],
)
def test_a_result_stays_if_no_time_is_left_for_the_tasks_own_checker(
    home: Path,
    problems: Path,
    monkeypatch: pytest.MonkeyPatch,
    suite: str,
    native: dict[str, Any],
    said: tuple[str, str] | None,
) -> None:
    problem = file_problem(problems / "good.py", identifier="good")
    with Store(load_settings().url) as store:
        checked = problem.model_copy(update={"native": native})
        store.create_campaign(nouns.campaign(1, suite=suite)[0], [checked])
        store.save_target(nouns.target().model_copy(update={"definition": nouns.definition()}))
        item = store.take_item("night", "host:1", 600)
        assert item is not None

        def start(*_: Any, **options: Any) -> SimpleNamespace:
            finish(store, "first", speedup=3.0)
            return SimpleNamespace(run=SimpleNamespace(id="first"), headline="3x")

        monkeypatch.setattr("agentforge.campaigns.item.start_run", start)
        found = run_item({"item": item.model_dump(mode="json"), "overrides": [], "limit_s": 1e-3}, print)
        verdict = store.get_record("first", NativeVerdict)
    assert found == {"run": "first", "headline": "3x"}
    assert (verdict and (verdict.criterion, verdict.message)) == said
    assert verdict is None or verdict.accepted is None


def test_a_file_with_other_ends_of_lines_stays_beside_its_modules(home: Path, problems: Path) -> None:
    file = problems / "good.py"
    file.write_bytes(b"import helpers\r\n")
    assert local_file(file_problem(file, identifier="good"), load_settings()) == file


def test_a_file_that_cannot_be_looked_at_is_copied(home: Path) -> None:
    place = f"/{'x' * 300}/good.py"  # for root, who may enter every folder
    problem = SuiteProblem(id="good", target=place, file=place, source="x = 1\n")
    assert local_file(problem, load_settings()).read_text() == problem.source


@pytest.mark.parametrize(
    ("result", "keeps"),
    [
        ({"speedup": 2.0}, True),
        ({"speedup": 9.0, "weak": True}, True),
        ({"speedup": 9.0, "mode": "compile"}, True),
        ({"speedup": None, "mode": "eager"}, True),
        ({"speedup": 3.0}, False),
        ({"speedup": 4.0}, False),
    ],
)
def test_a_run_that_began_anew_takes_the_result_if_it_is_as_fast(
    home: Path, problems: Path, monkeypatch: pytest.MonkeyPatch, result: dict[str, Any], keeps: bool
) -> None:
    (problems / "broken.py").unlink()
    with Store(load_settings().url) as store:
        store.create_campaign(
            nouns.campaign(1)[0], list(open_suite(f"folder:{problems}").problems(Selection()))
        )
        first = store.take_item("night", "host:1", 600)
        assert first is not None
        finish(store, "first", speedup=3.0)
        store.attach_run(first, "first")
        store.end_item(first, TryOutcome.DONE)
        store.extend_items("night", {first.id: 1})
        item = store.take_item("night", "elsewhere:1", 600)
        assert item is not None and (item.run, item.result_run) == (None, "first")

        def start(*_: Any, **options: Any) -> SimpleNamespace:
            finish(store, "second", **result)
            options["on_event"](Progress(run="second", text="it begins"))
            return SimpleNamespace(run=SimpleNamespace(id="second"), headline="")

        monkeypatch.setattr("agentforge.campaigns.item.start_run", start)
        run_item({"item": item.model_dump(mode="json"), "overrides": [], "limit_s": 60.0}, print)
        store.end_item(item, TryOutcome.DONE)
        found = store.campaign_items("night")[0]
        assert (found.run, found.result_run) == ("second", "first" if keeps else "second")


@pytest.mark.slow
def test_an_item_inherits_all_that_takes_long_to_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANOTHER_SERVER", "1")
    with pytest.raises(ChildFailure):
        run_child(workers._ITEM, {}, timeout_s=60.0)
    found = run_child("tests.isolation.child_tasks:inherited", {"modules": LONG}, timeout_s=60.0)
    assert found["modules"] == LONG
    assert psutil.Process(found["server"]).num_threads() == 1, "a thread does not survive the fork"

"""A verdict is not asked for twice; under other conditions it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentforge.config import RefereeSettings, load_settings
from agentforge.devices import DeviceSpec
from agentforge.loop import RunLog
from agentforge.referee import EvaluationRequest
from agentforge.runs.evaluators import cached
from agentforge.runs.evaluators.cached import CachedEvaluator, conditions_of, shared_conditions
from agentforge.schema import EvaluationStatus, Level, Solution, Workload
from agentforge.store import Store
from agentforge.testing.language import make_solution
from tests.loop.conftest import make_run
from tests.loop.scripted import SimulatedReferee, definition


def solution(speed: float) -> Solution:
    source = f'# {{"speed": {speed}}}\n'
    return make_solution("python", {"model_new.py": source}, definition=definition("a").hash)


def test_each_verdict_is_asked_for_once(tmp_path: Path) -> None:
    referee, workloads = SimulatedReferee(), (Workload(name="w"),)
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        run_log = RunLog(store, store.get_run("run"))
        first = CachedEvaluator(referee, run_log).evaluate(
            EvaluationRequest(definition("a"), workloads, solution(2.0), level=Level.FULL)
        )
        resumed = CachedEvaluator(referee, RunLog(store, store.get_run("run")))
        assert (
            resumed.evaluate(EvaluationRequest(definition("a"), workloads, solution(2.0), level=Level.FULL))
            == first
        )
        assert len(referee.evaluations) == 1
        resumed.evaluate(EvaluationRequest(definition("a"), workloads, solution(2.0), level=Level.QUICK))
        resumed.evaluate(EvaluationRequest(definition("a"), workloads, solution(3.0), level=Level.FULL))
        assert len(referee.evaluations) == 3

        later = make_run("later").model_copy(update={"created": datetime.now(UTC) + timedelta(seconds=1)})
        store.create_run(later)
        CachedEvaluator(referee, RunLog(store, later)).evaluate(
            EvaluationRequest(definition("a"), workloads, solution(2.0), level=Level.FULL)
        )
        assert len(referee.evaluations) == 4


def test_another_run_under_the_same_conditions_asks_for_nothing(tmp_path: Path) -> None:
    request = EvaluationRequest(definition("a"), (Workload(name="w"),), solution(2.0), level=Level.FULL)
    referee, found = SimulatedReferee(), []
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        for name, conditions in (("first", "here"), ("second", "here"), ("third", "there"), ("last", "")):
            store.create_run(make_run(name))
            run_log = RunLog(store, store.get_run(name), conditions=conditions)
            found.append(CachedEvaluator(referee, run_log).evaluate(request))
    assert ["of run first" in one.reused for one in found] == [False, True, False, False]
    assert found[1].performance == found[0].performance
    assert len(referee.evaluations) == 3


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize("level", [Level.QUICK, Level.FULL])
def test_a_referee_that_fails_is_asked_once_more(tmp_path: Path, failures: int, level: Level) -> None:
    referee = SimulatedReferee()

    def fail(*_: object) -> None:
        failed = len(referee.evaluations) < failures
        referee.status = EvaluationStatus.HARNESS_ERROR if failed else None

    referee.before = fail
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        evaluator = CachedEvaluator(referee, RunLog(store, store.get_run("run")))
        found = evaluator.evaluate(
            EvaluationRequest(definition("a"), (Workload(name="w"),), solution(2.0), level=level)
        )
    assert len(referee.evaluations) == 2
    assert (found.passed, evaluator.spoiled) == ((True, False) if failures < 2 else (False, True))


DEVICE = DeviceSpec(kind="cpu", name="CPU", architecture="x86-64", threads=2, memory_bytes=1 << 30)


def test_conditions_differ_with_all_that_decides_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = RefereeSettings(threads=1)
    here = conditions_of(DEVICE, settings)
    assert here and here == conditions_of(DEVICE.model_copy(), settings.model_copy())
    others = [
        conditions_of(DEVICE.model_copy(update={"memory_bytes": 1 << 31}), settings),
        conditions_of(DEVICE.model_copy(update={"toolchain": {"g++": "13"}}), settings),
        conditions_of(DEVICE, settings.model_copy(update={"call_timeout_s": 61.0})),
    ]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    others.append(conditions_of(DEVICE, settings))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    for name, value in (("boot_id", "another"), ("judging_code", "changed"), ("_packages", ["triton-9"])):
        with monkeypatch.context() as patch:
            patch.setattr(cached, name, lambda value=value: value)
            others.append(conditions_of(DEVICE, settings))
    assert len({here, *others}) == 8
    monkeypatch.setattr(cached, "boot_id", lambda: "")
    assert conditions_of(DEVICE, settings) == "", "an unknown machine shares nothing"


def test_who_shares_no_verdicts() -> None:
    def shared(*overrides: str) -> str:
        return shared_conditions(DEVICE, load_settings(overrides))

    assert shared() == conditions_of(DEVICE, load_settings([]).referee) != ""
    for override in ("search.reuse_verdicts=false", "llm.record=x.jsonl", "llm.replay_verdicts=true"):
        assert shared(override) == ""

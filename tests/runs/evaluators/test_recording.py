"""A cassette contains the profile and the verdicts too, and a replay takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentforge.config import load_settings
from agentforge.llm import Measured, Message, Recorder, Replay, Request, append_line, read_measured
from agentforge.referee import Disassembler, EvaluationRequest
from agentforge.runs.evaluators.recording import (
    RecordingEvaluator,
    ReplayedEvaluator,
    is_recorded,
    recorded_profile,
    replayed_cassette,
)
from agentforge.schema import Level, UsageError
from agentforge.testing.language import make_solution
from tests.llm.test_ledger import Fake, said
from tests.loop.scripted import SimulatedReferee, bottleneck, profile

REGION = bottleneck("a")


def request(speed: float, level: Level = Level.FULL) -> EvaluationRequest:
    source = f"# {json.dumps({'speed': speed})}\nclass ModelNew: ...\n"
    solution = make_solution("python", {"model_new.py": source}, definition=REGION.definition.hash)
    return EvaluationRequest(REGION.definition, REGION.workloads, solution, level)


def test_verdicts_are_replayed_in_their_order_and_the_rest_is_measured(tmp_path: Path) -> None:
    path, referee = tmp_path / "run.jsonl", SimulatedReferee()
    recording = RecordingEvaluator(referee, path)
    referee.speed = 2.0
    first = recording.evaluate(request(1.0))
    referee.speed = 3.0
    second = recording.evaluate(request(1.0))
    replay = ReplayedEvaluator(SimulatedReferee(), path)
    assert [replay.evaluate(request(1.0)).performance for _ in range(2)] == [
        first.performance,
        second.performance,
    ]
    assert replay.evaluate(request(1.0)).performance == second.performance, "the last one is given again"
    assert not is_recorded(replay.evaluate(request(4.0)))
    assert not is_recorded(replay.evaluate(request(1.0, Level.QUICK)))


def test_a_replayed_verdict_says_that_it_was_not_measured_here(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    RecordingEvaluator(SimulatedReferee(), path).evaluate(request(2.0))
    found = ReplayedEvaluator(SimulatedReferee(), path).evaluate(request(2.0))
    assert is_recorded(found)
    assert found.environment.notes["recorded"] == "run.jsonl"


@pytest.mark.parametrize("kind", [RecordingEvaluator, ReplayedEvaluator])
def test_a_run_with_a_cassette_sees_machine_code_as_any_run_does(
    tmp_path: Path, kind: type[RecordingEvaluator | ReplayedEvaluator]
) -> None:
    path = tmp_path / "run.jsonl"
    path.touch()
    evaluator = kind(SimulatedReferee(), path)
    solution = make_solution("python", {"model_new.py": '# {"code": "abc"}'}, definition="d")
    assert isinstance(evaluator, Disassembler)
    assert evaluator.machine_code_hash(solution) == "abc"


def test_calls_and_measurements_share_a_cassette(tmp_path: Path) -> None:
    path, measured = tmp_path / "run.jsonl", profile(REGION)
    append_line(path, Measured(profile=measured))
    asked = Request(messages=(Message(role="user", text="hello"),))
    Recorder(Fake(lambda _: said("yes")), path).complete(asked)
    assert Replay(str(path)).complete(asked).text == "yes"
    assert [line.profile for line in read_measured(path)] == [measured]


def test_a_profile_is_taken_for_its_own_target_only(tmp_path: Path) -> None:
    from agentforge.schema import Target

    path = tmp_path / "run.jsonl"
    append_line(path, Measured(profile=profile(REGION).model_copy(update={"target": REGION.definition.hash})))
    settings = load_settings([f"search.{role}=replay:{path}" for role in ("planner", "coder", "judge")])
    assert replayed_cassette(settings) == path
    own = Target(name="t", origin="t.py", definition=REGION.definition, workloads=REGION.workloads)
    assert recorded_profile(settings, own) is not None
    other = own.model_copy(update={"definition": bottleneck("b").definition})
    assert recorded_profile(settings, other) is None


def test_a_missing_cassette_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_measured(tmp_path / "none.jsonl")

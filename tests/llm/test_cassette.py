"""Recording and playing back."""

from __future__ import annotations

import fcntl
import resource
import threading
from pathlib import Path

import pytest

from agentforge.llm import CallFailed, Message, Prices, PromptRefused, Recorder, Replay, Request, Response
from agentforge.schema import UsageError

from .test_ledger import Fake, said


def request(text: str) -> Request:
    return Request(system=("You count.",), messages=(Message(role="user", text=text),))


def failing(_: Request) -> Response:
    raise CallFailed("busy")


def test_what_was_recorded_is_played_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.jsonl"
    answers = iter(["one", "two", "one again"])
    recorder = Recorder(Fake(lambda _: said(next(answers))), path)
    for text in ("a", "b", "a"):
        recorder.complete(request(text))
    with pytest.raises(CallFailed):
        Recorder(Fake(failing), path).complete(request("c"))
    replay = Replay(str(path))
    assert [replay.complete(request(t)).text for t in ("b", "a", "a")] == ["two", "one", "one again"]
    with pytest.raises(CallFailed, match="busy"):
        replay.complete(request("c"))
    with pytest.raises(UsageError, match="fewer times"):
        replay.complete(request("a"))


def test_a_request_that_is_not_held_shows_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Recorder(Fake(lambda _: said()), path).complete(request("first line\nsecond line"))
    with pytest.raises(UsageError) as caught:
        Replay(str(path)).complete(request("first line\nanother line"))
    assert caught.value.shown == "- second line\n+ another line"
    assert "\n" not in str(caught.value)


def test_the_words_that_differ_are_shown_and_numbers_are_none(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Recorder(Fake(lambda _: said()), path).complete(
        request("latency_s = 0.5\nIt took 1.5 ms and is memory-bound by this measure.\n3 of 4 lines follow.")
    )
    with pytest.raises(UsageError) as caught:
        Replay(str(path)).complete(
            request(
                "latency_s = 0.7\nIt took 9.1 ms and is launch-bound by this measure.\n5 of 6 lines follow."
            )
        )
    assert caught.value.shown == "- and is memory-bound by this\n+ and is launch-bound by this"


def test_measured_values_may_differ_and_are_quoted_as_they_are_now(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    answer = '{"evidence": [{"metric": "latency_s", "value": 0.00123}], "lanes": 16, "scale": 0.5}'
    Recorder(Fake(lambda _: said(answer)), path).complete(request("latency_s = 0.00123, lanes 16, x0.5"))
    replayed = Replay(str(path)).complete(request("latency_s = 0.00456, lanes 16, x0.5"))
    assert replayed.parsed == {
        "evidence": [{"metric": "latency_s", "value": 0.00456}],
        "lanes": 16,
        "scale": 0.5,
    }


def test_which_values_were_measured_may_differ_too(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorded = (
        "It is right.\nlatency_s = 0.00123\nsol_fraction = 0.5\n"
        "<measured>\nNotes of the referee: measure again\n</measured>\nGo on."
    )
    Recorder(Fake(lambda _: said('{"value": 0.00123}')), path).complete(request(recorded))
    replay = Replay(str(path))
    with pytest.raises(UsageError, match="does not contain"):
        replay.complete(request("It is wrong.\nlatency_s = 0.00456\nGo on."))
    asked = "It is right.\nlatency_s = 0.00456\nspeedup.eager = 1e-05\nGo on."
    assert replay.complete(request(asked)).parsed == {"value": 0.00456}


@pytest.mark.parametrize("content", ["not json\n", '{"spec": "x"}\n', "\udcff"])
def test_what_is_no_cassette_is_said_to_be_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match="cassette"):
        Replay(str(path))
    with pytest.raises(UsageError, match="cannot be read"):
        Replay(str(tmp_path / "none.jsonl"))


def test_a_replay_costs_nothing_and_a_budget_of_dollars_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Recorder(Fake(lambda _: said("one")), path).complete(request("a"))
    price = Prices().of_model(Replay(str(path)))
    assert price is not None
    assert price.most(1000, 1000) == 0.0


def test_texts_may_have_any_ends_of_lines(tmp_path: Path) -> None:
    path, text = tmp_path / "run.jsonl", "a\x85b\u2028c\u2029d\x0b\x0ce\r\nf"
    Recorder(Fake(lambda _: said(text)), path).complete(request(text))
    assert Replay(str(path)).complete(request(text)).text == text


def test_what_a_kill_ended_in_the_middle_of_a_line_costs_that_line_alone(tmp_path: Path) -> None:
    path, answers = tmp_path / "run.jsonl", {"a": "one", "b": 'zw\\ei "中文"\n'}
    recorder = Recorder(Fake(lambda asked: said(answers[asked.messages[0].text])), path)
    recorder.complete(request("a"))
    first = path.read_bytes()
    recorder.complete(request("b"))
    whole = path.read_bytes()
    for size in range(len(first), len(whole)):
        path.write_bytes(whole[:size])
        assert Replay(str(path)).complete(request("a")).text == "one"
        recorder.complete(request("b"))
        replay = Replay(str(path))
        assert [replay.complete(request(text)).text for text in "ab"] == [*answers.values()]
        assert path.read_bytes().startswith(whole[:size]), "what was there stays"


def test_a_full_disk_leaves_the_cassette_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorder = Recorder(Fake(lambda _: said("x" * 50_000)), path)
    recorder.complete(request("a"))
    before, (soft, hard) = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20_000, hard))  # as if the disk had no more room
    try:
        with pytest.raises(UsageError, match="cannot be written"):
            recorder.complete(request("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before


def test_another_process_that_writes_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorder = Recorder(Fake(lambda _: said()), path)
    with path.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        writing = threading.Thread(target=lambda: recorder.complete(request("a")))
        writing.start()
        writing.join(0.3)
        assert writing.is_alive() and not path.read_bytes()
    writing.join()
    assert Replay(str(path)).complete(request("a")).text == "ok"


def test_a_refusal_is_replayed_as_one(tmp_path: Path) -> None:
    """The ledger counts it as no outage."""

    def refusing(_: Request) -> Response:
        raise PromptRefused("too long")

    path = tmp_path / "run.jsonl"
    with pytest.raises(PromptRefused):
        Recorder(Fake(refusing), path).complete(request("c"))
    with pytest.raises(PromptRefused, match="too long"):
        Replay(str(path)).complete(request("c"))

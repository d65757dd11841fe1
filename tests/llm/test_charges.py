"""What calls are charged that end without an answer, at the real SDKs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agentforge.llm import CallFailed, Ledger, Recorder, Tokens
from agentforge.schema import UsageError
from agentforge.store import Store
from tests.loop.conftest import make_run

from .conftest import Opener
from .server import LLMServer, Reply
from .test_providers import ask


@pytest.mark.parametrize("fault", ["cut", "stall", "error-event", "garbage"])
def test_an_answer_that_breaks_off_may_have_taken_all_that_it_was_allowed(
    opened: Opener, server: LLMServer, fault: str
) -> None:
    """The server counts reasoning that its stream does not contain."""
    server.then(Reply("a few words " * 5, fault=fault, reasoning=400))
    with pytest.raises(CallFailed) as caught:
        opened(timeout_s=0.5).complete(ask())
    assert caught.value.tokens.output == 512
    assert caught.value.tokens.input > 0
    assert not caught.value.tokens.known


def test_an_answer_past_the_deadline_may_have_taken_all_that_it_was_allowed(
    opened: Opener, server: LLMServer
) -> None:
    server.then(Reply("a few words " * 5, fault="stall", reasoning=400))
    with pytest.raises(CallFailed) as caught:
        opened(timeout_s=50.0, deadline_s=0.5).complete(ask())
    assert caught.value.tokens.output == 512


@pytest.mark.parametrize("api", ["responses"], indirect=True)
@pytest.mark.parametrize("usage", [True, False])
def test_a_response_that_failed_is_charged_what_its_account_says(
    opened: Opener, server: LLMServer, usage: bool
) -> None:
    server.then(Reply("a few words " * 5, fault="failed", reasoning=400, usage=usage))
    with pytest.raises(CallFailed, match="injected failure") as caught:
        opened().complete(ask())
    tokens = caught.value.tokens
    assert tokens.known is usage
    if usage:
        assert (tokens.input, tokens.output) == server.billed[0]
    else:
        assert tokens.output == 512


@pytest.mark.parametrize("fault", ["", "cut"])
def test_a_call_that_cannot_be_recorded_was_paid(
    opened: Opener, server: LLMServer, tmp_path: Path, fault: str
) -> None:
    (tmp_path / "file").touch()
    model = Recorder(opened(), tmp_path / "file" / "run.jsonl")
    server.then(Reply("a few words " * 5, fault=fault))
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        with pytest.raises(UsageError, match="cannot be written"):
            Ledger(store, "run").ask(model, ask(), role="coder")
        (call,) = store.calls("run")
    assert call.status == "failed", "a resumed run asks again, so that the cassette has all answers"
    assert (call.tokens_out == 512) if fault else ((call.tokens_in, call.tokens_out) == server.billed[0])


def test_a_rate_limit_that_outlasts_the_deadline_is_not_waited_for(opened: Opener, server: LLMServer) -> None:
    server.then(Reply(fault="429", message="Slow down", headers={"retry-after": "3600"}))
    started = time.monotonic()
    with pytest.raises(CallFailed, match="too many calls") as caught:
        opened(retries=2, deadline_s=60.0).complete(ask())
    assert time.monotonic() - started < 30
    assert caught.value.tokens == Tokens()
    assert len(server.seen) == 1


@pytest.mark.slow
def test_rate_limits_until_the_deadline_are_called_so_and_cost_nothing(
    opened: Opener, server: LLMServer
) -> None:
    server.script = lambda _: Reply(fault="429", headers={"retry-after": "0.9"})
    with pytest.raises(CallFailed, match=r"too many calls or too busy, also after 1\.5 s") as caught:
        opened(retries=5, deadline_s=1.5).complete(ask())
    assert caught.value.tokens == Tokens(), "nothing was accepted"
    assert len(server.seen) == 2


def test_a_silent_endpoint_is_paid_nothing(opened: Opener, server: LLMServer) -> None:
    server.delay_s = 2.0
    server.then("late")
    with pytest.raises(CallFailed, match="had not begun to answer") as caught:
        opened(timeout_s=50.0, deadline_s=0.4).complete(ask())
    assert caught.value.tokens == Tokens()


def test_an_endpoint_that_is_too_busy_to_begin_is_paid_nothing(opened: Opener, server: LLMServer) -> None:
    server.then(
        Reply("a few words", fault="error-first"), Reply("a few words", fault="error-first", message="Boom")
    )
    for _ in range(2):
        with pytest.raises(CallFailed) as caught:
            opened().complete(ask())
        assert caught.value.tokens == Tokens()

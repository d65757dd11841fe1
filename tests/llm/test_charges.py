"""What calls are charged that end without an answer, at the real SDKs."""

from __future__ import annotations

import pytest

from agentforge.llm import CallFailed

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

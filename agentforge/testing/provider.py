"""The contract of a provider of language models, as tests that every implementation inherits.

class TestMyProvider(ProviderContract):
    @pytest.fixture
    def opened(self) -> Opened:
        def open_(*says: Says) -> LanguageModel: ...  # a model whose endpoint gives these answers in turn
        return open_
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from agentforge.llm import CallFailed, LanguageModel, Message, Request, is_spec

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Says:
    """What the endpoint does with one call."""

    text: str = ""
    stop: str = "end"
    """`end`, `length` or `refusal`."""
    fails: bool = False
    """The endpoint is overloaded: this call brings no answer."""


Opened = Callable[..., LanguageModel]
"""Opens a model whose endpoint gives the `Says` arguments in turn."""


def make_request(text: str = "How many are they?", **changes: object) -> Request:
    """A request with a system prompt of two parts."""
    fields = {"system": ("You count.", "Be brief."), "messages": (Message(role="user", text=text),)}
    return Request.model_validate({**fields, "max_tokens": 512, **changes})


class ProviderContract:
    """Contract of `LanguageModel`; needs a fixture `opened`."""

    def test_says_what_it_is(self, opened: Opened) -> None:
        model = opened()
        assert is_spec(model.spec)
        assert model.model
        assert model.endpoint

    def test_an_answer_arrives_whole_with_its_account(self, opened: Opened) -> None:
        text = "Grüße, 世界: " + "seven words are in this long answer " * 5
        response = opened(Says(text)).complete(make_request())
        assert response.text == text
        assert response.stop == "end"
        assert response.tokens.input > 0
        assert response.tokens.output > 0

    def test_an_answer_in_a_schema(self, opened: Opened) -> None:
        response = opened(Says('{"n": 7}')).complete(make_request(answer_schema=SCHEMA))
        assert response.parsed == {"n": 7}

    def test_a_conversation_goes_on(self, opened: Opened) -> None:
        model = opened(Says("six"), Says("seven"))
        request = make_request()
        first = model.complete(request)
        second = model.complete(request.then(first.text, "Count again."))
        assert (first.text, second.text) == ("six", "seven")

    def test_a_cut_answer_says_so(self, opened: Opened) -> None:
        assert opened(Says("sev", stop="length")).complete(make_request()).stop == "length"

    @pytest.mark.parametrize("says", [Says(fails=True), Says("I decline.", stop="refusal")])
    def test_a_call_without_an_answer_is_data_in_one_sentence(self, opened: Opened, says: Says) -> None:
        with pytest.raises(CallFailed) as caught:
            opened(says).complete(make_request())
        assert str(caught.value)
        assert "\n" not in str(caught.value)

    def test_the_next_call_works_after_a_failed_one(self, opened: Opened) -> None:
        model = opened(Says(fails=True), Says("seven"))
        with pytest.raises(CallFailed):
            model.complete(make_request())
        assert model.complete(make_request("Again?")).text == "seven"

    def test_threads_may_share_it(self, opened: Opened) -> None:
        texts = [f"answer {number}" for number in range(4)]
        model = opened(*map(Says, texts))
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: model.complete(make_request()).text, texts))
        assert sorted(found) == texts

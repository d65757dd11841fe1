"""The real SDKs against a server that speaks their wire formats and fails on demand."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from pathlib import Path

import pytest

from agentforge.config import LLMSettings
from agentforge.llm import (
    CallFailed,
    LanguageModel,
    Ledger,
    Message,
    OutOfTime,
    PromptRefused,
    Request,
    Tokens,
    open_model,
)
from agentforge.llm.providers.endpoint import TOKEN_CHARACTERS, Heard, counted
from agentforge.schema import Budget, OutageError, ProviderError, UsageError
from agentforge.store import Store
from tests.loop.conftest import make_run

from .conftest import KEY, Opener
from .server import MALFORMED, LLMServer, Reply

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def ask(text: str = "hello", **changes: object) -> Request:
    fields = {"system": ("You count.", "The words."), "messages": (Message(role="user", text=text),)}
    return Request.model_validate({**fields, "max_tokens": 512, **changes})


@pytest.mark.slow
def test_an_answer_arrives_whole_with_its_account(opened: Opener, server: LLMServer) -> None:
    text = "Grüße, 世界: " + "x" * 200
    server.then(Reply(text, cached=8, reasoning=5))
    response = opened().complete(ask())
    assert response.text == text
    assert response.stop == "end"
    assert (response.tokens.input, response.tokens.output) == server.billed[0]
    assert response.tokens.cached == 8
    assert response.tokens.reasoning == 5
    assert response.tokens.known


def test_the_request_is_what_the_vendor_documents(opened: Opener, server: LLMServer, api: str) -> None:
    server.then('{"n": 1}')
    opened().complete(ask(answer_schema=SCHEMA, effort="low", seed=7))
    body = server.seen[0].body
    assert body["stream"] is True
    if api == "messages":
        assert [p["text"] for p in body["system"]] == ["You count.", "The words."]
        assert all(p["cache_control"] == {"type": "ephemeral"} for p in body["system"])
        assert body["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
        assert body["max_tokens"] == 512
    elif api == "responses":
        assert body["instructions"] == "You count.\n\nThe words."
        assert body["reasoning"] == {"effort": "low"}
        assert body["text"]["format"]["schema"] == SCHEMA
        assert body["max_output_tokens"] == 512
        assert body["store"] is False
    else:
        assert body["messages"][0] == {"role": "system", "content": "You count.\n\nThe words."}
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
        assert body["seed"] == 7
        assert body["stream_options"] == {"include_usage": True}


def test_an_endpoint_without_schemas_is_told_in_words_and_remembered(
    opened: Opener, server: LLMServer
) -> None:
    model = opened()
    server.then(Reply(fault="no-schema"), 'Here:\n```json\n{"n": 3}\n```', '{"n": 4}')
    assert model.complete(ask(answer_schema=SCHEMA)).parsed == {"n": 3}
    assert model.complete(ask(answer_schema=SCHEMA)).parsed == {"n": 4}
    assert len(server.seen) == 3
    assert "JSON schema" in server.seen[1].prompt
    assert "JSON schema" in server.seen[2].prompt


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("401", ProviderError, "API_KEY"),
        ("403", ProviderError, "API_KEY"),
        ("404", ProviderError, "--llm"),
        ("400", UsageError, "refuses the request"),
        ("408", CallFailed, "too busy"),
        ("429", CallFailed, "too many calls"),
        ("500", CallFailed, "injected 500"),
        ("529", CallFailed, "busy"),
        ("reset", CallFailed, "broke the connection off"),
        ("cut", CallFailed, "middle of the answer"),
        ("garbage", CallFailed, "no answer"),
        ("error-event", CallFailed, "Overloaded"),
    ],
)
def test_failures_are_one_sentence(
    opened: Opener, server: LLMServer, fault: str, error: type[Exception], says: str
) -> None:
    server.then(Reply("a long enough answer " * 20, fault=fault))
    with pytest.raises(error, match=says) as caught:
        opened().complete(ask())
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("fault", ["408", "429", "500", "529", "reset"])
def test_the_sdk_retries_what_can_pass(opened: Opener, server: LLMServer, fault: str) -> None:
    headers = {"retry-after": "0.05", "retry-after-ms": "50"}
    server.then(Reply(fault=fault, headers=headers), "fine")
    assert opened(retries=2).complete(ask()).text == "fine"
    assert len(server.seen) == 2


@pytest.mark.slow
def test_a_rate_limit_is_waited_out_as_long_as_it_says(opened: Opener, server: LLMServer) -> None:
    server.then(Reply(fault="429", headers={"retry-after": "1"}), "fine")
    started = time.monotonic()
    assert opened(retries=1).complete(ask()).text == "fine"
    assert time.monotonic() - started >= 1.0, "the SDK's own pause would be half as long"


def test_a_used_up_quota_says_what_to_do(opened: Opener, server: LLMServer, api: str) -> None:
    message = "Your credit balance is too low" if api == "messages" else "insufficient_quota: exceeded"
    server.then(Reply(fault="400" if api == "messages" else "429", message=message))
    with pytest.raises(OutageError, match="quota is used up"):
        opened().complete(ask())


LIMITS = (
    "You have reached your specified {}API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."
)
REACHED = "You have reached a limit."
SPENT = {
    "messages": [
        Reply(fault="400", message=LIMITS.format("")),
        Reply(fault="400", message=LIMITS.format("workspace ")),
        Reply(fault="429", message=REACHED, code="enforced_spend_limit_reached"),
    ],
    "responses": [
        Reply(fault="429", message=REACHED, code="credit_balance_exhausted"),
        Reply(fault="429", message=REACHED, code="organization_spend_limit_exceeded"),
        Reply(fault="429", message=REACHED, code="project_spend_limit_exceeded"),
        Reply(fault="429", message=REACHED, code="organization_usage_limit_exceeded"),
    ],
}
"""As the vendors document them."""


@pytest.mark.parametrize("api", ["messages", "responses"], indirect=True)
def test_a_spend_limit_is_a_quota_that_is_used_up(opened: Opener, server: LLMServer, api: str) -> None:
    for reply in SPENT[api]:
        server.then(reply)
        with pytest.raises(OutageError, match=r"quota is used up: .* You have reached"):
            opened().complete(ask())


def test_silence_ends(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("a long enough answer " * 20, fault="stall"))
    started = time.monotonic()
    with pytest.raises(CallFailed, match="in time"):
        opened(timeout_s=0.5).complete(ask())
    assert time.monotonic() - started < 20


def test_a_deadline_ends_an_answer_that_goes_on(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("a long enough answer " * 20, fault="stall"))
    with pytest.raises(CallFailed, match=r"still answering after 0\.5 s") as caught:
        opened(timeout_s=50.0, deadline_s=0.5).complete(ask())
    assert caught.value.tokens.output > 0


def test_a_request_may_have_a_deadline_of_its_own(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("a long enough answer " * 20, fault="stall"))
    asked = ask(deadline=time.monotonic() + 0.5)
    with pytest.raises(OutOfTime, match="limit of time ended the call") as caught:
        opened(timeout_s=50.0, deadline_s=50.0).complete(asked)
    assert caught.value.tokens.output > 0
    assert asked.hash == ask().hash, "the answer does not depend on it"
    assert "deadline" not in asked.model_dump_json()


def test_a_cut_answer_says_so(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("half of", stop="length"))
    response = opened().complete(ask())
    assert (response.text, response.stop) == ("half of", "length")


def test_a_refusal_is_a_failed_call_that_was_paid(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("", stop="refusal"))
    with pytest.raises(PromptRefused, match="declined") as caught:
        opened().complete(ask())
    assert caught.value.tokens.input == server.billed[0][0]


def test_an_empty_answer_is_an_answer(opened: Opener, server: LLMServer) -> None:
    server.then(Reply(""))
    assert opened().complete(ask()).text == ""


def test_bytes_that_are_no_utf8_are_a_failed_call_that_was_paid(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("before ¿ after, and some more text to stream", fault="bytes"))
    with pytest.raises(CallFailed, match="sent something that is no answer") as caught:
        opened().complete(ask())
    assert caught.value.tokens.input > 0


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_server_that_counts_nothing_is_estimated(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("words " * 30, usage=False))
    tokens = opened().complete(ask()).tokens
    assert not tokens.known
    assert tokens.input > 0
    assert tokens.output >= 45


def test_no_route_says_to_start_the_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for spec in (f"openai:m@http://127.0.0.1:{port}/v1", f"anthropic:m@http://127.0.0.1:{port}"):
        with pytest.raises(OutageError, match="no route to http://127"):
            open_model(spec, LLMSettings(retries=0)).complete(ask())


def test_the_key_is_sent_and_never_shown(
    opened: Opener, server: LLMServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.then(Reply(fault="401", message=f"Incorrect API key provided: {KEY}"), "fine")
    model = opened()
    with pytest.raises(ProviderError) as caught:
        model.complete(ask())
    assert KEY not in str(caught.value)
    model.complete(ask())
    assert any(KEY in value for value in server.seen[0].headers.values())
    assert KEY not in caplog.text
    assert KEY not in json.dumps([ask().model_dump(mode="json"), model.spec, model.endpoint])


@pytest.mark.parametrize("api", ["messages", "chat"], indirect=True)
def test_headers_that_are_meant_for_a_vendor_go_to_no_other_host(
    opened: Opener, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for vendor in ("OPENAI", "ANTHROPIC"):
        headers = "X-Gateway-Key: of-the-vendor\nAuthorization: Bearer of-the-vendor"
        monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", headers)
    monkeypatch.setenv("OPENAI_ORG_ID", "of-the-vendor")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "of-the-vendor")
    server.then("fine")
    assert opened().complete(ask()).text == "fine"
    assert "of-the-vendor" not in json.dumps(server.seen[0].headers)
    assert any(KEY in value for value in server.seen[0].headers.values())


def at_once(model: LanguageModel, calls: int) -> None:
    threads = [threading.Thread(target=model.complete, args=(ask(str(i)),)) for i in range(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("api", ["messages", "chat"])
def test_calls_at_once_are_limited_and_fewer_after_a_rate_limit(opened: Opener, server: LLMServer) -> None:
    server.delay_s = 0.1
    model = opened(concurrency=3, retries=3)
    server.then(*["ok"] * 6)
    at_once(model, 6)
    assert 2 <= server.most_at_once <= 3
    server.most_at_once = 0
    server.then(Reply(fault="429", headers={"retry-after-ms": "10", "retry-after": "0.01"}), *["ok"] * 2)
    model.complete(ask())
    assert model._limit.limit < 3  # type: ignore[attr-defined]
    server.then(*["ok"] * 8)
    at_once(model, 8)
    assert model._limit.limit == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "fault",
    [
        "delta-null",
        "no-delta",
        "content-list",
        "choices-object",
        "data-text",
        "no-start",
        "no-block",
        "block-null",
    ],
)
def test_a_malformed_event_is_a_failed_call_that_is_charged_once(
    opened: Opener, server: LLMServer, api: str, fault: str, tmp_path: Path
) -> None:
    if fault not in MALFORMED[api]:
        pytest.skip("another API's event")
    model = opened()
    server.then(Reply("a long enough answer " * 20, fault=fault), "fine")
    most = -(-ask().characters // TOKEN_CHARACTERS) + 512
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        ledger = Ledger(store, "run", Budget(tokens=2 * most))
        with pytest.raises(CallFailed):
            ledger.ask(model, ask(), role="coder")
        assert store.calls("run")[0].status == "failed"
        assert store.calls("run")[0].tokens_out == 512, "what it really took is not known"
        assert ledger.ask(model, ask(), role="coder").response.text == "fine"


@pytest.mark.parametrize("fault", ["usage-null", "usage-huge", "usage-negative", "usage-words"])
def test_an_impossible_account_is_estimated(opened: Opener, server: LLMServer, fault: str) -> None:
    server.then(Reply("a whole answer", fault=fault))
    response = opened().complete(ask())
    assert response.text == "a whole answer"
    assert not response.tokens.known
    assert 0 < response.tokens.output < 100


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("json", "application/json"),
        ("json-error", "model is still loading"),
        ("html", "text/html.*Sign in to the proxy"),
        ("empty", "ended the stream before the answer"),
    ],
)
def test_an_answer_that_is_no_stream_says_what_came(
    opened: Opener, server: LLMServer, fault: str, says: str
) -> None:
    server.then(Reply("something", fault=fault))
    with pytest.raises(CallFailed, match=says) as caught:
        opened().complete(ask())
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_an_argument_that_is_refused_is_left_out_and_remembered(
    opened: Opener, server: LLMServer, api: str
) -> None:
    if api != "chat":
        pytest.skip("only compatible servers differ in this")
    limit = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
    )
    options = "stream_options: Extra inputs are not permitted"
    server.then(Reply(fault="400", message=limit), Reply(fault="422", message=options), "fine", "again")
    model = opened()
    assert model.complete(ask()).text == "fine"
    assert model.complete(ask()).text == "again"
    assert len(server.seen) == 4
    for seen in server.seen[2:]:
        assert seen.body["max_completion_tokens"] == 512
        assert not {"max_tokens", "stream_options"} & seen.body.keys()


def test_a_limit_that_is_too_high_is_no_unknown_argument(opened: Opener, server: LLMServer) -> None:
    server.then(Reply(fault="400", message="max_tokens is too large: 512, this model supports at most 100"))
    with pytest.raises(UsageError, match="too large"):
        opened().complete(ask())
    assert len(server.seen) == 1


def test_thoughts_in_the_text_are_no_part_of_the_answer(opened: Opener, server: LLMServer) -> None:
    server.then('<think>Perhaps {"n": 1, "why": "a long draft"}?</think>\n{"n": 2}')
    response = opened().complete(ask())
    assert response.text == '{"n": 2}'
    assert response.parsed == {"n": 2}
    assert response.tokens.output > 10, "thoughts are billed"


def test_a_silent_endpoint_did_not_begin(opened: Opener, server: LLMServer) -> None:
    server.delay_s = 5.0
    server.then("late")
    with pytest.raises(CallFailed, match="had not begun to answer"):
        opened(timeout_s=50.0, deadline_s=0.4).complete(ask())


@pytest.mark.parametrize("api", ["chat"], indirect=True)
def test_reasoning_that_only_the_total_counts_is_paid(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("words " * 10, beside=300))
    tokens = opened().complete(ask()).tokens
    assert tokens.known
    assert tokens.output == server.billed[0][1] + 300


def test_counts_that_contradict_the_answer_are_estimated() -> None:
    for counts in (
        Tokens(input=0, output=0),
        Tokens(input=10, output=0),
        Tokens(input=10, cached=20, output=5),
    ):
        tokens = counted(ask(), "an answer", lambda counts=counts: counts)  # type: ignore[misc]
        assert not tokens.known
        assert min(tokens.input, tokens.output) > 0
        assert tokens.cached == 0
    assert counted(ask(), "", lambda: Tokens(input=10)).known, "nothing was answered"


@pytest.mark.parametrize("api", ["chat"], indirect=True)
def test_a_stream_that_breaks_off_in_a_thought_was_paid(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("x", thought="a long thought " * 60, fault="cut"))
    with pytest.raises(CallFailed, match="in the middle of the answer") as caught:
        opened().complete(ask())
    assert caught.value.tokens.output > 50


def test_a_schema_that_is_taken_and_ignored_is_told_in_words(opened: Opener, server: LLMServer) -> None:
    model = opened()
    server.then('{"n": 1}', "It is 1, I think.", '{"n": 2}', '{"n": 3}')
    for _ in range(2):
        model.complete(ask(answer_schema=SCHEMA))
    model.complete(ask(answer_schema=SCHEMA).then("It is 1, I think.", "Answer with the object."))
    assert ["JSON schema" in seen.prompt for seen in server.seen] == [False, False, True]
    assert model.complete(ask(answer_schema=SCHEMA)).parsed == {"n": 3}


@pytest.mark.parametrize(
    "says",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 16384 output tokens and "
        "your prompt contains at least 2203 input tokens.",
        "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is "
        "8192 tokens and your request has 2203 input tokens",
        "the request exceeds the available context size, try increasing it",
        "input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000",
    ],
)
def test_a_short_context_says_which_setting_helps(opened: Opener, server: LLMServer, says: str) -> None:
    server.then(Reply(fault="400", message=says))
    with pytest.raises(PromptRefused, match=r"lower llm\.max_tokens") as caught:
        opened().complete(ask())
    assert says[:40] in str(caught.value)
    assert len(server.seen) == 1


def test_a_rate_limit_says_what_the_endpoint_says(opened: Opener, server: LLMServer) -> None:
    server.then(Reply(fault="429", message="Request too large: limit 10000 TPM, requested 24000"))
    with pytest.raises(CallFailed, match="limit 10000 TPM, requested 24000"):
        opened().complete(ask())


def test_a_failure_that_names_a_call_is_no_refusal_of_tools(opened: Opener, server: LLMServer) -> None:
    model = opened()
    server.then(Reply(fault="500", message="CUDA function call failed"))
    with pytest.raises(CallFailed, match="CUDA function call failed"):
        model.complete(ask())
    assert len(server.seen) == 1


def test_details_of_another_kind_of_server_are_shown(opened: Opener, server: LLMServer, api: str) -> None:
    if api != "chat":
        pytest.skip("only compatible servers differ in this")
    server.then(Reply(fault="detail", message="Model is gone"))
    with pytest.raises(ProviderError, match=r"check --llm \(Model is gone\)"):
        opened().complete(ask())


@pytest.mark.parametrize("api", ["responses"], indirect=True)
def test_an_endpoint_from_the_environment_is_named(opened: Opener, server: LLMServer) -> None:
    server.then(Reply(fault="404"))
    with pytest.raises(ProviderError, match=f"{server.url} .404. has no model"):
        opened().complete(ask())


def test_a_filter_that_declines_a_prompt_ends_one_call_only(opened: Opener, server: LLMServer) -> None:
    flagged = "invalid_prompt: your prompt was flagged as potentially violating our usage policy"
    server.then(Reply(fault="400", message=flagged))
    with pytest.raises(PromptRefused, match="declined to answer"):
        opened().complete(ask())


@pytest.mark.parametrize("api", ["responses"], indirect=True)
@pytest.mark.parametrize("fault", ["failed", "error", "error-event"])
@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("invalid_prompt", PromptRefused, "declined to answer"),
        ("misalignment_policy_violation", PromptRefused, "declined to answer"),
        ("content_filter", PromptRefused, "declined to answer"),
        ("context_length_exceeded", PromptRefused, r"lower llm\.max_tokens"),
        ("insufficient_quota", OutageError, "quota is used up"),
        ("server_error", CallFailed, "server_error: See the code"),
    ],
)
def test_a_code_in_a_stream_means_what_it_means_as_a_status(
    opened: Opener, server: LLMServer, fault: str, code: str, kind: type[Exception], says: str
) -> None:
    server.then(Reply("a long enough answer " * 20, fault=fault, code=code, message="See the code"))
    with pytest.raises(kind, match=says) as caught:
        opened().complete(ask())
    refused = isinstance(caught.value, PromptRefused)
    assert refused is (kind is PromptRefused), "only what may be an outage counts as one"
    if fault == "failed" and isinstance(caught.value, CallFailed):
        assert (caught.value.tokens.input, caught.value.tokens.output) == server.billed[0]


def test_a_schema_that_the_servers_grammar_cannot_express_goes_into_the_prompt(
    opened: Opener, server: LLMServer
) -> None:
    says = "The provided JSON schema contains features not supported by xgrammar."
    server.then(Reply(fault="400", message=says), '{"n": 3}')
    assert opened().complete(ask(answer_schema=SCHEMA)).parsed == {"n": 3}


def test_a_character_in_two_pieces_is_one() -> None:
    heard = Heard()
    for piece in ("fast \ud83d", "\ude80", " and half \ud83d"):
        heard.add(piece)
    assert heard.text == "fast 🚀 and half \ufffd"


def test_what_a_router_forwards_is_read(opened: Opener, server: LLMServer, api: str) -> None:
    """As OpenRouter wraps a provider's answer."""
    if api != "chat":
        pytest.skip("routers speak Chat Completions")
    model = opened()
    wrapped = json.dumps({"error": {"message": "response_format json_schema is not supported"}})
    server.then(Reply(fault="400", message="Provider returned error", raw=wrapped), '{"n": 1}')
    assert model.complete(ask(answer_schema=SCHEMA)).text == '{"n": 1}'
    server.then(Reply(fault="400", message="Provider returned error", raw="context length exceeded"))
    with pytest.raises(PromptRefused):
        model.complete(ask())


@pytest.mark.parametrize("api", ["chat"], indirect=True)
def test_a_filters_report_beside_the_answer_is_passed_over(opened: Opener, server: LLMServer) -> None:
    server.then(Reply("the whole answer", fault="filter-report"))
    assert opened().complete(ask()).text == "the whole answer"


@pytest.mark.parametrize("api", ["chat"], indirect=True)
def test_an_endpoint_without_a_key_may_say_none(
    opened: Opener, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTFORGE_LLM_API_KEY")
    server.then(Reply(fault="400", message="effort 'none' is nonexistent"))
    with pytest.raises(UsageError, match="effort 'none' is nonexistent"):
        opened().complete(ask())
    assert server.seen[0].headers["authorization"] == "Bearer none"

"""Tool calls through the real SDKs: on the wire, in a stream, and at endpoints without tools."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentforge.llm import LanguageModel, Message, Recorder, Replay, Request, ToolResult, ToolSpec
from agentforge.llm.providers.openai_chat import _Calls

from .conftest import Opener
from .server import LLMServer, Reply

ADD = ToolSpec(
    name="add",
    description="The sum of two numbers.",
    parameters={"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
)
ASK = Request(messages=(Message(role="user", text="What is 2 + 3?"),), max_tokens=512, tools=(ADD,))
ARGUMENTS = '{"a": 2, "b": 3, "why": "a text that is longer than one piece of the stream"}'


def exchange(model: LanguageModel, server: LLMServer) -> Request:
    """Two calls and the text before them; returns the request with their results."""
    server.then(Reply("I add.", calls=(("add", ARGUMENTS), ("add", "{}"))))
    response = model.complete(ASK)
    assert response.text == "I add."
    assert response.stop == "end"
    assert [(call.id, call.name) for call in response.calls] == [("call_0", "add"), ("call_1", "add")]
    assert json.loads(response.calls[0].arguments) == json.loads(ARGUMENTS)
    assert (response.tokens.input, response.tokens.output) == server.billed[0]
    results = (ToolResult(id="call_0", text="5"), ToolResult(id="call_1", text="arguments: a is missing"))
    return ASK.with_results(response, results)


def test_calls_arrive_in_a_stream_and_their_results_go_back(
    opened: Opener, server: LLMServer, api: str
) -> None:
    model = opened()
    server_request = exchange(model, server)
    server.then("It is 5.")
    answer = model.complete(server_request)
    assert (answer.text, answer.calls) == ("It is 5.", ())
    first, second = (seen.body for seen in server.seen)
    assert len(first["tools"]) == 1
    if api == "messages":
        assert first["tools"][0]["input_schema"] == ADD.parameters
        said, told = second["messages"][1:]
        assert [block["type"] for block in said["content"]] == ["text", "tool_use", "tool_use"]
        assert said["content"][1]["input"] == json.loads(ARGUMENTS)
        assert [block["tool_use_id"] for block in told["content"]] == ["call_0", "call_1"]
        marked = [[b for b in turn["content"] if "cache_control" in b] for turn in second["messages"]]
        assert [len(blocks) for blocks in marked] == [0, 0, 1], "all until here is read from the cache"
        assert first["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    elif api == "responses":
        assert first["tools"][0]["name"] == "add"
        kinds = [item.get("type", item.get("role")) for item in second["input"]]
        calls, outputs = ["function_call"] * 2, ["function_call_output"] * 2
        assert kinds == ["user", "assistant", *calls, *outputs]
        assert second["input"][-1]["output"] == "arguments: a is missing"
    else:
        assert first["tools"][0]["function"]["name"] == "add"
        assert [m["role"] for m in second["messages"]] == ["user", "assistant", "tool", "tool"]
        assert second["messages"][1]["tool_calls"][0]["function"]["arguments"] == ARGUMENTS
        assert second["messages"][2] == {"role": "tool", "tool_call_id": "call_0", "content": "5"}


def test_arguments_that_are_no_json_arrive_as_they_were_written(opened: Opener, server: LLMServer) -> None:
    model = opened()
    written = ('{"code": "a line\n' + "and one more that ends another piece of the stream" + '"}', "[" * 9999)
    server.then(Reply(calls=tuple(("add", text) for text in written)), "5")
    response = model.complete(ASK)
    assert tuple(call.arguments for call in response.calls) == written
    results = tuple(ToolResult(id=call.id, text="no JSON") for call in response.calls)
    assert model.complete(ASK.with_results(response, results)).text == "5"
    assert "and one more that ends" in server.seen[1].prompt


def test_results_and_a_schema_in_words_are_one_turn(opened: Opener, server: LLMServer) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    model = opened()
    asked = exchange(model, server).model_copy(update={"answer_schema": schema})
    server.then(Reply(fault="no-schema"), '{"n": 5}')
    assert model.complete(asked).parsed == {"n": 5}
    assert "JSON schema" in server.seen[-1].prompt
    assert "arguments: a is missing" in server.seen[-1].prompt


def test_an_endpoint_without_tools_is_asked_once_more_and_remembered(
    opened: Opener, server: LLMServer
) -> None:
    model = opened()
    later = exchange(model, server)
    server.then(Reply(fault="no-tools"), "five", "five again")
    assert model.complete(later).text == "five"
    assert model.complete(ASK).text == "five again"
    assert ["tools" in seen.body for seen in server.seen] == [True, True, False, False]
    assert "arguments: a is missing" in server.seen[2].prompt


@pytest.mark.parametrize("api", ["chat"], indirect=True)
def test_calls_are_recorded_and_replayed_whatever_the_tools_measured(
    opened: Opener, server: LLMServer, tmp_path: Path
) -> None:
    cassette = tmp_path / "tools.jsonl"
    recorder = Recorder(opened(), cassette)
    asked = exchange(recorder, server)
    server.then("It is 5.")
    recorder.complete(asked)
    replay = Replay(str(cassette))
    calls = replay.complete(ASK)
    assert [call.name for call in calls.calls] == ["add", "add"]
    slower = (ToolResult(id="call_0", text="6.25 us on this machine"), ToolResult(id="call_1", text="no"))
    assert replay.complete(ASK.with_results(calls, slower)).text == "It is 5."


@pytest.mark.parametrize("api", ["chat"], indirect=True)
def test_thoughts_go_back_with_the_results(opened: Opener, server: LLMServer) -> None:
    model = opened()
    server.then(Reply(calls=(("add", "{}"),), thought="I need a sum."), Reply("5", thought="Now I know."))
    asked = ASK.with_results(model.complete(ASK), (ToolResult(id="call_0", text="5"),))
    assert model.complete(asked).reasoning == "", "an answer without calls is not asked for its thoughts"
    server.then("really")
    model.complete(asked.then("5", "Are you sure?"))
    assert server.seen[1].body["messages"][1]["reasoning_content"] == "I need a sum."
    said = [m for m in server.seen[2].body["messages"] if m["role"] == "assistant"]
    assert [m["reasoning_content"] for m in said] == ["I need a sum.", ""]
    assert "reasoning_content" not in json.dumps(server.seen[0].body)


def thoughts(body: dict[str, Any]) -> list[tuple[int, int, str]]:
    """Turn or item, place in it, and secret text of all thoughts in a request of Anthropic or OpenAI."""
    found = []
    for n, turn in enumerate(body.get("messages") or body["input"]):
        blocks = turn["content"] if isinstance(turn.get("content"), list) else [turn]
        secrets = [b.get("signature") or b.get("data") or b.get("encrypted_content") for b in blocks]
        found += [(n, place, secret) for place, secret in enumerate(secrets) if secret]
    return found


THOUGHTFUL = pytest.mark.parametrize("api", ["messages", "responses"], indirect=True)
CALL = Reply("I add.", calls=(("add", "{}"),), thought="I need a sum.")
SECRET = CALL.thought[::-1]


@THOUGHTFUL
def test_thoughts_go_back_as_they_came_and_first(opened: Opener, server: LLMServer, api: str) -> None:
    model = opened()
    server.then(CALL, CALL, "5")
    result = (ToolResult(id="call_0", text="5"),)
    once = ASK.with_results(model.complete(ASK), result)
    twice = once.with_results(model.complete(once), result)
    assert model.complete(twice).reasoning == ""
    first, second, third = (seen.body for seen in server.seen)
    assert thoughts(first) == []
    if api == "messages":
        assert thoughts(second) == [(1, 0, SECRET), (1, 1, "aGlkZGVu")]
        assert second["messages"][1]["content"][0]["thinking"] == CALL.thought
        assert [b["type"] for b in second["messages"][1]["content"]][2:] == ["text", "tool_use"]
        assert len(thoughts(third)) == 4
    else:
        assert first["include"] == ["reasoning.encrypted_content"]
        assert thoughts(second) == [(1, 0, SECRET)]
        item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SECRET}
        assert second["input"][1] == item
        assert [item.get("type", item.get("role")) for item in second["input"]][2:4] == [
            "assistant",
            "function_call",
        ]
        assert [n for n, _, _ in thoughts(third)] == [1, 5]


@THOUGHTFUL
def test_thoughts_stay_behind_if_what_was_before_them_changed(opened: Opener, server: LLMServer) -> None:
    model = opened()
    server.then(CALL, CALL, CALL, "5")
    result = (ToolResult(id="call_0", text="5"),)
    long = ASK.with_results(model.complete(ASK), result)
    shorter = ASK.with_results(model.complete(long), result)
    again = shorter.with_results(model.complete(shorter), result)
    model.complete(again)
    assert thoughts(server.seen[2].body) == []
    assert min(n for n, _, _ in thoughts(server.seen[3].body)) > 2, (
        "those of the shorter conversation go back"
    )


@THOUGHTFUL
@pytest.mark.parametrize(
    "says",
    [
        "Encrypted content is not supported with this model.",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ],
)
def test_an_endpoint_that_takes_no_thoughts_gets_none(opened: Opener, server: LLMServer, says: str) -> None:
    model = opened()
    server.then(CALL, Reply(fault="400", message=says), "5", "6")
    later = ASK.with_results(model.complete(ASK), (ToolResult(id="call_0", text="5"),))
    assert model.complete(later).text == "5"
    assert model.complete(later).text == "6"
    assert [len(thoughts(seen.body)) > 0 for seen in server.seen] == [False, True, False, False]
    assert ["tools" in seen.body for seen in server.seen] == [True] * 4
    assert "include" not in server.seen[-1].body


@pytest.mark.parametrize(
    "says",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "tool_use_failed: Failed to call a function. Please adjust your prompt.",
    ],
)
def test_an_endpoint_that_cannot_go_on_with_tools_is_asked_without(
    opened: Opener, server: LLMServer, says: str
) -> None:
    model = opened()
    later = exchange(model, server)
    server.then(Reply(fault="400", message=says), "five")
    assert model.complete(later).text == "five"
    assert "tools" not in server.seen[-1].body


def test_a_character_of_a_call_in_two_pieces_is_one() -> None:
    calls = _Calls()
    for piece in ('{"code": "\ud83d', '\ude80"}'):
        of = SimpleNamespace(name="add", arguments=piece)
        calls.add(SimpleNamespace(index=0, id="call_0", function=of))
    assert calls.all()[0].arguments == '{"code": "🚀"}'

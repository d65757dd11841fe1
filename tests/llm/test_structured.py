"""Objects found in whatever a model said; schemas that both vendors take; specs, keys, prices, packages."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from agentforge.agents.llm import schemas
from agentforge.config import LLMSettings
from agentforge.llm import Prices, Tokens, open_model, read, strict_schema
from agentforge.llm.providers import packages as _packages
from agentforge.llm.spec import parse_target
from agentforge.llm.structured import find_objects, without_thoughts
from agentforge.schema import Bound, MachineError, UsageError


class Inner(BaseModel):
    value: float = 0.0


class Outer(BaseModel):
    kind: Literal["a", "b"]
    parts: list[Inner] = Field(default_factory=list, max_length=3)
    gain: float = Field(default=1.0, gt=0)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5), values, min_size=1, max_size=4)


@given(
    objects, st.sampled_from(["{}", "```json\n{}\n```", "Sure!\n{}\nDone.", "```\r\n{}\r\n```", "a {{ b\n{}"])
)
def test_an_object_is_found_wherever_it_stands(value: dict[str, object], around: str) -> None:
    text = around.replace("{}", json.dumps(value)).replace("{{", "{")
    assert find_objects(text)[0] == value


@given(st.text())
def test_no_text_breaks_the_search(text: str) -> None:
    assert all(isinstance(found, dict) for found in find_objects(text))
    assert isinstance(without_thoughts(text), str)


@pytest.mark.parametrize("text", ["", "{", "[1]", "{" * 100_000, '{"a": 1', "null"])
def test_where_there_is_none_there_is_none(text: str) -> None:
    assert find_objects(text) == ()


def test_the_schema_is_strict_everywhere() -> None:
    schema = strict_schema(Outer)
    for node in (schema, schema["$defs"]["Inner"]):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    assert not {"default", "exclusiveMinimum", "maxItems"} & set(json.dumps(schema).replace('"', " ").split())


def nodes(schema: object) -> Iterator[dict[str, object]]:
    if isinstance(schema, dict):
        yield schema
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from nodes(child)


ANSWERS = [
    kind for _, kind in inspect.getmembers(schemas, inspect.isclass) if issubclass(kind, schemas._Answer)
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_reference_has_no_key_beside_it(answer: type[BaseModel]) -> None:
    assert all(len(node) == 1 for node in nodes(strict_schema(answer)) if "$ref" in node)


def test_a_reference_with_a_description_is_replaced_by_what_it_refers_to() -> None:
    bottleneck = strict_schema(schemas.PlanAnswer)["properties"]["bottleneck"]
    assert bottleneck == {"description": "What limits the region now.", "enum": [*Bound], "type": "string"}


def test_an_answer_that_does_not_fit_says_where() -> None:
    assert isinstance(read(Outer, [{"kind": "a"}]), Outer)
    assert "kind" in str(read(Outer, [{"kind": "c"}]))
    assert "gain" in str(read(Outer, [{"kind": "a", "gain": -1}]))
    assert "no JSON" in str(read(Outer, []))


def test_the_last_object_that_fits_counts() -> None:
    draft = json.dumps({"kind": "a", "gain": 9.0, "parts": [{"n": 1}, {"n": 2}]})
    text = f'First idea: {draft}. Better: {{"kind": "b"}} (as in {{"place": 3}})'
    answer = read(Outer, find_objects(text))
    assert isinstance(answer, Outer)
    assert answer.kind == "b"
    assert "gain" in str(read(Outer, find_objects('{"kind": "a", "gain": -1} {"x": 1}'))), "names the nearest"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('<think>maybe {"n": 1}?</think>\n\n{"n": 2}', '{"n": 2}'),
        ("a draft</think>\nthe answer", "the answer"),
        ("<think>cut off in the middle", ""),
        ("<think>I close with </think> later</think>answer", "answer"),
        ("before <think>x</think>between<think>y</think> after", "before between after"),
        ("<THINKING>x</THINKING>\nanswer", "answer"),
        ("\nnothing to remove", "\nnothing to remove"),
    ],
)
def test_thoughts_are_removed(text: str, rest: str) -> None:
    assert without_thoughts(text) == rest


@pytest.mark.parametrize(
    ("text", "model", "url"),
    [
        ("m", "m", None),
        ("m@http://127.0.0.1:8000/v1/", "m", "http://127.0.0.1:8000/v1"),
        ("claude@20250514", "claude@20250514", None),
        ("a:b@https://h", "a:b", "https://h"),
    ],
)
def test_specifications(text: str, model: str, url: str | None) -> None:
    target = parse_target(text)
    assert (target.model, target.url) == (model, url)


@pytest.mark.parametrize(
    "spec",
    [
        "openai:",
        "openai:@http://h",
        "openai:m@http://",
        "nobody:m",
        "openai:m@ftp://h/v1",
        "openai:m@127.0.0.1:8000",
        "anthropic:m@localhost:80/v1",
    ],
)
def test_bad_specifications_are_usage_errors(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with pytest.raises(UsageError, match=r"write anthropic:MODEL|is not one of the providers"):
        open_model(spec)


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="set AGENTFORGE_LLM_API_KEY") as caught:
        parse_target("m@https://user:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)
    assert parse_target("m@https://host/@cf/v1").url == "https://host/@cf/v1"


def test_a_limit_for_a_role_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"planner.coder.judge"):
        LLMSettings.model_validate({"role_max_tokens": {"codr": 4096}})


@pytest.mark.slow
def test_a_missing_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="export ANTHROPIC_API_KEY"):
        open_model("anthropic:m")
    with pytest.raises(UsageError, match="export OPENAI_API_KEY"):
        open_model("openai:m")
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-from-dotenv\n")
    assert open_model("anthropic:m").model == "m"


@pytest.mark.parametrize("key", ["sk-abc…", "sk-abc\nsk-def", "Bearer sk-abc"])
def test_a_key_that_cannot_be_sent_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(UsageError, match="copy the key again") as caught:
        open_model("openai:m")
    assert "sk-abc" not in str(caught.value)


def test_a_vendors_key_is_not_sent_to_another_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTFORGE_LLM_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-vendor")
    model = open_model("openai:m@http://127.0.0.1:1/v1")
    assert model._client.api_key == "none"  # type: ignore[attr-defined]


def test_packages_that_are_missing_or_old_name_the_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineError, match=r"\.\[llm\]"):
        _packages.require("no-such-package-of-ours", "1")
    monkeypatch.setattr(_packages, "version", lambda _: "3.9.1")
    with pytest.raises(MachineError, match=r"older than 3\.52"):
        _packages.require("openai", "3.52")


def test_prices() -> None:
    price = Prices().find("anthropic:claude-sonnet-4-6-20260214")
    assert price is not None
    assert price.of(Tokens(input=1_000_000, cached=400_000, cache_written=100_000)) == pytest.approx(
        0.5 * 3 + 0.4 * 0.3 + 0.1 * 3.75
    )
    assert Prices().find("anthropic:claude-unheard-of") is None
    assert Prices().find("openai:gpt-5.5@http://127.0.0.1/v1") is None


@pytest.mark.parametrize(
    "text", ["[openai]\nm = 3\n", "[openai", "[openai]\nm = { input = -1.0, output = 1.0 }\n"]
)
def test_a_bad_price_table_is_said_to_be_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(UsageError, match="price table"):
        Prices(tmp_path / "p.toml")

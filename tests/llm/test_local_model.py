"""A small open model, where Ollama or vLLM serves one here; skipped, with the reason, where not."""

from __future__ import annotations

import json
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from agentforge.agents.llm.answers import RepairAnswer
from agentforge.config import LLMSettings
from agentforge.llm import Message, Request, open_model, read, strict_schema

SERVERS = {"Ollama": "http://127.0.0.1:11434/v1", "vLLM": "http://127.0.0.1:8000/v1"}
ASK = "g++ says: kernel.cpp:3: error: expected ';' before '}' token. Name the cause and the smallest fix."


def served() -> str | None:
    """Specification of the first model that is served here."""
    for url in SERVERS.values():
        try:
            with urlopen(f"{url}/models", timeout=0.5) as response:
                models = json.load(response)["data"]
        except (URLError, OSError, ValueError, KeyError):
            continue
        if models:
            return f"openai:{models[0]['id']}@{url}"
    return None


@pytest.mark.slow
def test_a_small_open_model_answers_by_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = served()
    if spec is None:
        pytest.skip(f"no {' or '.join(SERVERS)} serves a model on this machine")
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "none")
    model = open_model(spec, LLMSettings(max_tokens=1024, timeout_s=300.0))
    request = Request(
        messages=(Message(role="user", text=ASK),), answer_schema=strict_schema(RepairAnswer), max_tokens=1024
    )
    response = model.complete(request)
    assert response.tokens.output > 0
    assert isinstance(read(RepairAnswer, response.parsed), RepairAnswer), response.text

"""A provider: `rules:FILE`, a "language model" that answers from a file of rules. No network."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from agentforge.config import LLMSettings
from agentforge.llm import CallFailed, Price, Request, Response, Tokens
from agentforge.schema import UsageError


class RulesModel:
    """Answers in turn with the lines of a JSON-lines file: `{"text": ..., "stop": ...}` or `{"fails": true}`.

    A model behind an HTTP endpoint would rather inherit `agentforge.llm.providers.EndpointModel`.

    Args:
        target: path of the file.
        settings: time-outs and retries, not needed here.
        words_per_token: for the account.
    """

    endpoint = "rules"
    price = Price(input=0.0, output=0.0)

    def __init__(self, target: str, settings: LLMSettings, *, words_per_token: float = 1.0) -> None:
        path = Path(target)
        if not path.is_file():
            raise UsageError(f"rules file {path} does not exist: write rules:FILE")
        self.spec = f"rules:{target}"
        self.model = path.stem
        self._rules = iter([json.loads(line) for line in path.read_text().splitlines()])
        self._words = words_per_token
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        with self._lock:
            rule = next(self._rules, {"fails": True})
        if rule.get("fails"):
            raise CallFailed(f"{self.spec} has no answer")
        text, stop = rule["text"], rule.get("stop", "end")
        if stop == "refusal":
            raise CallFailed(f"{self.spec} declined to answer")
        asked = " ".join((*request.system, *(message.text for message in request.messages)))
        tokens = Tokens(input=self._count(asked), output=self._count(text), known=False)
        return Response(text=text, model=self.model, stop=stop, tokens=tokens)

    def _count(self, text: str) -> int:
        return max(1, round(len(text.split()) / self._words))

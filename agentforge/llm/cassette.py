"""Cassettes: a run's exchanges as JSON lines, recorded and played back without a network.

What is measured differs from run to run, and prompts hold it. So a request that is not held exactly is
found when it differs in numbers, in which values could be measured, and in what the referee notes about the
measuring; the numbers that the recorded answer quotes are then replaced by those of now.
"""

from __future__ import annotations

import difflib
import json
import re
import threading
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentforge.config import LLMSettings
from agentforge.schema import FrozenModel, UsageError, content_hash

from ._base import CallFailed, LanguageModel, OnText, Request, Response

_DIFFERENCE_LINES = 12
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\binf\b|\bnan\b)")
_MEASURED = re.compile(r"-?(?:\d*\.\d{2,}(?:[eE][+-]?\d+)?|\d+(?:\.\d+)?[eE][+-]?\d+)")
"""Numbers that an answer may quote from a prompt: not those that stand in code for themselves."""
_VALUE = re.compile(r"(?P<name>[\w.#]+) = (?P<value>-?[\d.]+(?:e[+-]?\d+)?|inf|nan)")
"""A line that says what was measured; whether it is there may depend on the machine."""
_NOTES = "The referee notes:"


class Exchange(FrozenModel):
    """One line of a cassette."""

    spec: str
    """The model that was asked."""
    request: Request
    response: Response | None = None
    """None where the call failed."""
    error: str = ""


class Recorder:
    """A model whose exchanges are appended to a cassette. Thread-safe.

    Args:
        model: who is asked.
        path: the cassette; made where it is not there, continued where it is.
    """

    def __init__(self, model: LanguageModel, path: Path) -> None:
        self.spec, self.model, self.endpoint = model.spec, model.model, model.endpoint
        self._model = model
        self._path = path
        self._lock = threading.Lock()

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        """See `LanguageModel.complete`."""
        try:
            response = self._model.complete(request, on_text)
        except CallFailed as failure:
            self._append(Exchange(spec=self.spec, request=request, error=str(failure)))
            raise
        self._append(Exchange(spec=self.spec, request=request, response=response))
        return response

    def _append(self, exchange: Exchange) -> None:
        try:
            with self._lock:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(exchange.model_dump_json() + "\n")
        except OSError as error:
            raise UsageError(
                f"cassette {self._path} cannot be written ({error.strerror}): check --record"
            ) from error


class Replay:
    """Answers from a cassette: each exchange once, equal requests in the order of the recording.

    Thread-safe.

    Args:
        target: path of the cassette.
        settings: not used; cassettes make no calls.

    Raises:
        UsageError: the file is not there or is no cassette.
    """

    def __init__(self, target: str, settings: LLMSettings | None = None) -> None:
        self.spec = f"replay:{target}"
        self.endpoint = target
        self._path = Path(target)
        exchanges = _read(self._path)
        self.model = exchanges[0].spec if exchanges else "replay"
        self._requests = [exchange.request for exchange in exchanges]
        self._left: dict[str, deque[Exchange]] = defaultdict(deque)
        for exchange in exchanges:
            self._left[_masked(exchange.request)].append(exchange)
        self._lock = threading.Lock()

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        """See `LanguageModel.complete`.

        Raises:
            UsageError: the cassette does not hold the request; the message shows the difference.
        """
        with self._lock:
            exchange = self._take(request)
        if exchange is None:
            raise self._missing(request)
        if exchange.response is None:
            raise CallFailed(exchange.error)
        text = _quoting(exchange.response.text, exchange.request, request)
        if on_text is not None:
            on_text(text)
        return exchange.response.model_copy(update={"text": text})

    def _take(self, request: Request) -> Exchange | None:
        held = self._left[_masked(request)]
        if not held:
            return None
        exact = next((exchange for exchange in held if exchange.request.hash == request.hash), held[0])
        held.remove(exact)
        return exact

    def _missing(self, request: Request) -> UsageError:
        mask = _masked(request)
        if any(_masked(known) == mask for known in self._requests):
            return UsageError(
                f"cassette {self._path} holds this request, but not as often as it was asked: record it anew"
            )
        nearest = max(self._requests, key=lambda known: _likeness(known, request), default=None)
        if nearest is None:
            return UsageError(f"cassette {self._path} is empty: record it with --record")
        return UsageError(
            f"cassette {self._path} does not hold this request: record it again "
            "(how the nearest one differs, - cassette, + asked, stands below)",
            shown=_difference(nearest, request),
        )


def _masked(request: Request) -> str:
    """Hash of a request without its numbers, and without lines that are there or not by what was measured."""
    return content_hash(_NUMBER.sub("#", "\n".join(_proposed(request))), length=32)


def _proposed(request: Request) -> list[str]:
    """A request's lines without those that only measurements decide."""
    return [line for line in _lines(request) if not (_VALUE.fullmatch(line) or line.startswith(_NOTES))]


def _quoting(text: str, recorded: Request, asked: Request) -> str:
    """A recorded answer with the measured values that it quotes as they are now."""
    if recorded.hash == asked.hash:
        return text
    before, now = (_NUMBER.findall("\n".join(_proposed(request))) for request in (recorded, asked))
    places = dict(zip(before, now, strict=True))
    values, current = (_values(request) for request in (recorded, asked))
    places |= {value: current[name] for name, value in values.items() if name in current}
    return _MEASURED.sub(lambda found: places.get(found[0], found[0]), text)


def _values(request: Request) -> dict[str, str]:
    """Measured values by name."""
    matches = (_VALUE.fullmatch(line) for line in _lines(request))
    return {found["name"]: found["value"] for found in matches if found}


def _read(path: Path) -> list[Exchange]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cassette {path} cannot be read ({error}): check --llm replay:FILE") from error
    exchanges = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            exchanges.append(Exchange.model_validate_json(line))
        except ValidationError as error:
            raise UsageError(f"cassette {path}, line {number} is no exchange: record it again") from error
    return exchanges


def _lines(request: Request) -> list[str]:
    """A request as lines that can be compared."""
    rest: dict[str, Any] = request.model_dump(mode="json", exclude={"system", "messages"})
    head = [f"{key}: {json.dumps(value, sort_keys=True)}" for key, value in rest.items()]
    turns = [line for m in request.messages for line in (f"[{m.role}]", *m.text.splitlines())]
    return [*head, *(line for part in request.system for line in part.splitlines()), *turns]


def _likeness(known: Request, asked: Request) -> float:
    """By shared lines: cheap, and enough to choose what to show."""
    ours, theirs = set(_lines(known)), set(_lines(asked))
    return len(ours & theirs) / max(1, len(ours | theirs))


def _difference(known: Request, asked: Request) -> str:
    found = difflib.unified_diff(_lines(known), _lines(asked), lineterm="", n=0)
    changed = [line[:200] for line in found if not line.startswith(("---", "+++", "@@"))]
    more = (
        [f"... and {len(changed) - _DIFFERENCE_LINES} more lines"] if len(changed) > _DIFFERENCE_LINES else []
    )
    return "\n".join(changed[:_DIFFERENCE_LINES] + more)

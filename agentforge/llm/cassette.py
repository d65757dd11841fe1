"""Cassettes: a run's exchanges with models as JSON lines, recorded and replayed without a network.

Between the exchanges there are lines with what the run measured: its profile and the referee's verdicts.
Two requests match if they are equal without numbers, lines `name = value` and text between `MEASURED_BEGIN`
and `MEASURED_END`. Quoted measurements in the recorded answer are replaced by the current ones.
"""

from __future__ import annotations

import codecs
import difflib
import fcntl
import json
import os
import re
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from agentforge.config import LLMSettings
from agentforge.schema import Evaluation, FrozenModel, Profile, UsageError, content_hash

from ._base import (
    CallFailed,
    LanguageModel,
    Message,
    NotRecorded,
    OutOfTime,
    PromptRefused,
    Request,
    Response,
    Tokens,
)
from .prices import Price

_DIFFERENCE_LINES = 12
_BESIDE = 2
"""Equal words that are shown on each side of a difference."""
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\binf\b|\bnan\b)")
_MEASURED = re.compile(r"-?(?:\d*\.\d{2,}(?:[eE][+-]?\d+)?|\d+(?:\.\d+)?[eE][+-]?\d+)")
"""Numbers that an answer may quote from a prompt, as opposed to numbers of its code."""
_VALUE = re.compile(r"(?P<name>[\w.#]+) = (?P<value>-?[\d.]+(?:e[+-]?\d+)?|inf|nan)")
"""A line with a measured value."""
MEASURED_BEGIN, MEASURED_END = "<measured>", "</measured>"
"""Lines of a prompt around text that only measurements decide, which replaying ignores."""


class Exchange(FrozenModel):
    """One line of a cassette."""

    spec: str
    """Specification of the model that was asked."""
    request: Request
    response: Response | None = None
    """None if the call failed."""
    error: str = ""
    refused: bool = False
    """Whether it failed because the endpoint refuses the prompt."""


class Measured(FrozenModel):
    """One line of a cassette between the exchanges: what was measured. One of the fields is set."""

    profile: Profile | None = None
    evaluation: Evaluation | None = None


_LINE: TypeAdapter[Exchange | Measured] = TypeAdapter(Exchange | Measured)


def append_line(path: Path, line: FrozenModel) -> None:
    """Append one line to a cassette, which is created if need be. Threads and processes take turns.

    Raises:
        UsageError: the file cannot be written; it is as it was.
    """
    data = line.model_dump_json(exclude_none=isinstance(line, Measured)).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":  # a kill ended an earlier write
                data = b"\n" + data
            try:
                while data:
                    data = data[file.write(data) :]
            except OSError:
                file.truncate(size)
                raise
    except OSError as error:
        raise UsageError(f"cassette {path} cannot be written ({error.strerror}): check --record") from error


def read_measured(path: Path) -> list[Measured]:
    """What was measured between the exchanges of a cassette, in recorded order.

    Raises:
        UsageError: the file is missing or not a cassette.
    """
    return [line for line in _read(path) if isinstance(line, Measured)]


class Recorder:
    """A model whose exchanges are appended to a cassette."""

    def __init__(self, model: LanguageModel, path: Path) -> None:
        self.spec, self.model, self.endpoint = model.spec, model.model, model.endpoint
        self._model = model
        self.price = getattr(model, "price", None)
        self._path = path

    def complete(self, request: Request) -> Response:
        """See `LanguageModel.complete`.

        Raises:
            NotRecorded: the cassette cannot be written.
        """
        try:
            response = self._model.complete(request)
        except OutOfTime:  # of the run, which asks again when it is resumed
            raise
        except CallFailed as failure:
            self._append(
                Exchange(
                    spec=self.spec,
                    request=request,
                    error=str(failure),
                    refused=isinstance(failure, PromptRefused),
                ),
                failure.tokens,
            )
            raise
        self._append(Exchange(spec=self.spec, request=request, response=response), response.tokens)
        return response

    def _append(self, exchange: Exchange, tokens: Tokens) -> None:
        try:
            append_line(self._path, exchange)
        except UsageError as error:
            raise NotRecorded(str(error), tokens) from error


class Replay:
    """Answers from a cassette. Each exchange is used once; equal requests are answered in recorded order.

    Raises:
        UsageError: the file is missing or not a cassette.
    """

    price = Price(input=0.0, output=0.0)
    """A replay is not paid."""

    def __init__(self, target: str, settings: LLMSettings | None = None) -> None:
        self.spec = f"replay:{target}"
        self.endpoint = target
        self._path = Path(target)
        exchanges = [line for line in _read(self._path) if isinstance(line, Exchange)]
        self.model = exchanges[0].spec if exchanges else "replay"
        self._requests = [exchange.request for exchange in exchanges]
        self._left: dict[str, deque[Exchange]] = defaultdict(deque)
        for exchange in exchanges:
            self._left[_masked(exchange.request)].append(exchange)
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        """See `LanguageModel.complete`.

        Raises:
            UsageError: the cassette does not contain the request; the message shows the difference.
        """
        with self._lock:
            exchange = self._take(request)
        if exchange is None:
            raise self._missing(request)
        if exchange.response is None:
            raise (PromptRefused if exchange.refused else CallFailed)(exchange.error)
        text = _quoting(exchange.response.text, exchange.request, request)
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
                f"cassette {self._path} contains this request fewer times than it was asked: record it again"
            )
        nearest = max(self._requests, key=lambda known: _likeness(known, request), default=None)
        if nearest is None:
            return UsageError(f"cassette {self._path} is empty: record it with --record")
        return UsageError(
            f"cassette {self._path} does not contain this request: record it again "
            "(the nearest one differs as follows: - cassette, + asked)",
            shown=_difference(nearest, request),
        )


def _masked(request: Request) -> str:
    """Hash of a request without its numbers and without text that only measurements decide."""
    return content_hash("\n".join(_compared(request)), length=32)


def _proposed(request: Request) -> list[str]:
    """A request's lines without those that only measurements decide."""
    lines, inside = [], False
    for line in _lines(request):
        inside = line == MEASURED_BEGIN or (inside and line != MEASURED_END)
        if not inside and line != MEASURED_END and not _VALUE.fullmatch(line):
            lines.append(line)
    return lines


def _quoting(text: str, recorded: Request, asked: Request) -> str:
    """The recorded answer, with quoted measurements replaced by the current ones."""
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


def _read(path: Path) -> list[Exchange | Measured]:
    try:
        lines = path.read_bytes().split(b"\n")  # texts in JSON may have other ends of lines
    except OSError as error:
        raise UsageError(f"cassette {path} cannot be read ({error}): check --llm replay:FILE") from error
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_LINE.validate_json(line))
        except ValidationError as error:
            if _is_torn(line):
                continue
            raise UsageError(f"cassette {path}, line {number} is no exchange: record it again") from error
    return found


def _is_torn(line: bytes) -> bool:
    """Whether a line is only the beginning of one: a kill ended its write, and a resumed run asks again."""
    try:
        from_json(line)
    except ValueError:
        with suppress(ValueError):
            text = codecs.getincrementaldecoder("utf-8")().decode(line)  # without half a character
            return isinstance(from_json(text, allow_partial=True), dict)
    return False


def _lines(request: Request) -> list[str]:
    """A request as lines that can be compared."""
    rest: dict[str, Any] = request.model_dump(mode="json", exclude={"system", "messages", "tools"})
    head = [f"{key}: {json.dumps(value, sort_keys=True)}" for key, value in rest.items()]
    turns = [line for m in request.messages for line in (f"[{m.role}]", *_turn(m))]
    return [*head, *(line for part in request.system for line in part.splitlines()), *turns]


def _turn(message: Message) -> Iterator[str]:
    """The lines of a turn; what tools answered depends on the machine."""
    yield from message.text.splitlines()
    for call in message.calls:
        yield from f"{call.name} {call.arguments}".splitlines()
    for result in message.results:
        yield from (MEASURED_BEGIN, *result.text.splitlines(), MEASURED_END)


def _compared(request: Request) -> list[str]:
    """A request's lines as `_masked` compares them."""
    return [_NUMBER.sub("#", line) for line in _proposed(request)]


def _likeness(known: Request, asked: Request) -> float:
    """Similarity by shared lines."""
    ours, theirs = set(_compared(known)), set(_compared(asked))
    return len(ours & theirs) / max(1, len(ours | theirs))


def _difference(known: Request, asked: Request) -> str:
    """The words that differ, each with those beside it; numbers are no difference."""
    changed: list[str] = []
    for old_lines, new_lines in _changes(_compared(known), _compared(asked)):
        old, new = (" ".join(lines).split() for lines in (old_lines, new_lines))
        for gone, come in _changes(old, new, _BESIDE):
            changed += [
                f"{sign} {' '.join(words)[:200]}" for sign, words in (("-", gone), ("+", come)) if words
            ]
    left = len(changed) - _DIFFERENCE_LINES
    return "\n".join(changed[:_DIFFERENCE_LINES] + ([f"... and {left} more lines"] if left > 0 else []))


def _changes(old: list[str], new: list[str], beside: int = 0) -> Iterator[tuple[list[str], list[str]]]:
    """The parts that differ, with as many equal entries around them; empty if a side has nothing there."""
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield (
                old[max(0, a - beside) : b + beside] if b > a else [],
                new[max(0, c - beside) : d + beside] if d > c else [],
            )

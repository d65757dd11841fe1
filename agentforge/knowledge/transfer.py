"""Knowledge as JSON lines, to carry it to another database.

The first line says what the file is; then one line a strategy (`{"strategy": {...}}`, without records),
one a lesson (`{"lesson": {...}}`) and one an outcome (`{"outcome": {...}}`). Importing merges: what is there
already is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agentforge.schema import Lesson, Outcome, Strategy, UsageError
from agentforge.store import Store

from .base import KnowledgeBase

FORMAT = "agentforge-knowledge"
VERSION = 1
_NOUNS: dict[str, type[Strategy | Outcome | Lesson]] = {
    "strategy": Strategy,
    "outcome": Outcome,
    "lesson": Lesson,
}


@dataclass(frozen=True)
class Transfer:
    """How much was carried."""

    strategies: int
    outcomes: int
    known: int = 0
    """Outcomes of the file that were here already."""


def export_knowledge(base: KnowledgeBase, store: Store, path: Path) -> Transfer:
    """Write all strategies and outcomes to a file, which appears whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    strategies, outcomes = base.strategies(), store.outcomes()
    lessons = [lesson for found in store.lessons().values() for lesson in found]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"format": FORMAT, "version": VERSION}) + "\n")
            for strategy in strategies:
                bare = strategy.model_dump_json(exclude={"records", "lessons"})
                file.write(f'{{"strategy": {bare}}}\n')
            for lesson in lessons:
                file.write(f'{{"lesson": {lesson.model_dump_json()}}}\n')
            for outcome in outcomes:
                file.write(f'{{"outcome": {outcome.model_dump_json()}}}\n')
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written ({error.strerror}): name another file") from error
    return Transfer(len(strategies), len(outcomes))


def import_knowledge(store: Store, path: Path) -> Transfer:
    """Merge a file into the database; nothing is changed where any line of it is wrong.

    A strategy of the file whose identifier a card here has stays as the card says.

    Raises:
        UsageError: the file is not there or a line does not fit; the message names the line.
    """
    strategies: list[Strategy] = []
    outcomes: list[Outcome] = []
    lessons: list[Lesson] = []
    try:
        with path.open(encoding="utf-8") as file:
            for noun in _nouns(file, path):
                if isinstance(noun, Strategy):
                    strategies.append(noun)
                elif isinstance(noun, Lesson):
                    lessons.append(noun)
                else:
                    outcomes.append(noun)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name a file of `kb export`") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: name a file of `agentforge kb export`") from error
    for strategy in strategies:
        store.save_strategy(strategy)
    for lesson in lessons:
        store.save_lesson(lesson)
    new = store.record_outcomes(outcomes)
    return Transfer(len(strategies), new, known=len(outcomes) - new)


def _nouns(lines: Iterator[str], path: Path) -> Iterator[Strategy | Outcome | Lesson]:
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: no JSON ({error}); export it again") from error
        if number == 1:
            _check_header(entry, path)
            continue
        kind, value = next(iter(entry.items())) if isinstance(entry, dict) and len(entry) == 1 else ("", None)
        noun = _NOUNS.get(kind)
        if noun is None:
            raise UsageError(
                f"{path}, line {number}: neither a strategy, an outcome nor a lesson; export it again"
            )
        try:
            yield noun.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"{path}, line {number}: field {field!r}: {first['msg']}") from error


def _check_header(entry: object, path: Path) -> None:
    if not isinstance(entry, dict) or entry.get("format") != FORMAT:
        raise UsageError(f"{path} is no knowledge file: name a file of `agentforge kb export`")
    if entry.get("version") != VERSION:
        raise UsageError(
            f"{path} has version {entry.get('version')} and this agentforge reads {VERSION}: upgrade it"
        )

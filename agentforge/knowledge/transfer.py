"""Export and import knowledge as JSON lines, and merge another database.

The first line of a file names the format. Then each line is a strategy (`{"strategy": {...}}`, without
records), a lesson (`{"lesson": {...}}`) or an outcome (`{"outcome": {...}}`). A verified outcome comes with
its solution and its bottleneck, so that another machine can judge it. Existing entries do not change.
What the database did not know before is `claimed`: nothing proves what a file or another database says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json
from sqlalchemy import make_url

from agentforge.config import sqlite_url
from agentforge.schema import (
    Bottleneck,
    Evidence,
    Lesson,
    Outcome,
    Profile,
    Solution,
    Strategy,
    UsageError,
    content_hash,
    expanded,
    first_fault,
)
from agentforge.store import Store
from agentforge.whole_file import whole_file

from .base import KnowledgeBase

FORMAT = "agentforge-knowledge"
VERSION = 2
"""Version 1 had neither solutions nor bottlenecks."""
CLAIMED = "claimed"
_MOST_ORIGIN = 200
"""Most characters of a claim's origin."""
Noun = Strategy | Outcome | Lesson | Solution | Bottleneck
_NOUNS: dict[str, type[Noun]] = {
    "strategy": Strategy,
    "outcome": Outcome,
    "lesson": Lesson,
    "solution": Solution,
    "bottleneck": Bottleneck,
}


@dataclass(frozen=True)
class Transfer:
    """Counts of an export or import."""

    strategies: int
    outcomes: int
    known: int = 0
    """Outcomes that the database already had, or whose solutions were judged here on their architecture."""
    lessons: int = 0
    """New ones."""


@dataclass(frozen=True)
class Bundle:
    """A file of `kb export` or another database, read and not believed."""

    origin: str = ""
    """What was read, in a few words."""
    strategies: list[Strategy] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    solutions: dict[str, Solution] = field(default_factory=dict)
    """By hash."""
    bottlenecks: dict[str, Bottleneck] = field(default_factory=dict)
    """By the hash of the definition. Its reference is foreign code."""


def export_knowledge(base: KnowledgeBase, store: Store, path: Path) -> Transfer:
    """Write all strategies and outcomes to a file, atomically.

    Raises:
        UsageError: the file cannot be written.
    """
    bundle = _bundle(store, base.strategies(), evidence=True)
    nouns: list[tuple[str, Iterable[Noun]]] = [
        ("strategy", bundle.strategies),
        ("lesson", bundle.lessons),
        ("outcome", bundle.outcomes),
        ("solution", bundle.solutions.values()),
        ("bottleneck", bundle.bottlenecks.values()),
    ]
    if not path.name:
        raise UsageError(f"{path} cannot be written: name a file")
    try:
        with whole_file(path) as draft, draft.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"format": FORMAT, "version": VERSION}) + "\n")
            for kind, found in nouns:
                bodies = (x.model_dump_json(exclude={"records", "lessons"}) for x in found)
                file.writelines(f'{{"{kind}": {body}}}\n' for body in bodies)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): name another file") from error
    return Transfer(len(bundle.strategies), len(bundle.outcomes))


def _bundle(store: Store, strategies: Iterable[Strategy], *, evidence: bool, origin: str = "") -> Bundle:
    """Everything that a database knows.

    Args:
        evidence: with the solutions and bottlenecks of verified outcomes.
    """
    lessons = [lesson for found in store.lessons().values() for lesson in found]
    bundle = Bundle(origin, list(strategies), lessons, list(store.outcomes()))
    known = known_bottlenecks(profiles_of(store)) if evidence else {}
    for solution in filter(None, (_verified(store, o) for o in bundle.outcomes if evidence)):
        if solution.definition in known:
            bundle.solutions[solution.hash] = solution
            bundle.bottlenecks[solution.definition] = known[solution.definition]
    return bundle


def read_database(where: str, own: str, *, evidence: bool = False) -> Bundle:
    """Read what another database knows, without a change to it.

    Args:
        where: its file or URL.
        own: URL of this database.
        evidence: read solutions and bottlenecks too, so that claims can be judged.

    Raises:
        UsageError: it is this database, its path names no user, or one of its entries is invalid.
        StoreError: it is no database, or has the tables of another version.
    """
    url = where if "://" in where else sqlite_url(expanded(where).absolute())
    file, mine = _file(url), _file(own)
    if url == own or (file and mine and file.is_file() and mine.is_file() and file.samefile(mine)):
        raise UsageError(f"{where} is this database itself: name another one")
    with Store(url, read_only=True) as other:
        name = file.name if file else other.where
        return _bundle(other, other.stored_strategies(), evidence=evidence, origin=name)


def _file(url: str) -> Path | None:
    """The file of a SQLite URL."""
    return Path(make_url(url).database or "") if url.startswith("sqlite:///") else None


def profiles_of(store: Store) -> list[Profile]:
    """The profiles of this database's runs, the newest last."""
    found = (store.get_profile(run.id) for run in reversed(store.list_runs()))
    return [profile for profile in found if profile is not None]


def known_bottlenecks(profiles: Iterable[Profile]) -> dict[str, Bottleneck]:
    """What was profiled, by the hash of the definition, as the last profile says."""
    return {b.definition.hash: b for profile in profiles for b in profile.bottlenecks}


def _verified(store: Store, outcome: Outcome) -> Solution | None:
    """The solution of an outcome that was verified here; None if the database lacks it."""
    if outcome.claimed or outcome.evidence is not Evidence.VERIFIED:
        return None
    try:
        return store.get_solution(outcome.solution)
    except UsageError:
        return None


def read_bundle(path: Path) -> Bundle:
    """Read a file of `kb export`.

    Raises:
        UsageError: the file is missing or a line is invalid.
    """
    bundle = Bundle(path.name)
    try:
        with path.open(encoding="utf-8") as file:
            for noun in _parse_lines(file, path):
                if isinstance(noun, Strategy):
                    bundle.strategies.append(noun)
                elif isinstance(noun, Lesson):
                    bundle.lessons.append(noun)
                elif isinstance(noun, Outcome):
                    bundle.outcomes.append(noun)
                elif isinstance(noun, Solution):
                    bundle.solutions[noun.hash] = noun
                else:
                    bundle.bottlenecks[noun.definition.hash] = noun
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name a file of `kb export`") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: name a file of `agentforge kb export`") from error
    return bundle


def import_knowledge(store: Store, source: Path | Bundle) -> Transfer:
    """Merge a file or another database into this one, new entries as claims. If anything is wrong, nothing
    changes; a second time, nothing changes either.

    If a card has the identifier of one of the strategies, the card wins. An outcome whose solution was judged
    here on its architecture is left out, because the verdict took its place.

    Raises:
        UsageError: the file is missing or a line is invalid.
    """
    bundle = source if isinstance(source, Bundle) else read_bundle(source)
    local = store.outcomes(claims=False)
    taught = [entry for found in store.lessons(claims=False).values() for entry in found]
    known = {claim_of(o).id for o in local} | {claim_of(lesson).id for lesson in taught}
    judged = store.judged_solutions(o.solution for o in bundle.outcomes)
    outcomes = [
        claim_of(o, bundle.origin)
        for o in bundle.outcomes
        if (o.solution, o.context.architecture) not in judged
    ]
    _, lessons, new = store.add_knowledge(
        (strategy.model_copy(update={"claimed": True}) for strategy in bundle.strategies),
        (claim for x in bundle.lessons if (claim := claim_of(x, bundle.origin)).id not in known),
        (claim for claim in outcomes if claim.id not in known),
    )
    return Transfer(len(bundle.strategies), new, known=len(bundle.outcomes) - new, lessons=lessons)


Entry = TypeVar("Entry", Lesson, Outcome)


def claim_of(entry: Entry, origin: str = "") -> Entry:
    """An entry under an identifier that no entry of this database will ever have."""
    text = entry.text if isinstance(entry, Lesson) else ""
    identifier = content_hash([CLAIMED, entry.strategy, entry.evaluation, text], length=24)
    through = ", ".join(filter(None, (origin, entry.origin)))[:_MOST_ORIGIN]
    return entry.model_copy(update={"id": identifier, "claimed": True, "origin": through})


def _parse_lines(lines: Iterator[str], path: Path) -> Iterator[Noun]:
    _check_header(_parse(next(lines, "null"), 1, path), path)
    for number, line in enumerate(lines, 2):
        entry = _parse(line, number, path)
        kind, value = next(iter(entry.items())) if isinstance(entry, dict) and len(entry) == 1 else ("", None)
        record = _NOUNS.get(kind)
        if record is None:
            raise UsageError(f"{path}, line {number}: none of {', '.join(_NOUNS)}; export it again")
        try:
            yield record.model_validate(value)
        except ValidationError as error:
            field, message = first_fault(error)
            raise UsageError(f"{path}, line {number}: field {field!r}: {message}") from error


def _parse(line: str, number: int, path: Path) -> Any:
    """One line. This parser, unlike `json.loads`, refuses half of a character and lists without end."""
    try:
        return from_json(line)
    except ValueError as error:
        raise UsageError(f"{path}, line {number}: no JSON ({error}); export it again") from error


def _check_header(entry: object, path: Path) -> None:
    if not isinstance(entry, dict) or entry.get("format") != FORMAT:
        raise UsageError(f"{path} is no knowledge file: name a file of `agentforge kb export`")
    if entry.get("version") not in (1, VERSION):
        raise UsageError(
            f"{path} has version {entry.get('version')} and this agentforge reads {VERSION}: upgrade it"
        )

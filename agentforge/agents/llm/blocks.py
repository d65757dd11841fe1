"""Code in answers: whole files, or edits of a parent's files that must apply exactly.

FILE: kernel.cpp                    EDIT: kernel.cpp
```cpp                              <<<<<<< SEARCH
...                                 lines as they are
```                                 =======
                                    lines as they shall be
                                    >>>>>>> REPLACE
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from agentforge.schema import Solution, SourceFile

MOST_CHARACTERS = 400_000
"""Of one answer's code."""

_HEAD = r"^[ \t]*(?:[#*>`-]+[ \t]*)*\**"
_FILE = re.compile(
    _HEAD + r"FILE:?\**:?[ \t]*[`*]*(?P<path>[\w./+-]+)[`*:]*[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_EDIT = re.compile(
    _HEAD + r"EDIT:?\**:?[ \t]*[`*]*(?P<path>[\w./+-]+)[`*:]*[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_FENCE = re.compile(
    r"^[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)\n(?P<body>.*?)^[ \t]*(?P=ticks)[ \t]*$",
    re.M | re.S,
)
_CHANGE = re.compile(
    r"^<{5,}[ \t]*SEARCH[ \t]*\n(?P<old>.*?)^={5,}[ \t]*\n(?P<new>.*?)^>{5,}[ \t]*REPLACE[ \t]*$", re.M | re.S
)
_LANGUAGES = {"cpp": "kernel.cpp", "c++": "kernel.cpp", "cc": "kernel.cpp", "c": "kernel.cpp",
              "cuda": "kernel.cu", "cu": "kernel.cu",
              "python": "model_new.py", "py": "model_new.py"}  # fmt: skip
"""File that a fence without a name is taken for, where it is the only one of its language."""


class Unreadable(Exception):
    """An answer whose code cannot be used; the message tells its author why."""


@dataclass(frozen=True)
class _Edit:
    path: str
    old: str
    new: str


def sources(text: str, parent: Solution | None) -> tuple[SourceFile, ...]:
    """The files that an answer describes.

    Args:
        text: the answer.
        parent: whose files edits apply to; None where there is none.

    Raises:
        Unreadable: no code, code that no file can be named for, an edit that does not apply exactly.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    if len(text) > MOST_CHARACTERS:
        raise Unreadable(f"the answer is longer than {MOST_CHARACTERS} characters")
    files = {s.path: s.content for s in parent.sources} if parent else {}
    written = _files(text)
    edits = _edits(text)
    if not written and not edits:
        written = _bare(text)
    if edits and parent is None:
        raise Unreadable("there is no parent that an edit could apply to: write whole FILEs")
    files.update(written)
    for edit in edits:
        files[edit.path] = _applied(edit, files)
    try:
        return tuple(SourceFile(path=path, content=content) for path, content in sorted(files.items()))
    except ValidationError as error:
        raise Unreadable(str(error.errors()[0]["msg"])) from error


def _files(text: str) -> dict[str, str]:
    """Fences by the FILE line before them, else by their language where it is told apart by that."""
    outside = _CHANGE.sub("", text)
    found: dict[str, str] = {}
    nameless: dict[str, list[str]] = {}
    end = 0
    for fence in _FENCE.finditer(outside):
        names = [m["path"] for m in _FILE.finditer(outside, end, fence.start())]
        end = fence.end()
        info = fence["info"].strip().split()
        named = names[-1] if names else next((w for w in info[1:] if re.fullmatch(r"[\w/+-]+\.\w+", w)), None)
        if named:
            found[named] = fence["body"]
        elif info and info[0].lower() in _LANGUAGES:
            nameless.setdefault(_LANGUAGES[info[0].lower()], []).append(fence["body"])
    for path, bodies in nameless.items():
        if path in found:
            continue
        if len(bodies) > 1:
            raise Unreadable(f"{len(bodies)} blocks could be {path}: put a line `FILE: name` before each one")
        found[path] = bodies[0]
    return found


def _edits(text: str) -> list[_Edit]:
    heads = [(m.start(), m["path"]) for m in _EDIT.finditer(text)]
    edits = []
    for change in _CHANGE.finditer(text):
        path = next((path for start, path in reversed(heads) if start < change.start()), None)
        if path is None:
            raise Unreadable("a SEARCH block without a line `EDIT: name` before it")
        edits.append(_Edit(path, change["old"], change["new"]))
    if heads and not edits:
        raise Unreadable("an EDIT without a SEARCH block that is closed by >>>>>>> REPLACE")
    return edits


def _bare(text: str) -> dict[str, str]:
    """A Python file that stands in no fence."""
    start = re.search(r'^(?:import |from |""")', text, re.MULTILINE)
    if "class ModelNew" in text and start is not None and "```" not in text:
        return {"model_new.py": text[start.start() :]}
    raise Unreadable("the answer holds no file: write `FILE: name` and then the code in a fence")


def _applied(edit: _Edit, files: Mapping[str, str]) -> str:
    """The file after an edit that fits at exactly one place."""
    if edit.path not in files:
        raise Unreadable(f"there is no file {edit.path} to edit: the files are {', '.join(sorted(files))}")
    content = files[edit.path].replace("\r\n", "\n")
    if not edit.old.strip():
        raise Unreadable(f"an empty SEARCH block for {edit.path}")
    places = content.count(edit.old)
    if places != 1:
        how = "not in the file as written" if places == 0 else f"in the file {places} times"
        first = edit.old.strip().splitlines()[0][:120]
        raise Unreadable(
            f"the SEARCH block that begins {first!r} is {how} ({edit.path}): it must fit exactly once"
        )
    return content.replace(edit.old, edit.new)

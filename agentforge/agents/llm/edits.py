"""Parse code in answers: whole files, or edits that must apply to a parent's file exactly.

FILE: kernel.cpp                    EDIT: kernel.cpp
```cpp                              <<<<<<< SEARCH
...                                 the lines to replace
```                                 =======
                                    the new lines
                                    >>>>>>> REPLACE
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from pydantic import ValidationError

from agentforge.languages import all_languages
from agentforge.schema import Solution, SourceFile

MOST_CHARACTERS = 400_000
"""Most characters of one answer's code."""

_EDITED = "\0"
"""Takes the place of an edit while files are looked for: a fence around edits is no file."""

_HEAD = r"^[ \t#*>`-]*"  # one class: nested repeats would never end at a ruler of dashes
_PATH = r"(?=[ \t:*`]):?\**:?[ \t]*[`*]*(?P<path>[\w./+-]+)[`*:]*[ \t]*$"
_FILE, _EDIT = (re.compile(_HEAD + word + _PATH, re.MULTILINE | re.IGNORECASE) for word in ("FILE", "EDIT"))
_FENCE = re.compile(
    r"^[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)\n(?P<body>.*?)(?:^[ \t]*(?P=ticks)[ \t]*$|\Z)",
    re.M | re.S,
)
_SEARCH, _DIVIDER, _REPLACE = r"<{5,}[ \t]*SEARCH[ \t]*\n", r"={5,}[ \t]*\n", r">{5,}[ \t]*REPLACE[ \t]*$"
_CHANGE = re.compile(
    rf"^{_SEARCH}(?P<old>(?:(?!{_SEARCH}|{_DIVIDER}).*\n)*){_DIVIDER}"
    rf"(?P<new>(?:(?!{_SEARCH}|{_REPLACE}).*\n)*){_REPLACE}",
    re.M,
)


@cache
def _fences() -> dict[str, str]:
    """File of a fence without a name, if it is the only one of its language."""
    return {fence: info.kernel_file for _, info in all_languages() for fence in info.fences}


class Unreadable(Exception):
    """The code of an answer cannot be used. The message says why; the model reads it."""


@dataclass(frozen=True)
class _Edit:
    path: str
    old: str
    new: str


def sources(text: str, parent: Solution | None) -> tuple[SourceFile, ...]:
    """The files that an answer describes.

    Args:
        parent: the solution that edits apply to, or None.

    Raises:
        Unreadable: no code, code without a file name, or an edit that does not apply exactly.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "").replace(_EDITED, "")
    if len(text) > MOST_CHARACTERS:
        raise Unreadable(f"the answer is longer than {MOST_CHARACTERS} characters")
    files = {s.path: s.content for s in parent.sources} if parent else {}
    written = _files(text)
    edits = _edits(text)
    if not written and not edits:
        written = _unfenced(text)
    if edits and parent is None:
        raise Unreadable("there is no parent that an edit could apply to: write whole FILEs")
    files.update(written)
    for edit in edits:
        files[edit.path] = _applied(edit, files)
    try:
        return tuple(SourceFile(path=path, content=content) for path, content in sorted(files.items()))
    except ValidationError as error:
        raise Unreadable(str(error.errors()[0]["msg"])) from error


def _path(head: re.Match[str]) -> str:
    """The path of a FILE or EDIT line; `./kernel.cpp` is `kernel.cpp`."""
    return str(PurePosixPath(head["path"]))


def _files(text: str) -> dict[str, str]:
    """Fences by the FILE line before them, or by their language if that determines the file."""
    outside = _CHANGE.sub(_EDITED, text)
    found: dict[str, str] = {}
    nameless: dict[str, list[str]] = {}
    end = 0
    for fence in _FENCE.finditer(outside):
        names = [_path(m) for m in _FILE.finditer(outside, end, fence.start())]
        end = fence.end()
        info = fence["info"].strip().split()
        named = names[-1] if names else next((w for w in info[1:] if re.fullmatch(r"[\w/+-]+\.\w+", w)), None)
        if _EDITED in fence["body"]:
            continue
        if named:
            found[named] = fence["body"]
        elif info and info[0].lower() in _fences():
            nameless.setdefault(_fences()[info[0].lower()], []).append(fence["body"])
    for path, bodies in nameless.items():
        if path in found:
            continue
        if len(bodies) > 1:
            raise Unreadable(f"{len(bodies)} blocks could be {path}: put a line `FILE: name` before each one")
        found[path] = bodies[0]
    return found


def _edits(text: str) -> list[_Edit]:
    heads = [(m.start(), _path(m)) for m in _EDIT.finditer(text)]
    edits = []
    for change in _CHANGE.finditer(text):
        path = next((path for start, path in reversed(heads) if start < change.start()), None)
        if path is None:
            raise Unreadable("a SEARCH block without a line `EDIT: name` before it")
        edits.append(_Edit(path, change["old"], change["new"]))
    if heads and not edits:
        raise Unreadable("an EDIT without a SEARCH block that is closed by >>>>>>> REPLACE")
    return edits


def _unfenced(text: str) -> dict[str, str]:
    """Files outside any fence: by the FILE lines before them, or one Python file."""
    heads = list(_FILE.finditer(text))
    if heads and "```" not in text:
        ends = [*(head.start() for head in heads[1:]), len(text)]
        return {_path(h): text[h.end() : end].strip("\n") + "\n" for h, end in zip(heads, ends, strict=True)}
    start = re.search(r'^(?:import |from |""")', text, re.MULTILINE)
    if "class ModelNew" in text and start is not None and "```" not in text:
        return {"model_new.py": text[start.start() :]}
    raise Unreadable("the answer contains no file: write `FILE: name` and then the code in a fence")


def _applied(edit: _Edit, files: Mapping[str, str]) -> str:
    """Apply an edit that matches at exactly one place."""
    if edit.path not in files:
        raise Unreadable(f"there is no file {edit.path} to edit: the files are {', '.join(sorted(files))}")
    content = files[edit.path].replace("\r\n", "\n")
    if not edit.old.strip():
        raise Unreadable(f"an empty SEARCH block for {edit.path}")
    places = content.count(edit.old)
    if places == 1:
        return content.replace(edit.old, edit.new)
    if places == 0 and not edit.path.endswith(".py") and (found := _but_for_spaces(edit.old, content)):
        return content.replace(found, edit.new)
    how = (
        f"in the file {places} times"
        if places
        else f"not in the file as written{_nearest(edit.old, content)}"
    )
    first = edit.old.strip().splitlines()[0][:120]
    raise Unreadable(
        f"the SEARCH block that begins {first!r} is {how} ({edit.path}): it must fit exactly once"
    )


def _but_for_spaces(old: str, content: str) -> str | None:
    """The only lines of a file that equal the block except for spaces; None if there are none or several.

    Not for Python, whose indentation has a meaning.
    """
    wanted, lines = ["".join(line.split()) for line in old.splitlines()], content.splitlines(keepends=True)
    bare = ["".join(line.split()) for line in lines]
    places = [i for i in range(len(bare) - len(wanted) + 1) if bare[i : i + len(wanted)] == wanted]
    found = "".join(lines[places[0] : places[0] + len(wanted)]) if len(places) == 1 else ""
    return found if found and content.count(found) == 1 else None


def _nearest(old: str, content: str) -> str:
    """The line of a file that resembles the block's first one most, as an objection says it."""
    first = next(line.strip() for line in old.splitlines() if line.strip())
    close = difflib.get_close_matches(first, [line.strip() for line in content.splitlines()], n=1)
    return f"; the nearest line is {close[0][:120]!r}" if close else ""

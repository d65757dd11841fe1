"""`@tune` comments: numbers in a kernel's source that the tuner may change.

    constexpr int BLOCK = 128;  // @tune BLOCK = 128 in {64, 128, 256}
    ROWS: tl.constexpr = 4  # @tune ROWS = 4 in {1, 2, 4, 8}

A comment on a line of its own is about the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentforge.schema import Solution, SourceFile

FORM = "// @tune NAME = DEFAULT in {A, B, C}"
MOST_NAMES, MOST_VALUES = 6, 16

_COMMENT = re.compile(r"(?://|#)\s*@tune\b(?P<said>.*)$")
_SAID = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<default>-?\d+)\s+in\s*\{(?P<values>\s*-?\d+\s*(?:,\s*-?\d+\s*)*)\}\s*"
)


class BadTune(ValueError):
    """A `@tune` comment that cannot be followed; the message says how to write it."""


@dataclass(frozen=True)
class Tunable:
    """A number that may change."""

    file: str
    comment: int
    """Line of the comment, from 0."""
    line: int
    """Line that sets it, from 0."""
    name: str
    default: int
    values: tuple[int, ...]

    @property
    def setting(self) -> re.Pattern[str]:
        """Finds the default where it is set: `NAME = 1`, `NAME: type = 1`, `#define NAME 1`."""
        return re.compile(rf"(\b{self.name}\b(?:\s*:[^=/#]*=|\s*=|\s)\s*){self.default}(?![\w.])")


def tunables(solution: Solution) -> tuple[Tunable, ...]:
    """All `@tune` comments of a solution.

    Raises:
        BadTune: one of them cannot be followed.
    """
    found = [one for file in solution.sources for one in _of_file(file)]
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadTune(f"`@tune` names {twice} twice: write one comment, on the line that sets it")
    if len(found) > MOST_NAMES:
        raise BadTune(f"there are {len(found)} `@tune` comments: keep the {MOST_NAMES} that matter most")
    return tuple(found)


def with_values(solution: Solution, point: Mapping[str, int]) -> Solution:
    """The solution with other values in the places of its tunables; the comments say the new defaults."""
    files = {file.path: file.content.split("\n") for file in solution.sources}
    for one in tunables(solution):
        lines, value = files[one.file], point.get(one.name, one.default)
        lines[one.line] = one.setting.sub(rf"\g<1>{value}", lines[one.line], count=1)
        before, sign, said = lines[one.comment].partition("@tune")
        name, equals, values = said.partition("=")
        now = values.replace(f"{one.default}", f"{value}", 1)
        lines[one.comment] = before + sign + name + equals + now
    sources = [{"path": path, "content": "\n".join(lines)} for path, lines in files.items()]
    parameters = {**solution.parameters, **point}
    return Solution.model_validate({**solution.model_dump(), "sources": sources, "parameters": parameters})


def _of_file(file: SourceFile) -> Iterator[Tunable]:
    lines = file.content.split("\n")
    for number, text in enumerate(lines):
        comment = _COMMENT.search(text)
        if comment is None:
            continue
        where = f"{file.path}, line {number + 1}"
        said = _SAID.fullmatch(comment["said"])
        if said is None:
            raise BadTune(f"{where}: write `{FORM}` with whole numbers, not {comment[0]!r}")
        name, default = said["name"], int(said["default"])
        values = tuple(map(int, said["values"].split(",")))
        if default not in values or not 2 <= len(set(values)) == len(values) <= MOST_VALUES:
            raise BadTune(
                f"{where}: {name} needs 2 to {MOST_VALUES} different values, its default {default} among them"
            )
        at = number if text[: comment.start()].strip() else number + 1
        one = Tunable(file.path, number, at, name, default, values)
        code = text[: comment.start()] if at == number else "".join(lines[at : at + 1])
        if one.setting.search(code) is None:
            raise BadTune(
                f"{where}: the line that `@tune` is about must set {name} to {default}, "
                f"as `constexpr int {name} = {default};` does"
            )
        yield one

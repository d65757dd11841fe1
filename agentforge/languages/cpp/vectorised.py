"""Read g++'s vectoriser report (`-fopt-info-vec-optimized-missed`) as metrics and findings by line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from agentforge.languages.untrusted import read_regular
from agentforge.schema import Finding, Metric

_MOST_BYTES = 4 << 20
"""Maximum bytes read."""
_MOST_FINDINGS = 20
"""Of each kind."""
_LINE = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d{1,9}):(?P<column>\d{1,9}): "
    r"(?P<kind>optimized|missed): *(?P<message>.*)$"
)
_VECTORS = re.compile(r"loop vectorized using (\d{1,9}) byte")
_NO_LOOP = "couldn't vectorize loop"
_NEST = ("loop nest containing two or more", "multiple nested loops")
"""Why g++ vectorises no loop around several others; these have lines of their own."""


def read_report(path: Path) -> str | None:
    """The beginning of a report; None if it cannot be read."""
    try:
        return read_regular(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def vectorisation(report: str) -> tuple[tuple[Metric, ...], tuple[Finding, ...]]:
    """Parse a report. Never raises.

    Returns:
        `vectorised_loops`, `missed_loops` (without a vectorised version, and around no vectorised loop),
        `vector_bytes` (the widest vectors), and a finding per loop of the solution's own files: its vector
        width, or why it stays scalar.
    """
    wide: dict[tuple[str, int], int] = {}
    found: dict[tuple[str, int], tuple[str, int]] = {}
    lines = [m for m in map(_LINE.match, report.splitlines()) if m is not None]
    for number, match in enumerate(lines):
        where = (match["file"], int(match["line"]))
        vectors = _VECTORS.match(match["message"])
        if vectors:
            wide[where] = max(wide.get(where, 0), int(vectors[1]))
        elif match["kind"] == "missed" and match["message"].startswith(_NO_LOOP):
            found.setdefault(where, _why(match, lines[number + 1] if number + 1 < len(lines) else None))
    missed = {
        where: why
        for where, (why, line) in found.items()
        if where not in wide and not _around(where, why, line, wide)
    }
    metrics = (
        Metric(name="vectorised_loops", value=len(wide), source="compiler"),
        Metric(name="missed_loops", value=sum(_own(file) for file, _ in missed), source="compiler"),
        Metric(name="vector_bytes", value=max(wide.values(), default=0), unit="B", source="compiler"),
    )
    return metrics, (*islice(_missed(missed), _MOST_FINDINGS), *islice(_wide(wide), _MOST_FINDINGS))


def _why(verdict: re.Match[str], after: re.Match[str] | None) -> tuple[str, int]:
    """The reason, if given on the line after the verdict, and the line of the file that it is about."""
    if after is None or after["kind"] != "missed" or after["message"].startswith(_NO_LOOP):
        return "", int(verdict["line"])
    line = after["line"] if after["file"] == verdict["file"] else verdict["line"]
    return after["message"].removeprefix("not vectorized: ").strip()[:200], int(line)


def _around(loop: tuple[str, int], why: str, line: int, wide: Collection[tuple[str, int]]) -> bool:
    """True for a loop around others of which one is vectorised, or around several."""
    file, begin = loop
    return why.startswith(_NEST) or any(other == file and begin < inner <= line for other, inner in wide)


def _missed(loops: dict[tuple[str, int], str]) -> Iterator[Finding]:
    for (file, line), why in loops.items():
        if _own(file):
            yield Finding(
                source="compiler", title="loop not vectorised", message=why, file=_name(file), line=line
            )


def _wide(loops: dict[tuple[str, int], int]) -> Iterator[Finding]:
    for (file, line), width in loops.items():
        if _own(file):
            title = f"loop vectorised with {width}-byte vectors"
            yield Finding(source="compiler", title=title, file=_name(file), line=line)


def _own(file: str) -> bool:
    """True for a file of the solution: sources are compiled by relative names, foreign headers are not."""
    return not file.startswith(("/", "<")) and not file.startswith("../")


def _name(file: str) -> str:
    return file.removeprefix("./")

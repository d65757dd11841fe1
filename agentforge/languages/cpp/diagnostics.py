"""Parse the output of C++ compilers and linkers into `Diagnostic`s."""

from __future__ import annotations

import re
from typing import Literal

from agentforge.schema import Diagnostic

_LIMIT = 50
_TEXT = re.compile(
    r"^(?:cc1plus:|(?P<file>[^\s:][^:\n]*):(?P<line>\d{1,9}):(?:(?P<column>\d{1,9}):)?)\s*"
    r"(?P<severity>fatal error|error|warning|note):\s*(?P<message>.*)$"
)
_LINKER = re.compile(r"undefined reference|multiple definition|cannot find|collect2: |ld returned|^/\S*ld: ")
_Severity = Literal["error", "warning", "note"]


def _severity(kind: str) -> _Severity:
    if kind in ("warning", "note"):
        return kind  # type: ignore[return-value]
    return "error"


def _from_text(line: str) -> Diagnostic | None:
    match = _TEXT.match(line)
    if match:
        return Diagnostic(
            severity=_severity(match["severity"]),
            message=match["message"],
            file=match["file"] or "",
            line=int(match["line"] or 0),
            column=int(match["column"] or 0),
        )
    if _LINKER.search(line):
        return Diagnostic(severity="error", message=line.strip())
    return None


def parse_diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """Parse the text that g++, clang++ and their linkers print.

    Never raises. At most 50 diagnostics are kept, errors before warnings before later notes.
    """
    found = [d for d in map(_from_text, text.splitlines()) if d is not None]
    order = {"error": 0, "warning": 1, "note": 1}
    return tuple(sorted(found, key=lambda d: order[d.severity])[:_LIMIT])

"""Parse the output of C++ compilers and linkers into `Diagnostic`s."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from agentforge.schema import Diagnostic

_LIMIT = 50
_TEXT = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s*"
    r"(?P<severity>fatal error|error|warning|note):\s*(?P<message>.*)$"
)
_LINKER = re.compile(r"undefined reference|multiple definition|cannot find|collect2: |ld returned|^/\S*ld: ")
_Severity = Literal["error", "warning", "note"]


def _severity(kind: str) -> _Severity:
    if kind in ("warning", "note"):
        return kind  # type: ignore[return-value]
    return "error"


def _from_json(record: Any) -> Iterator[Diagnostic]:
    if not isinstance(record, dict) or not isinstance(record.get("message"), str):
        return
    locations = record.get("locations") or [{}]
    caret = locations[0].get("caret", {}) if isinstance(locations[0], dict) else {}
    yield Diagnostic(
        severity=_severity(str(record.get("kind"))),
        message=record["message"],
        file=str(caret.get("file", "")),
        line=int(caret.get("line", 0)),
        column=int(caret.get("column", 0)),
    )
    for child in record.get("children") or ():
        yield from _from_json(child)


def _from_text(line: str) -> Diagnostic | None:
    match = _TEXT.match(line)
    if match:
        return Diagnostic(
            severity=_severity(match["severity"]),
            message=match["message"],
            file=match["file"],
            line=int(match["line"]),
            column=int(match["column"] or 0),
        )
    if _LINKER.search(line):
        return Diagnostic(severity="error", message=line.strip())
    return None


def parse_diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """Parse the output of g++ or clang++: lines of JSON (`-fdiagnostics-format=json`) mixed with plain text.

    Never raises. At most 50 diagnostics are kept, errors before warnings before later notes.
    """
    found: list[Diagnostic] = []
    for line in text.splitlines():
        if line.startswith("["):
            try:
                records = json.loads(line)
                found += [d for record in records for d in _from_json(record)]
                continue
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                pass
        diagnostic = _from_text(line)
        if diagnostic is not None:
            found.append(diagnostic)
    order = {"error": 0, "warning": 1, "note": 1}
    return tuple(sorted(found, key=lambda d: order[d.severity])[:_LIMIT])

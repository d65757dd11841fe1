"""Which code judges: verdicts of two codes can differ, also if both are of one version."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from agentforge.schema import JudgingCode

if TYPE_CHECKING:
    from agentforge.loop import RunLog

_JUDGES = ("referee", "languages", "isolation", "problems", "devices")
"""Packages whose code decides a verdict."""


@cache
def judging_code() -> str:
    """Hash of this machine's code that judges, 16 characters."""
    digest = sha256()
    for package in _JUDGES:
        folder = Path(__file__).parents[1] / package
        for file in sorted(f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def keep_code(run_log: RunLog) -> None:
    """Record that this code judges the run from now on, beside the codes of its earlier sessions."""
    known = run_log.record(JudgingCode)
    earlier = known.codes if known else ()
    if judging_code() not in earlier:
        run_log.keep(JudgingCode(codes=(*earlier, judging_code())))

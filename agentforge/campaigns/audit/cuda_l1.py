"""CUDA-L1's release: JSON lines with `level_id`, `task_id`, `ref_code`, `custom_code` and `score_*`.

There is a file for each GPU. `custom_code` is null, or the text "None", if there is no kernel.

Reference: the README of https://github.com/deepreinforce-ai/CUDA-L1 (Li et al., arXiv 2507.14111).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentforge.schema import UsageError

from ..suites._base import json_lines
from ._base import Claim, Submission, number, read_text, text_file
from .kernelbench import problem_files

_HEAD = 1 << 20
"""Bytes of a file that decide whether it is such a release."""


class CudaL1Release:
    """A file of the release or a folder of them. `problems`, a clone of KernelBench, replaces `ref_code`."""

    name = "cuda-l1"
    form = "JSON lines with level_id, task_id, ref_code and custom_code"

    def accepts(self, place: Path) -> bool:
        """See `Layout`."""
        return any(map(_is_release, _files(place)))

    def submissions(self, place: Path, problems: Path | None, scratch: Path) -> Iterator[Submission]:
        """See `Layout`."""
        files = [path for path in _files(place) if path == place or _is_release(path)]
        if not files:
            raise UsageError(f"{place} has no file of CUDA-L1's release: name one, for example a100.json")
        for path in files:
            entries = json_lines(read_text(path), path)
            for at, entry in entries:
                if not _is_entry(entry):
                    raise UsageError(f"{at}: no level_id, task_id and ref_code")
            levels = sorted({entry["level_id"] for _, entry in entries})
            own = problem_files(problems, levels) if problems else {}
            for _, entry in entries:
                yield self._submission(path.stem, entry, own if problems else None, scratch)

    @staticmethod
    def _submission(
        device: str, entry: dict[str, Any], own: dict[tuple[int, int], Path] | None, scratch: Path
    ) -> Submission:
        level, task, code = entry["level_id"], entry["task_id"], entry.get("custom_code")
        written = isinstance(code, str) and code.strip() not in ("", "None")
        reference = text_file(scratch, "reference.py", entry["ref_code"]) if own is None else None
        reference = reference or (own or {}).get((level, task))
        unusable = "" if reference else f"--problems has no problem {task} at level {level}"
        return Submission(
            id=f"{device}/level{level}/{task}",
            problem=f"level{level}/{task}",
            reference=reference,
            solution=text_file(scratch, "model_new.py", code) if isinstance(code, str) and written else None,
            claim=Claim(correct=True, speedup=number(entry.get("score_default")), device=device)
            if written
            else Claim(),
            unusable=unusable if written else "the release has no code for it",
        )


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(p for p in place.glob("*.json*") if p.is_file())


def _is_release(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _is_entry(json.loads(file.readline(_HEAD)))
    except (OSError, ValueError, RecursionError):
        return False


def _is_entry(entry: Any) -> bool:
    numbers = isinstance(entry, dict) and all(type(entry.get(k)) is int for k in ("level_id", "task_id"))
    return numbers and isinstance(entry.get("ref_code"), str)

"""A solution as a folder: its files, and `solution.json` with what the files do not say."""

from __future__ import annotations

import json
from pathlib import Path

from agentforge.schema import Solution

MANIFEST = "solution.json"
"""Holds language, entry point, flags, dependencies, author, name; the run-time modules read the flags."""


def write_solution(solution: Solution, folder: Path) -> None:
    """Write the files of `solution` and its manifest into `folder`, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in solution.sources:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.content)
    if not any(file.path == MANIFEST for file in solution.sources):
        (folder / MANIFEST).write_text(manifest_text(solution))


def manifest_text(solution: Solution) -> str:
    """The manifest's JSON."""
    record = {
        "name": solution.name,
        "author": solution.author,
        "description": solution.description,
        "parameters": solution.parameters,
        **solution.spec.model_dump(mode="json"),
    }
    return json.dumps(record, indent=1) + "\n"

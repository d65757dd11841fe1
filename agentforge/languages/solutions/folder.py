"""A solution as a folder: its files, the manifest `solution.json`, and the run-time modules."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from pathlib import Path

from agentforge.languages.lookup import language_info
from agentforge.schema import Diagnostic, MachineError, Solution

MANIFEST = "solution.json"
"""Name, author, description, parameters and the build spec; the run-time modules read its flags."""
CPP_RUNTIME = "agentforge_cpp.py"
"""Name of the `cpp` run-time module beside a solution's sources."""


def runtime_files(language: str) -> dict[str, str]:
    """Files that solutions in `language` import at run time: path in the solution's folder to text."""
    return {
        name: file.read_text(encoding="utf-8") for name, file in language_info(language).runtime_files.items()
    }


def write_solution(solution: Solution, folder: Path) -> None:
    """Write `solution` as a folder that imports without AgentForge.

    Sources with the names of run-time modules or of the top-level manifest are ignored; manifests in
    sub-folders are kept.

    Args:
        folder: created if missing; files of the same name are replaced.
    """
    files = {file.path: file.content for file in solution.sources}
    files[MANIFEST] = manifest_text(solution)
    files.update(runtime_files(solution.spec.language))
    write_files(files, folder)


def write_files(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write texts by path relative to a folder, and return the files."""
    written = []
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        written.append(path)
    return written


def write_or_explain(solution: Solution, folder: Path) -> Diagnostic | None:
    """`write_solution` for untrusted solutions: clashing or invalid file names become a diagnostic.

    Raises:
        MachineError: the disk is full.
    """
    try:
        write_solution(solution, folder)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise MachineError(f"no space is left in {folder}; free some and try again") from error
        return Diagnostic(message=f"the sources cannot be written as files: {error.strerror}")
    return None


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

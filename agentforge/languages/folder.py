"""A solution as a folder: its files, `solution.json` with what the files do not say, the run-time module."""

from __future__ import annotations

import errno
import json
from pathlib import Path

from agentforge.schema import Diagnostic, MachineError, Solution

MANIFEST = "solution.json"
"""Name, author, description, parameters and the build spec; the run-time modules read the flags in it."""
CPP_RUNTIME = "agentforge_cpp.py"
"""Name under which the run-time module of `cpp` lies beside a solution's sources."""

_RUNTIMES = {
    "cpp": {CPP_RUNTIME: "cpp/runtime.py"},
    "cuda": {
        CPP_RUNTIME: "cpp/runtime.py",
        "agentforge_cuda.py": "cuda/runtime.py",
        "agentforge_driver.py": "cuda/driver.py",
        "agentforge_emulated.py": "cuda/emulated.py",
        "agentforge_launches.py": "cuda/launches.py",
        "agentforge_nvrtc.py": "cuda/nvrtc.py",
    },
}


def runtime_files(language: str) -> dict[str, str]:
    """Files that solutions in `language` import at run time: path in the solution's folder to text."""
    return {
        name: (Path(__file__).parent / file).read_text(encoding="utf-8")
        for name, file in _RUNTIMES.get(language, {}).items()
    }


def write_solution(solution: Solution, folder: Path) -> None:
    """Write `solution` as a folder that imports without AgentForge.

    The run-time module is always ours: a file of that name among the sources is not written. A manifest
    among the sources (of a kernel in a sub-folder, say) is kept; the one at the top is always ours.

    Args:
        solution: what to write.
        folder: made if need be; files of the same name are replaced.
    """
    files = {file.path: file.content for file in solution.sources}
    files[MANIFEST] = manifest_text(solution)
    files.update(runtime_files(solution.spec.language))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", errors="surrogatepass", newline="")


def write_or_explain(solution: Solution, folder: Path) -> Diagnostic | None:
    """`write_solution` for untrusted solutions: file names that clash or that no disk takes are diagnostics.

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

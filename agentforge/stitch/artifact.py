"""Write the artifact: a folder that imports without AgentForge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentforge.languages import PRELUDE, export_single_file, languages, run_command
from agentforge.schema import MachineError, Solution, Target
from agentforge.whole_file import whole_artifact

from .report import report_markdown, which_calls

_BUILD_TIMEOUT_S = 600.0
_TEMPLATES = Path(__file__).with_name("templates")


def write_artifact(
    folder: Path, target: Target, solution: Solution, report: Mapping[str, Any], *, cache: Path
) -> None:
    """Write all files into `folder`, or none of them.

    Args:
        folder: created if missing; an earlier artifact in it is replaced.

    Raises:
        UsageError: `folder` contains something that is not an artifact.
        MachineError: the kernels no longer build on this machine, or the folder cannot be written.
    """
    with whole_artifact(folder) as scratch:
        _fill(scratch, folder.absolute().name, target, solution, report, cache)


def _fill(
    scratch: Path, name: str, target: Target, solution: Solution, report: Mapping[str, Any], cache: Path
) -> None:
    build_into(scratch, solution, target.device, cache)
    (scratch / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (scratch / "report.md").write_text(report_markdown(report), encoding="utf-8")
    package = name if name.isidentifier() else "artifact"
    calls = which_calls(report["mode"]) or "The original forward runs in every call."
    for template in filter(Path.is_file, _TEMPLATES.iterdir()):  # pip also leaves __pycache__ there
        text = template.read_text(encoding="utf-8")
        for key, value in {"NAME": target.name, "PACKAGE": package, "CALLS": calls}.items():
            text = text.replace(f"@{key}@", value)
        (scratch / template.name).write_text(text, encoding="utf-8")
    (scratch / "kernelbench_solution.py").write_text(export_single_file(solution), encoding="utf-8")


def build_into(folder: Path, solution: Solution, device: str, cache: Path) -> None:
    """Write a solution's files into a folder and build its kernels there.

    Raises:
        MachineError: the kernels no longer build on this machine.
    """
    language = languages.create(solution.spec.language)
    built = language.build(
        solution, folder, cache=cache, run=run_command, timeout_s=_BUILD_TIMEOUT_S, device=device
    )
    if not built.ok:
        raise MachineError(f"the kernels no longer build on this machine: {built.log[-1000:]}")
    (folder / PRELUDE).unlink(missing_ok=True)  # belongs to the referee

"""Writes the artifact: a folder that imports without AgentForge."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentforge.languages import PRELUDE, export_single_file, languages, run_command
from agentforge.schema import MachineError, Solution, Target, UsageError

from .report import report_markdown

_BUILD_TIMEOUT_S = 600.0
_TEMPLATES = Path(__file__).with_name("templates")


def write_artifact(
    folder: Path, target: Target, solution: Solution, report: Mapping[str, Any], *, cache: Path
) -> None:
    """Write everything into `folder`, all of it or nothing.

    Args:
        folder: made, or replaced where it holds an earlier artifact.
        target: the model.
        solution: the variant that was taken.
        report: see `report_data`.
        cache: of built objects.

    Raises:
        UsageError: `folder` holds something else.
        MachineError: the kernels do not build here any more, or the folder cannot be written.
    """
    folder = folder.absolute()
    if folder.exists() and not (folder / "plan.json").is_file() and any(folder.iterdir()):
        raise UsageError(f"{folder} holds something that is no artifact; choose an empty or new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _fill(scratch, folder.name, target, solution, report, cache)
            scratch.chmod(0o755)
            _swap(scratch, folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise MachineError(
            f"the artifact cannot be written to {folder} ({error.strerror or error}); "
            "free some space there or choose another folder"
        ) from error


def _fill(
    scratch: Path, name: str, target: Target, solution: Solution, report: Mapping[str, Any], cache: Path
) -> None:
    language = languages.create(solution.spec.language)
    built = language.build(
        solution, scratch, cache=cache, run=run_command, timeout_s=_BUILD_TIMEOUT_S, device=target.device
    )
    if not built.ok:
        raise MachineError(f"the kernels do not build on this machine any more: {built.log[-1000:]}")
    (scratch / PRELUDE).unlink(missing_ok=True)  # it is the referee's
    (scratch / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (scratch / "report.md").write_text(report_markdown(report))
    package = name if name.isidentifier() else "artifact"
    for template in _TEMPLATES.iterdir():
        text = template.read_text()
        for key, value in {"NAME": target.name, "PACKAGE": package}.items():
            text = text.replace(f"@{key}@", value)
        (scratch / template.name).write_text(text)
    (scratch / "kernelbench_solution.py").write_text(export_single_file(solution))


def _swap(scratch: Path, folder: Path) -> None:
    """Put `scratch` where `folder` is; what was there is gone only when the new one stands."""
    if folder.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
        folder.replace(old)
        scratch.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        scratch.replace(folder)

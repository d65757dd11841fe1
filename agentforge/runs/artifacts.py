"""Artifacts from the database alone, on a machine that did not run the search."""

from __future__ import annotations

from pathlib import Path

from agentforge.languages import write_solution
from agentforge.schema import (
    ArtifactReport,
    Definition,
    Evaluation,
    Solution,
    StitchResult,
    UsageError,
)
from agentforge.store import Store
from agentforge.whole_file import whole_artifact

KERNEL = "kernel"
"""Mode of an artifact that is one kernel and no model."""


def fetch_artifact(store: Store, run: str, folder: Path, *, cache: Path) -> StitchResult:
    """Write the artifact of a run and build its kernels for this machine.

    Args:
        folder: created if missing; an earlier artifact in it is replaced.
        cache: folder of compiled code.

    Returns:
        What the run produced.

    Raises:
        UsageError: there is no such run, it has no artifact, or `folder` contains something else.
        MachineError: the kernels do not build here, or the folder cannot be written.
    """
    found = store.get_run(run)
    result = store.get_record(found.id, StitchResult)
    if result is None:
        command = f"agentforge runs resume {found.id}{store.options}"
        raise UsageError(f"run {found.id} has no result yet: finish it with {command}")
    if result.solution is None:
        raise UsageError(f"run {found.id} has no artifact ({result.summary}): choose another run")
    target, solution = store.get_target(found.target), store.get_solution(result.solution)
    if result.mode == KERNEL:
        if result.evaluation is None:
            raise UsageError(f"run {found.id} has no verdict on its kernel: choose another run")
        write_kernel(folder, solution, store.get_evaluation(result.evaluation), target.definition)
        return result
    report = store.get_record(found.id, ArtifactReport)
    if report is None:
        raise UsageError(f"an earlier AgentForge ended run {found.id}, and kept no report: run again")
    from agentforge.stitch.artifact import write_artifact  # it needs torch, and other commands do not

    write_artifact(folder, target, solution, report.data, cache=cache)
    return result


def write_kernel(folder: Path, solution: Solution, evaluation: Evaluation, definition: Definition) -> None:
    """Write the artifact of a run that began with a kernel: the solution, its verdict and the reference.

    Args:
        folder: created if missing; an earlier artifact in it is replaced.

    Raises:
        UsageError: `folder` contains something else.
        MachineError: the folder cannot be written.
    """
    with whole_artifact(folder) as scratch:
        write_solution(solution, scratch)
        (scratch / "plan.json").write_text(evaluation.model_dump_json(indent=1), encoding="utf-8")
        (scratch / "reference.py").write_text(definition.reference, encoding="utf-8")

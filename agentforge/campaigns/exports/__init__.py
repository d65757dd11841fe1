"""Results of a campaign as files."""

from __future__ import annotations

from pathlib import Path

from agentforge.runs.artifacts import fetch_artifact
from agentforge.schema import UsageError
from agentforge.store import Store

from ..report import CampaignReport
from .kernelbench import export_kernelbench
from .solutions import SUITES, export_solutions, not_built
from .stitched import elsewhere, nothing_here, stitched_solution

__all__ = ["elsewhere", "export_artifacts", "export_campaign", "not_built"]


def export_campaign(store: Store, report: CampaignReport, folder: Path) -> list[Path]:
    """Write a campaign's results in the layout of its suite; KernelBench's if the suite has none of its own.

    Solutions that this database lacks are left out (see `elsewhere`), and those that the suite does not build
    (see `not_built`).

    Returns:
        The files.

    Raises:
        UsageError: its results have no such layout, or the folder cannot be written.
    """
    suite = report.campaign.suite.partition(":")[0]
    return (export_solutions if suite in SUITES else export_kernelbench)(store, report, folder)


def export_artifacts(store: Store, report: CampaignReport, folder: Path, cache: Path) -> list[Path]:
    """Write the artifact of each verified item as `ARM/PROBLEM`, and build it for this machine.

    Those that this database lacks are left out: see `elsewhere`.

    Args:
        cache: folder of compiled code.

    Returns:
        The folders.

    Raises:
        UsageError: nothing in the campaign is verified, or a folder contains something else.
        MachineError: kernels do not build here, or a folder cannot be written.
    """
    written = []
    for item in report.items:
        if item.run and stitched_solution(store, item):
            written.append(folder / item.arm / item.problem)
            fetch_artifact(store, item.run, written[-1], cache=cache)
    if not written:
        raise UsageError(nothing_here(report, "result"))
    return written

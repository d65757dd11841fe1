"""Runs as reports, and what a notebook imports: runs as tables, trajectories and figures.

The tables take pandas and the figures plotly: the extra `notebook`.
"""

from .frames import attempts, bottlenecks, findings, kernels, metrics, resources, runs
from .report import RegionReport, Report, build_report
from .steps import Search, Step
from .trajectory import Trajectory, trajectory

__all__ = [
    "RegionReport",
    "Report",
    "Search",
    "Step",
    "Trajectory",
    "attempts",
    "bottlenecks",
    "build_report",
    "findings",
    "kernels",
    "metrics",
    "resources",
    "runs",
    "trajectory",
]

"""Kernels that won, in the layouts that other projects load."""

from ._base import ExportLayout, WinningKernel, layouts, write_export, write_texts
from .single_files import leaderboard_limits
from .winners import winners_of_artifact, winners_of_run

__all__ = [
    "ExportLayout",
    "WinningKernel",
    "layouts",
    "leaderboard_limits",
    "winners_of_artifact",
    "winners_of_run",
    "write_export",
    "write_texts",
]

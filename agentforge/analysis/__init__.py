"""Runs as reports."""

from .report import RegionReport, Report, build_report, markdown

__all__ = ["RegionReport", "Report", "build_report", "markdown"]

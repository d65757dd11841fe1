"""Runs as reports."""

from .report import RegionReport, Report, build_report

__all__ = ["RegionReport", "Report", "build_report"]

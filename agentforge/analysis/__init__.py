"""Runs as data frames, plots and reports."""

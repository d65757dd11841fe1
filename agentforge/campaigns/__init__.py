"""Runs and batches of runs."""

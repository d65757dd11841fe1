"""Outcomes with their summary, and lessons."""

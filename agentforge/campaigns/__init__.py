"""Runs: a target goes in, a verified faster model comes out."""

from .optimize import optimize, resume

__all__ = ["optimize", "resume"]

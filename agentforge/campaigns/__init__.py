"""Runs: a target goes in, a verified faster model comes out."""

from .driven import Workbench
from .optimize import optimize, resume

__all__ = ["Workbench", "optimize", "resume"]

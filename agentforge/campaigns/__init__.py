"""Runs: a target goes in, a verified faster model comes out."""

from .driven import Workbench
from .intent import optimize_intent
from .kernel import optimize_kernel, optimize_sequential
from .optimize import optimize, resume

__all__ = ["Workbench", "optimize", "optimize_intent", "optimize_kernel", "optimize_sequential", "resume"]

"""Profiling: call sites of a target, their speed of light, and the ranked bottlenecks."""

from .profile import profile_target

__all__ = ["profile_target"]

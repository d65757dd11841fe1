"""Frontends: what a user points at becomes a `Target`."""

from ._base import Frontend, FrontendOptions, frontends, load_target

__all__ = ["Frontend", "FrontendOptions", "frontends", "load_target"]

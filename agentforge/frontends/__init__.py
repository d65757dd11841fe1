"""Frontends: load a user's model, file or config as a `Target`."""

from ._base import Frontend, FrontendOptions, check_target, frontend_for, frontends, load_target
from ._load import make_target
from .shapes import parse_shapes, with_shapes

__all__ = [
    "Frontend",
    "FrontendOptions",
    "check_target",
    "frontend_for",
    "frontends",
    "load_target",
    "make_target",
    "parse_shapes",
    "with_shapes",
]

"""The referee: it trusts no candidate.

The names load when they are asked for, so that `agentforge.harness.child` and the forkserver do not pay
for what they do not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._base import Box, Builder, Evaluator, Limits, Presenter, Sandbox, Subject, sandboxes
    from .referee import Referee, choose_sandbox
    from .verdict import exit_code
    from .warm import warm_compiler_cache

__all__ = [
    "Box",
    "Builder",
    "Evaluator",
    "Limits",
    "Presenter",
    "Referee",
    "Sandbox",
    "Subject",
    "choose_sandbox",
    "exit_code",
    "sandboxes",
    "warm_compiler_cache",
]

_HOMES = {
    "Box": "_base",
    "Builder": "_base",
    "Evaluator": "_base",
    "Limits": "_base",
    "Presenter": "_base",
    "Subject": "_base",
    "Sandbox": "_base",
    "sandboxes": "_base",
    "Referee": "referee",
    "choose_sandbox": "referee",
    "exit_code": "verdict",
    "warm_compiler_cache": "warm",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

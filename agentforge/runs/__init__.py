"""Runs: a target goes in, a verified faster model comes out.

Names load on first use: one verdict does not import the search, and wrong arguments are refused before it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._base import RunStart
    from .execution import start_run
    from .kinds.intent import IntentStart
    from .kinds.kernel import KernelStart
    from .kinds.model import ModelStart, TargetStart
    from .kinds.sequential import SequentialStart
    from .resumption import resume
    from .session import Workbench
    from .verification import verify

__all__ = [
    "IntentStart",
    "KernelStart",
    "ModelStart",
    "RunStart",
    "SequentialStart",
    "TargetStart",
    "Workbench",
    "resume",
    "start_run",
    "verify",
]

_HOMES = {
    "IntentStart": "kinds.intent",
    "KernelStart": "kinds.kernel",
    "ModelStart": "kinds.model",
    "RunStart": "_base",
    "SequentialStart": "kinds.sequential",
    "TargetStart": "kinds.model",
    "Workbench": "session",
    "resume": "resumption",
    "start_run": "execution",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

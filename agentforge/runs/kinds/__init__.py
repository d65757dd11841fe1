"""The kinds of run: what each begins with, and its phases.

Names load on first use, so that wrong arguments are refused before the search is imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .intent import IntentStart
    from .kernel import KernelStart
    from .model import ModelStart, TargetStart
    from .sequential import SequentialStart

__all__ = ["IntentStart", "KernelStart", "ModelStart", "SequentialStart", "TargetStart"]

_HOMES = {
    "IntentStart": "intent",
    "KernelStart": "kernel",
    "ModelStart": "model",
    "SequentialStart": "sequential",
    "TargetStart": "model",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

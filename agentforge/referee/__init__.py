"""The referee: it trusts no candidate.

Names load on first use, so that the forkserver imports only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._base import (
        AroundReferee,
        Builder,
        Disassembler,
        EvaluationRequest,
        Evaluator,
        OnStage,
        Presenter,
        Subject,
    )  # fmt: skip
    from .referee import Referee, choose_sandbox
    from .workers.device_backend import DeviceBackend, MeasuredDevice
    from .workers.runner import DeviceRunner, HostRunner, Runner

__all__ = [
    "AroundReferee",
    "Builder",
    "DeviceBackend",
    "DeviceRunner",
    "Disassembler",
    "EvaluationRequest",
    "Evaluator",
    "HostRunner",
    "MeasuredDevice",
    "OnStage",
    "Presenter",
    "Referee",
    "Runner",
    "Subject",
    "choose_sandbox",
]

_HOMES = {
    "AroundReferee": "_base",
    "Builder": "_base",
    "Disassembler": "_base",
    "EvaluationRequest": "_base",
    "Evaluator": "_base",
    "Presenter": "_base",
    "OnStage": "_base",
    "Subject": "_base",
    "Referee": "referee",
    "choose_sandbox": "referee",
    "DeviceBackend": "workers.device_backend",
    "MeasuredDevice": "workers.device_backend",
    "DeviceRunner": "workers.runner",
    "HostRunner": "workers.runner",
    "Runner": "workers.runner",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

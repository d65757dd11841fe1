"""What can go wrong in a worker: error codes in its replies, and the status that each failure means."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentforge.isolation.memory_errors import is_out_of_memory, says_out_of_memory
from agentforge.schema import EvaluationStatus, HarnessError, ReasonCode

_MAX_TEXT = 4000
"""Characters of an error message and of a traceback in a reply."""
TOO_LARGE = "the output is larger than the reference's"


class UnusableOutput(Exception):
    """An output that the referee cannot read."""


class LazyOutput(UnusableOutput):
    """A tensor subclass or a lazy clone: it could compute when it is read."""


class ErrorCode(StrEnum):
    """The kind of an error in a worker's reply. Every code means a failure; an unknown one is EXCEPTION."""

    EXCEPTION = "exception"
    SYNTAX_ERROR = "syntax_error"
    OUT_OF_MEMORY = "out_of_memory"
    UNUSABLE_OUTPUT = "unusable_output"
    LAZY_OUTPUT = "lazy_output"
    UNSUPPORTED = "unsupported"
    """An emulator cannot run this, so correctness needs a real device."""
    DEVICE_LOST = "device_lost"
    """The process cannot use its device any more, so that all further calls would fail too."""


@dataclass
class WorkerFailure(Exception):
    """A worker did not do what it was asked: the verdict, or if it is a trusted one the referee's failure."""

    status: EvaluationStatus
    reason: str
    log: str = ""
    code: ReasonCode | None = None
    """Closer than the general code of the status."""
    worker: str = ""
    """Name of the trusted worker that failed; empty if it was a candidate's."""
    starved: bool = False
    """It took too long and had to wait for processors: on a quiet machine it may end in time."""

    def __str__(self) -> str:
        return self.reason


def trusted(failure: WorkerFailure, what: str) -> HarnessError:
    """The error to raise if a trusted worker failed."""
    return HarnessError(f"{what}: {failure.reason}")


# -- in the worker


def describe_error(error: BaseException, *, device_lost: bool = False) -> dict[str, str]:
    """An exception as a code and texts of bounded length.

    Args:
        device_lost: the worker cannot use its device any more.
    """
    try:
        message = str(error)[:_MAX_TEXT]
    except Exception:
        message = "(its message cannot be shown)"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-6))
    return {
        "code": (ErrorCode.DEVICE_LOST if device_lost else _code(error, message)).value,
        "type": type(error).__name__[:200],
        "message": message,
        "traceback": text[-_MAX_TEXT:],
    }


def _code(error: BaseException, message: str) -> ErrorCode:
    if isinstance(error, LazyOutput):
        return ErrorCode.LAZY_OUTPUT
    if isinstance(error, UnusableOutput):
        return ErrorCode.UNUSABLE_OUTPUT
    if isinstance(error, SyntaxError):
        return ErrorCode.SYNTAX_ERROR
    if getattr(type(error), "agentforge_code", "") == ErrorCode.UNSUPPORTED.value:
        return ErrorCode.UNSUPPORTED
    if is_out_of_memory(error, message):
        return ErrorCode.OUT_OF_MEMORY
    return ErrorCode.EXCEPTION


# -- in the referee

_STATUS = {
    ErrorCode.EXCEPTION: EvaluationStatus.RUNTIME_ERROR,
    ErrorCode.SYNTAX_ERROR: EvaluationStatus.COMPILE_ERROR,
    ErrorCode.OUT_OF_MEMORY: EvaluationStatus.OUT_OF_MEMORY,
    ErrorCode.UNUSABLE_OUTPUT: EvaluationStatus.INCORRECT_SHAPE,
    ErrorCode.LAZY_OUTPUT: EvaluationStatus.CHEATING,
    ErrorCode.UNSUPPORTED: EvaluationStatus.UNSUPPORTED,
    ErrorCode.DEVICE_LOST: EvaluationStatus.CRASHED,
}
_PLAIN = (ErrorCode.UNUSABLE_OUTPUT, ErrorCode.LAZY_OUTPUT, ErrorCode.UNSUPPORTED)
"""Codes whose message is a sentence of this package and needs no exception type in front."""


def failure_of_reply(error: object, *, emulated: bool) -> WorkerFailure:
    """What an error reply means. The worker may lie: no code means anything better than a failure.

    Args:
        emulated: the solution may run in an emulator; otherwise UNSUPPORTED is not believed.
    """
    fields: Mapping[str, Any] = error if isinstance(error, dict) else {}
    kind, message = str(fields.get("type", ""))[:200], str(fields.get("message", ""))[:2000]
    try:
        code = ErrorCode(str(fields.get("code", ""))[:40])
    except ValueError:
        code = ErrorCode.EXCEPTION
    if code is ErrorCode.UNSUPPORTED and not emulated:
        code = ErrorCode.EXCEPTION
    text = message if code in _PLAIN else f"{kind}: {message}" if message else kind
    if code is ErrorCode.DEVICE_LOST:
        text = f"its process cannot use the device any more: {text}"
    return WorkerFailure(_STATUS[code], text, str(fields.get("traceback", ""))[:8000])


def failure_of_death(exit_code: int | None, log: str) -> WorkerFailure:
    """What the end of a worker's process means.

    Args:
        exit_code: 128 + the signal's number after a signal; None if it is not known.
    """
    if says_out_of_memory(log) or exit_code == 128 + signal.SIGKILL:
        return WorkerFailure(EvaluationStatus.OUT_OF_MEMORY, "its process ran out of memory", log)
    if exit_code == 128 + signal.SIGXCPU:
        return WorkerFailure(EvaluationStatus.TIMEOUT, "its process used up its CPU time", log)
    if exit_code is None or exit_code < 128:
        reason = f"its process ended with exit code {exit_code} instead of answering"
        return WorkerFailure(EvaluationStatus.CRASHED, reason, log)
    try:
        name = signal.Signals(exit_code - 128).name
    except ValueError:
        name = f"signal {exit_code - 128}"
    return WorkerFailure(EvaluationStatus.CRASHED, f"its process died of {name}", log)

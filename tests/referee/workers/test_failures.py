"""Error codes of workers, and the status that each failure means. A worker may lie in either."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agentforge.languages.cuda.shipped.agentforge_launches import EmulatorTooSlow
from agentforge.referee.workers.failures import (
    ErrorCode,
    LazyOutput,
    UnusableOutput,
    describe_error,
    failure_of_death,
    failure_of_reply,
)
from agentforge.schema import EvaluationStatus as Status


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ValueError("no"), ErrorCode.EXCEPTION, Status.RUNTIME_ERROR),
        (SyntaxError("no"), ErrorCode.SYNTAX_ERROR, Status.COMPILE_ERROR),
        (IndentationError("no"), ErrorCode.SYNTAX_ERROR, Status.COMPILE_ERROR),
        (MemoryError(), ErrorCode.OUT_OF_MEMORY, Status.OUT_OF_MEMORY),
        (torch.OutOfMemoryError("no"), ErrorCode.OUT_OF_MEMORY, Status.OUT_OF_MEMORY),
        (RuntimeError("CUDA error: out of memory"), ErrorCode.OUT_OF_MEMORY, Status.OUT_OF_MEMORY),
        (UnusableOutput("a set"), ErrorCode.UNUSABLE_OUTPUT, Status.INCORRECT_SHAPE),
        (LazyOutput("a subclass"), ErrorCode.LAZY_OUTPUT, Status.CHEATING),
        (EmulatorTooSlow("slow"), ErrorCode.UNSUPPORTED, Status.UNSUPPORTED),
        (KeyboardInterrupt(), ErrorCode.EXCEPTION, Status.RUNTIME_ERROR),
        (Unprintable(), ErrorCode.EXCEPTION, Status.RUNTIME_ERROR),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_each_exception_has_a_code_and_a_status(
    error: BaseException, code: ErrorCode, status: Status
) -> None:
    described = describe_error(error)
    assert described["code"] == code
    assert failure_of_reply(described, emulated=True).status is status


def test_torch_says_that_there_is_no_memory_in_words_alone() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 60)
    assert describe_error(raised.value)["code"] == ErrorCode.OUT_OF_MEMORY


def test_only_an_emulated_solution_may_be_unsupported() -> None:
    described = describe_error(EmulatorTooSlow("slow"))
    assert failure_of_reply(described, emulated=False).status is Status.RUNTIME_ERROR


@pytest.mark.parametrize("error", [RuntimeError("device-side assert triggered"), MemoryError()], ids=repr)
def test_whatever_was_raised_a_lost_device_is_a_crash(error: BaseException) -> None:
    failure = failure_of_reply(describe_error(error, device_lost=True), emulated=False)
    assert failure.status is Status.CRASHED
    assert failure.reason.startswith(f"its process cannot use the device any more: {type(error).__name__}")


@pytest.mark.parametrize(
    "reply",
    [
        None, [], "PASSED", {}, {"code": "passed"}, {"code": "PASSED"},
        {"code": ["exception"]}, {"code": None},
        {"code": {"a": 1}}, {"code": 0}, {"code": "x" * 10_000, "type": 3, "message": None, "traceback": []},
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("emulated", [False, True])
def test_no_reply_makes_a_failure_anything_better(reply: Any, emulated: bool) -> None:
    failure = failure_of_reply(reply, emulated=emulated)
    assert failure.status is Status.RUNTIME_ERROR
    assert len(failure.reason) < 3000


def test_every_code_is_a_failure() -> None:
    statuses = {code: failure_of_reply({"code": code.value}, emulated=True).status for code in ErrorCode}
    assert Status.PASSED not in statuses.values()
    assert Status.HARNESS_ERROR not in statuses.values()


@pytest.mark.parametrize(
    ("code", "log", "status", "words"),
    [
        (0, "", Status.CRASHED, "exit code 0"),
        (None, "", Status.CRASHED, "exit code None"),
        (139, "", Status.CRASHED, "SIGSEGV"),
        (255, "", Status.CRASHED, "signal 127"),
        (137, "", Status.OUT_OF_MEMORY, "memory"),
        (134, "terminate called after throwing std::bad_alloc", Status.OUT_OF_MEMORY, "memory"),
        (152, "", Status.TIMEOUT, "CPU time"),
    ],
)
def test_the_end_of_a_process(code: int | None, log: str, status: Status, words: str) -> None:
    failure = failure_of_death(code, log)
    assert failure.status is status
    assert words in failure.reason

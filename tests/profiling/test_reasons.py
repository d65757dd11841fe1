"""Failures of child processes in words that help a user."""

from __future__ import annotations

from typing import Any

import pytest

from agentforge.devices.null import detect_null, null_roofline
from agentforge.isolation.child_process import ChildFailure
from agentforge.profiling import profile_target
from agentforge.profiling.reasons import plain_reason, reason_of
from agentforge.schema import TargetError
from tests.store import nouns


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ("\n  no data here \nand a tensor of many lines", "no data here"),
        ("x" * 500, "x" * 160),
        ("", "no simpler reason is known"),
        ("torch._dynamo.exc.Unsupported: call_function", "no simpler reason is known"),
        ("aten.add.Tensor got %arg0_1", "no simpler reason is known"),
    ],
)
def test_a_reason_is_one_line_without_internals_of_the_exporter(message: str, plain: str) -> None:
    assert plain_reason(message) == plain


def test_an_exception_has_its_type_and_other_failures_their_sentence() -> None:
    raised = ChildFailure("raised", "all of it", error_type="KeyError", detail="'lost'\nin the middle")
    assert reason_of(raised) == "KeyError: 'lost'"
    by_values = ChildFailure("raised", "u0", error_type="GuardOnDataDependentSymNode", detail="u0")
    assert "depend on a tensor's values" in reason_of(by_values)
    assert reason_of(ChildFailure("timeout", "no answer within 9 s")) == "no answer within 9 s"


def test_a_profile_that_fails_says_where_all_of_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        detail = "FakeTensor(..., size=(2, 3))\nDynamo was here"
        raise ChildFailure("raised", f"RuntimeError: {detail}", error_type="RuntimeError", detail=detail)

    monkeypatch.setattr("agentforge.profiling.profile.run_child", fail)
    with pytest.raises(TargetError) as failed:
        profile_target(nouns.target(), detect_null(), null_roofline())
    assert str(failed.value) == (
        "llama cannot be profiled: RuntimeError: no simpler reason is known; "
        "`agentforge --debug profile ...` shows all of it"
    )

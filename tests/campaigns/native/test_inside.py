"""What a checker returns, in the forms that GPU MODE's tasks use."""

from __future__ import annotations

from typing import Any

import pytest

from agentforge.campaigns.native.inside import verdict_of


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ((True, ""), (True, "")),
        ((True, "scaled residual 0.1"), (True, "scaled residual 0.1")),
        ((False, "mismatch found!"), (False, "mismatch found!")),
        ((False, None), (False, "")),
        ("", (True, "")),
        ("mismatch found!", (False, "mismatch found!")),
        ([], (True, "")),
        (["SIZE MISMATCH", "at 3"], (False, "SIZE MISMATCH at 3")),
        (True, (True, "")),
        (False, (False, "")),
    ],
)
def test_each_form_of_a_verdict_is_read(said: Any, verdict: tuple[bool, str]) -> None:
    assert verdict_of(said) == verdict

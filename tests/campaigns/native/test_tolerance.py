"""SOL-ExecBench's own criterion; the cases are those of its `test_correctness.py` at 8d2237d."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
import torch

from agentforge.campaigns.native.tolerance import SuiteTolerance

TIGHT = {"max_atol": 1e-5, "max_rtol": 1e-5, "required_matched_ratio": 1.0}
ONES = [1.0] * 100


def judged(output: Any, reference: Any, **fields: Any) -> tuple[bool, str]:
    given = [torch.tensor(value) for value in (output, reference)]
    return SuiteTolerance(**fields).judge(*([tensor] for tensor in given))


@pytest.mark.parametrize(
    ("output", "reference", "fields", "right"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], TIGHT, True),
        ([1.000001, 2.0], [1.0, 2.0], TIGHT, True),
        ([2.0, 3.0], [1.0, 2.0], TIGHT, False),
        ([1e-3, 1.0], [0.0, 1.0], {**TIGHT, "max_rtol": 0.0}, False),
        ([1000.005], [1000.0], TIGHT, True),  # the relative part
        ([9.0, *ONES[1:]], ONES, {}, True),  # by default one of a hundred may be anything
        ([9.0, 9.0, *ONES[2:]], ONES, {}, False),
        ([9.0, *ONES[1:]], ONES, {"max_error_cap": 7.0}, False),
        ([9.0, *ONES[1:]], ONES, {"max_error_cap": 8.0}, True),
        ([9.0, *ONES[1:]], ONES, {"required_matched_ratio": 1.0}, False),
        ([1.015], [1.0], {}, True),  # 1e-2 of both kinds
        ([1.025], [1.0], {}, False),
        ([nan, *ONES[1:]], ONES, {}, False),
        ([inf], [inf], {}, False),
        ([-inf, 1.0], [-inf, 1.0], {}, False),
        ([-inf, 1.0], [-inf, 1.0], {"allow_negative_inf": True}, True),
        ([-inf, 1.0], [0.0, 1.0], {"allow_negative_inf": True}, False),
        ([inf, 1.0], [inf, 1.0], {"allow_negative_inf": True}, False),
        ([-inf], [-inf], {"allow_negative_inf": True}, True),
        ([0.0, 0.0], [1e-3, 0.0], {}, False),  # within the tolerance, and nothing was computed
        ([0.0, 0.0], [0.0, 0.0], TIGHT, True),
        ([], [], TIGHT, True),
        ([1, 2], [1, 2], {}, True),
        ([1.0], [1], {}, False),  # another type
        ([[1.0]], [1.0], {}, False),  # another shape
    ],
)
def test_an_output_is_judged_as_the_suite_does(
    output: Any, reference: Any, fields: dict[str, Any], right: bool
) -> None:
    found, words = judged(output, reference, **fields)
    assert found is right
    assert words.startswith(f"by the suite's own tolerance {'right' if right else 'wrong'}: ")


def test_the_words_say_by_how_much() -> None:
    said = "98.0000% of the elements match, 99.0000% must; the largest error is 8"
    assert judged([9.0, 9.0, *ONES[2:]], ONES)[1].endswith(f"wrong: {said}")
    assert judged([9.0, 9.0, *ONES[2:]], ONES, max_error_cap=7)[1].endswith(f"{said}, at most 7")


def test_each_output_counts() -> None:
    good, bad = torch.ones(3), torch.zeros(3)
    judge = SuiteTolerance().judge
    assert judge([good, good], [good, good])[0]
    assert not judge([bad, good], [good, good])[0]
    assert not judge([good, bad], [good, good])[0]
    assert judge([good], [good, good]) == (
        False,
        "by the suite's own tolerance wrong: another number of outputs",
    )

"""A permission for lower precision is complete and clear, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.schema import Definition, Permission, TolerancePolicy, UsageError


def parse(bound: str | float) -> Permission:
    found = Permission.parse("bf16", "metric.py:accuracy", bound)
    assert found is not None
    return found


def test_nothing_is_allowed_by_default() -> None:
    assert Permission.parse("", "", None) is None
    assert Permission.parse("", "", "") is None
    plain = Definition(name="d", op_type="model", reference="class Model: ...")
    assert plain.precision is None
    assert plain.hash == "23a4df572a7313b4", "definitions without a permission keep the hash they had"
    assert plain.model_copy(update={"precision": "bf16"}).hash != plain.hash
    assert "precision" not in TolerancePolicy.model_fields


@pytest.mark.parametrize(
    ("bound", "value", "relative", "written"),
    [
        ("0.5%", 0.005, True, "0.5%"),
        (" 2 % ", 0.02, True, "2%"),
        ("0.01", 0.01, False, "0.01"),
        (0.01, 0.01, False, "0.01"),
        (0, 0.0, False, "0"),
        ("0%", 0.0, True, "0%"),
    ],
)
def test_a_percentage_is_relative_and_a_number_absolute(
    bound: str | float, value: float, relative: bool, written: str
) -> None:
    found = parse(bound)
    assert (found.bound, found.relative, found.limit) == (pytest.approx(value), relative, written)
    assert found.file == Path("metric.py").absolute()
    assert found.function == "accuracy"


@pytest.mark.parametrize(
    ("bound", "original", "changed", "holds"),
    [
        ("1%", 200.0, 202.0, True),
        ("1%", 200.0, 197.9, False),
        ("1%", -200.0, -198.5, True),
        ("1%", 0.0, 0.001, False),
        ("0.01", 0.5, 0.509, True),
        ("0.01", 0.5, 0.489, False),
        ("0", 0.5, 0.5, True),
    ],
)
def test_a_metric_may_change_by_the_bound_in_both_directions(
    bound: str, original: float, changed: float, holds: bool
) -> None:
    assert parse(bound).accepts(original, changed) is holds


@pytest.mark.parametrize(
    ("allow", "metric", "bound", "says"),
    [
        ("bf16", "", None, "--allow bf16 --metric metric.py:accuracy --bound 0.5%"),
        ("int8", "m.py:f", None, "--allow int8 --metric metric.py:accuracy --bound 0.5%"),
        ("bf16", "", "1%", "a metric of yours and a bound"),
        ("", "m.py:f", "1%", "go with --allow"),
        ("", "", 0.0, "go with --allow"),
        ("fp8", "m.py:f", "1%", "bf16 or int8, not 'fp8'"),
        ("bf16", "m.py", "1%", "FILE.py:FUNCTION"),
        ("bf16", ":f", "1%", "FILE.py:FUNCTION"),
        ("bf16", "m.txt:f", "1%", "FILE.py:FUNCTION"),
        ("bf16", "m.py:no name", "1%", "FILE.py:FUNCTION"),
        ("bf16", "m.py:f", "half", "not 'half'"),
        ("bf16", "m.py:f", "%", "not '%'"),
        ("bf16", "m.py:f", "-1%", "not '-1%'"),
        ("bf16", "m.py:f", "nan", "not 'nan'"),
        ("bf16", "m.py:f", "inf%", "not 'inf%'"),
        ("bf16", "m.py:f", float("inf"), "not inf"),
    ],
)
def test_what_is_missing_or_unclear_is_refused(
    allow: str, metric: str, bound: str | float | None, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        Permission.parse(allow, metric, bound)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)

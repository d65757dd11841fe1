"""JSON on stdout is strict JSON, whatever a measurement gave."""

from __future__ import annotations

import json
import math

import pytest

from agentforge.cli.commands.verify import summary
from agentforge.schema import Correctness
from agentforge.views.output import as_json, aside, line, table
from tests.store import nouns


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is not JSON")


def test_an_evaluation_with_an_infinite_error_is_strict_json(capsys: pytest.CaptureFixture[str]) -> None:
    correctness = Correctness(
        max_absolute_error=math.inf,
        max_relative_error=math.nan,
        tolerance=1e-6,
        reference_error=-math.inf,
        checked_calls=3,
    )
    evaluation = nouns.evaluation().model_copy(update={"correctness": correctness})
    as_json(summary(evaluation))
    body = json.loads(capsys.readouterr().out, parse_constant=refuse)["correctness"]
    assert (body["max_absolute_error"], body["max_relative_error"]) == ("inf", "nan")
    assert (body["reference_error"], body["tolerance"]) == ("-inf", 1e-6)


def test_models_and_containers_are_dumped(capsys: pytest.CaptureFixture[str]) -> None:
    as_json({"model": nouns.solution(), "several": (1, 2.5, None, True, [math.inf])})
    body = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert body["model"]["name"] == nouns.solution().name
    assert body["several"] == [1, 2.5, None, True, ["inf"]]


@pytest.mark.parametrize("width", [30, 60, 200])
def test_a_narrow_terminal_keeps_the_name_and_whole_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    headings = ["bottleneck", "sites", "share", "time", "SOL time", "bound", "gain", "limit", "now"]
    values = [1, "41.0%", "22.1 ms", "3.26 ms", "memory", "9 ms", "2x", ""]
    table(headings, [["softmax_128x4096_float32", *values]])
    shown = capsys.readouterr().out
    assert "softmax_" in shown
    assert "41.0%" in shown or width == 30
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert max(map(len, shown.splitlines())) <= width
    assert ("left out" in shown) == (width < 200)


def test_text_takes_several_lines_and_numbers_do_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    values = ["1.52x [1.48, 1.57]", "20260102-030405-model-ab12", "nothing was verified faster than eager"]
    table(["speedup", "run", "why"], [values])
    shown = capsys.readouterr().out
    assert values[0] in shown
    assert values[1] in shown
    assert [word for word in values[2].split() if word not in shown] == []


def test_what_a_terminal_would_obey_is_shown_instead(capsys: pytest.CaptureFixture[str]) -> None:
    forged = "wrong\x1b[2J\x1b[HPASSED\u202e"
    line(forged)
    aside(forged)
    table(("reason",), [(forged,)])
    for said in capsys.readouterr():
        assert r"wrong\u001b[2J\u001b[HPASSED\u202e" in said
        assert "\x1b" not in said

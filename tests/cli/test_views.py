"""Views are folds of the event stream: what they show follows from the events alone."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from agentforge.cli import _live, _text
from agentforge.cli._board import Board
from agentforge.schema import Event

EAGER = {"eager": {"point": 2.0, "low": 1.9, "high": 2.1}}


def event(kind: str, **data: Any) -> Event:
    return Event(run="r", time=datetime.now(UTC), kind=kind, data=data)


def attempt(kind: str, number: int = 1, **data: Any) -> Event:
    return event(kind, attempt=f"r/{number}", number=number, bottleneck="b", **data)


BOTTLENECK = {
    "hash": "b",
    "name": "norm [x]",
    "share": 0.25,
    "time_s": 1e-3,
    "sol_s": 1e-4,
    "optimizable": True,
}
STORY = [
    event("run.started", run="r"),
    event("profile.done", total_s=4e-3, bottlenecks=[BOTTLENECK], notes=[]),
    event("search.started"),
    event("model.planned", plan={"author": "playbook", "regions": [{"name": "norm [x]", "fuse": True}]}),
    attempt("attempt.planned", strategy="fuse", expected_speedup=2.0),
    attempt("attempt.coded"),
    attempt("attempt.evaluating", level="quick"),
    attempt(
        "attempt.evaluated", level="full", status="PASSED", evidence="verified", speedup=EAGER, reasons=[]
    ),
    attempt("promotion", time_before_s=1e-3, time_s=5e-4),
    event("budget", left={"minutes": 7.5, "attempts": None, "dollars": None}),
    attempt("attempt.planned", 2, strategy="tile", expected_speedup=2.0),
    attempt("attempt.failed", 2, error="no template"),
    event("bottleneck.closed", bottleneck="b", reason="4 attempts in a row brought no gain"),
    event("search.done", reason="nothing left is worth another attempt"),
    event("something.new", any="thing"),
]


def test_the_board_is_a_fold() -> None:
    board = Board()
    for told in STORY:
        board.apply(told)
    assert (board.run, board.total_s) == ("r", 4e-3)
    row = board.rows["b"]
    assert (row.attempts, row.speedup, row.state) == (2, 2.0, "4 attempts in a row brought no gain")
    assert board.lines[1].state == "promoted"
    assert (board.lines[2].state, board.lines[2].note) == ("no solution", "no template")


def test_each_agent_that_asks_a_model_is_shown_with_what_was_spent() -> None:
    def call(status: str, role: str, attempt: str = "", dollars: float | None = 0.25) -> Event:
        spent = {"tokens_in": 900, "tokens_out": 100, "dollars": dollars, "error": "busy"}
        return event(f"llm.{status}", role=role, model="openai:m", attempt=attempt, **spent)

    board = Board()
    for told in (
        call("begun", "planner"),
        call("answered", "planner"),
        call("begun", "coder", "r/0002"),
        call("begun", "coder", "r/0003"),
        event("progress", text="compiling"),
    ):
        board.apply(told)
    assert board.asking == {"coder #2": "openai:m", "coder #3": "openai:m"}
    assert (board.doing, board.tokens, board.spent) == ("compiling", 1000, 0.25)
    board.apply(call("failed", "coder", "r/0002", dollars=None))
    assert (board.asking, board.doing) == ({"coder #3": "openai:m"}, "coder: busy")
    assert (board.tokens, board.spent) == (2000, None)


def test_lines_for_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with _live.Lines() as view:
        for told in STORY:
            view(told)
    out, err = capsys.readouterr()
    assert out == ""
    assert "run r: started" in err
    assert "plan by playbook: norm [x]" in err
    assert "#1 norm [x] [fuse] verified 2.00x eager" in err
    assert "#2 norm [x] [tile] no solution no template" in err
    assert "\x1b" not in err


def test_the_live_table_shows_names_as_they_are() -> None:
    stream = io.StringIO()
    with _live.Live(Console(file=stream, force_terminal=True, width=160)) as view:
        for told in STORY:
            view(told)
    shown = stream.getvalue()
    assert "norm [x]" in shown
    assert "promoted" in shown
    assert "7.5 minutes left" in shown


def test_silence_for_json(capsys: pytest.CaptureFixture[str]) -> None:
    with _live.view(as_json=True) as view:
        for told in STORY:
            view(told)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "1.5 s"), (2e-3, "2 ms"), (3.456e-6, "3.46 us"), (5e-9, "5 ns"), (0.0, "0"), (None, "-")],
)
def test_seconds(value: float | None, text: str) -> None:
    assert _text.seconds(value) == text

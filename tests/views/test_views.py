"""Views are folds of the event stream: what they show follows from the events alone."""

from __future__ import annotations

import io
import os
import pty
import sys
from typing import Any

import pytest
from rich.console import Console

from agentforge.schema import (
    AttemptCoded,
    AttemptEvaluated,
    AttemptEvaluating,
    AttemptFailed,
    AttemptPlanned,
    AttemptReflected,
    BottleneckClosed,
    Budget,
    BudgetLeft,
    Event,
    Interval,
    Level,
    LLMAnswered,
    LLMBegun,
    LLMFailed,
    ModelPlan,
    ModelPlanned,
    ProfiledBottleneck,
    ProfileDone,
    ProfileRanked,
    Progress,
    Promotion,
    RegionPlan,
    RunStarted,
    SearchDone,
    SearchStarted,
    StitchDone,
    StitchLeft,
    StitchStarted,
    UnknownEvent,
)
from agentforge.views import live as _live
from agentforge.views import text as _text
from agentforge.views.run_state import RunState

EAGER = {"eager": Interval(point=2.0, low=1.9, high=2.1)}
FIRST = {"run": "r", "attempt": "r/1", "number": 1, "bottleneck": "b"}
SECOND = {"run": "r", "attempt": "r/2", "number": 2, "bottleneck": "b"}
MEASURED: dict[str, Any] = {"level": "full", "status": "PASSED", "evidence": "verified", "speedup": EAGER}
BOTTLENECK = ProfiledBottleneck(
    hash="b", name="norm [x]", share=0.25, time_s=1e-3, sol_s=1e-4, optimizable=True
)
PLAN = ModelPlan(regions=(RegionPlan(bottleneck="b", name="norm [x]", fuse=True),))
STORY: list[Event] = [
    RunStarted(run="r", target="t", device="cpu"),
    ProfileDone(total_s=4e-3, bottlenecks=(BOTTLENECK,)),
    SearchStarted(),
    ModelPlanned(plan=PLAN),
    AttemptPlanned(**FIRST, strategy="fuse", expected_speedup=2.0),
    AttemptCoded(**FIRST),
    AttemptEvaluating(**FIRST, level=Level.QUICK),
    AttemptEvaluated(**FIRST, **MEASURED),
    Promotion(**FIRST, **MEASURED, time_before_s=1e-3, time_s=5e-4),
    BudgetLeft(left={"minutes": 7.5, "attempts": None, "dollars": None}),
    AttemptPlanned(**SECOND, strategy="tile", expected_speedup=2.0),
    AttemptFailed(**SECOND, error="no template"),
    BottleneckClosed(bottleneck="b", reason="4 attempts in a row brought no gain"),
    SearchDone(reason="nothing left is worth another attempt"),
    UnknownEvent(kind="something.new", data={"any": "thing"}),
]


def test_the_board_is_a_fold() -> None:
    run_state = RunState()
    for told in STORY:
        run_state.apply(told)
    assert (run_state.run, run_state.total_s) == ("r", 4e-3)
    row = run_state.rows["b"]
    assert (row.attempts, row.speedup, row.state) == (2, 2.0, "4 attempts in a row brought no gain")
    assert run_state.lines[1].state == "promoted"
    assert (run_state.lines[2].state, run_state.lines[2].note) == ("no solution", "no template")


@pytest.mark.parametrize(
    ("measured", "verified", "said"),
    [
        ({"evidence": "unverified", "reasons": ("the control drifts",)}, False, "not verified: the control"),
        ({"level": "quick", "evidence": "unverified"}, False, "not enough faster than eager"),
        ({}, True, "not enough faster than eager"),
    ],
)
def test_a_line_says_why_a_faster_kernel_was_not_promoted(
    capsys: pytest.CaptureFixture[str], measured: dict[str, Any], verified: bool, said: str
) -> None:
    view = _live.Lines()
    for told in (*STORY[:7], AttemptEvaluated(**FIRST, **{**MEASURED, **measured})):
        view(told)
    view(AttemptReflected(**FIRST, strategy="fuse", expected_speedup=2.0, verified=verified))
    assert f"#1 not promoted: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "shown"), [("CHEATING", {}), ("HARNESS_ERROR", EAGER), ("PASSED", EAGER)])
def test_a_refused_kernel_has_no_speedup(status: str, shown: dict[str, Interval]) -> None:
    run_state = RunState()
    later = {**MEASURED, "status": status, "evidence": "unverified", "speedup": {}, "reasons": ("why",)}
    for told in (*STORY[:8], AttemptEvaluated(**FIRST, **later)):
        run_state.apply(told)
    assert run_state.lines[1].speedup == shown


def test_a_new_ranking_orders_the_rows_and_says_where_most_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = BOTTLENECK.model_copy(update={"hash": "c", "name": "softmax", "time_s": 8e-4, "gain_s": 7e-4})
    left = BOTTLENECK.model_copy(update={"time_s": 5e-4, "share": 0.14})
    now = other.model_copy(update={"share": 0.23, "speedup_limit": 1.25})
    ranked = ProfileRanked(total_s=3.5e-3, bottlenecks=(now, left))
    begun = [ProfileDone(total_s=4e-3, bottlenecks=(BOTTLENECK, other)), ranked]
    view = _live.Lines()
    for told in begun:  # as a resumed run tells it: no promotion comes before the ranking
        view(told)
    rows = view.run_state.rows
    assert [row.name for row in rows.values()] == ["softmax", "norm [x]"]
    assert (rows["b"].speedup, rows["b"].time_s, rows["b"].share) == (2.0, 5e-4, 0.14)
    assert (rows["c"].speedup, rows["c"].limit) == (1.0, 1.25)
    said = "one forward now takes about 3.5 ms; most is left in softmax (23.0% of it, limit 1.25x)"
    assert said in capsys.readouterr().err


def test_a_profile_that_is_told_again_has_its_own_rows_alone() -> None:
    run_state = RunState()
    for event in STORY:
        run_state.apply(event)
    merged = BOTTLENECK.model_copy(update={"hash": "m", "name": "merged", "share": 0.5})
    run_state.apply(ProfileDone(total_s=4e-3, bottlenecks=(merged, BOTTLENECK)))
    run_state.apply(ProfileDone(total_s=4e-3, bottlenecks=(merged, BOTTLENECK)))
    assert [*run_state.rows] == ["m", "b"]
    assert (run_state.rows["b"].attempts, run_state.rows["b"].state) == (2, STORY[-3].reason)  # type: ignore[attr-defined]
    run_state.apply(ProfileDone(total_s=4e-3, bottlenecks=(merged,)))  # b was a part of it
    assert [*run_state.rows] == ["m"]


def test_an_attempt_opens_a_closed_row() -> None:
    run_state = RunState()
    for told in (*STORY[:2], BottleneckClosed(bottleneck="b", reason="too little"), STORY[4]):
        run_state.apply(told)
    assert run_state.rows["b"].state == ""


def test_each_agent_that_asks_a_model_is_shown_with_what_was_spent() -> None:
    def call(status: str, role: str, attempt: str = "", dollars: float | None = 0.25) -> Event:
        kind = {"begun": LLMBegun, "answered": LLMAnswered, "failed": LLMFailed}[status]
        spent: dict[str, Any] = {"tokens_in": 900, "tokens_out": 100, "dollars": dollars, "error": "busy"}
        return kind(role=role, model="openai:m", attempt=attempt, **spent)

    run_state = RunState()
    for told in (
        call("begun", "planner"),
        call("answered", "planner"),
        call("begun", "coder", "r/0002"),
        call("begun", "coder", "r/0003"),
        Progress(text="compiling"),
    ):
        run_state.apply(told)
    assert run_state.asking == {"coder #2": "openai:m", "coder #3": "openai:m"}
    assert (run_state.doing, run_state.tokens, run_state.spent) == ("compiling", 1000, 0.25)
    run_state.apply(call("failed", "coder", "r/0002", dollars=None))
    assert (run_state.asking, run_state.doing) == ({"coder #3": "openai:m"}, "coder: busy")
    assert (run_state.tokens, run_state.spent) == (2000, None)


def test_lines_for_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with _live.Lines() as view:
        for told in STORY:
            view(told)
    out, err = capsys.readouterr()
    assert out == ""
    assert "run r: started" in err
    assert "plan by playbook: norm [x]" in err
    assert "#1 norm [x] [fuse] verified 2.00x over eager" in err
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


def test_what_a_program_prints_into_a_file_stays_there_beside_a_live_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, file = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    with _live.Live(Console(file=stream, force_terminal=True, width=160)) as view:
        view(STORY[0])
        print("of the program")
    assert file.getvalue() == "of the program\n"
    assert "of the program" not in stream.getvalue()


def test_a_long_list_of_bottlenecks_is_cut_and_the_rest_added_up() -> None:
    many = [BOTTLENECK.model_copy(update={"hash": f"h{n}", "name": f"n{n:02}"}) for n in range(15)]
    stream = io.StringIO()
    with _live.Live(Console(file=stream, force_terminal=True, width=160)) as view:
        view(ProfileDone(total_s=1.0, bottlenecks=tuple(b.model_copy(update={"share": 0.01}) for b in many)))
    shown = stream.getvalue()
    assert "n11" in shown
    assert "n12" not in shown
    assert "3 more" in shown
    assert "3.0%" in shown


def test_silence_for_json(capsys: pytest.CaptureFixture[str]) -> None:
    with _live.view(as_json=True) as view:
        for told in STORY:
            view(told)
    assert capsys.readouterr() == ("", "")


def test_tables_are_redrawn_only_on_a_terminal_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    ours, theirs = pty.openpty()
    with os.fdopen(ours), os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        assert type(_live.on_stderr()) is _live.Live
        monkeypatch.setenv("TERM", "dumb")
        assert type(_live.on_stderr()) is _live.Lines
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert type(_live.on_stderr()) is _live.Lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5 s"),
        (2e-3, "2 ms"),
        (9.997e-4, "1 ms"),
        (3.456e-6, "3.46 us"),
        (5e-9, "5 ns"),
        (0.0, "0"),
        (None, "-"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert _text.seconds(value) == text


def test_what_is_left_of_a_budget_is_written_out() -> None:
    left = {"minutes": 7.5, "attempts": 1000, "tokens": 1_234_567, "dollars": None}
    assert _text.budget(left) == "7.5 minutes, 1,000 attempts, 1,234,567 tokens left"


def test_the_search_s_end_is_estimated_by_minutes_and_by_attempts() -> None:
    now = [100.0]
    run_state = RunState(clock=lambda: now[0])
    run_state.apply(STORY[0])
    run_state.apply(STORY[1])
    assert run_state.left_s is None
    now[0] += 30.0
    run_state.apply(SearchStarted(budget=Budget(minutes=2.0, attempts=10)))
    assert run_state.left_s == 120.0
    now[0] += 10.0
    assert (run_state.left_s, run_state.phase_s) == (110.0, 10.0)
    run_state.apply(BudgetLeft(left={"minutes": 5.0, "attempts": 4, "dollars": None}))
    assert run_state.left_s == 40.0  # four attempts of 10 s
    run_state.apply(BudgetLeft(left={"minutes": 0.1, "attempts": 3, "dollars": None}))
    assert run_state.left_s == pytest.approx(6.0)
    assert _text.estimate(125.2, False) == "about 2:05 of search left, then stitching"


def test_an_evaluation_after_the_minutes_is_shown_as_such() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    view = _live.Live(console)
    view.run_state.clock = lambda: now[0]
    for told in (STORY[0], STORY[1], SearchStarted(budget=Budget(minutes=1.0)), *STORY[4:6]):
        view(told)
    now[0] = 50.0
    view(AttemptEvaluating(**FIRST, level=Level.QUICK, longest_s=70.0))
    assert "about 0:10 of search left" in str(console.render_lines(view._render()))
    now[0] = 80.0
    said = "the minutes are used up; what was begun ends in at most 0:40, then stitching"
    assert said in str(console.render_lines(view._render()))
    view(BudgetLeft(left={"minutes": 0.0, "attempts": None, "dollars": None}))
    now[0] = 81.0
    assert "about 0:00 of search left" in str(console.render_lines(view._render()))


def test_a_live_view_has_a_bar_that_moves_between_events() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    view = _live.Live(console)
    view.run_state.clock = lambda: now[0]
    view(STORY[0])
    view(STORY[1])
    view(SearchStarted(budget=Budget(minutes=1.0)))
    before = console.render_lines(view._render())
    now[0] = 21.0
    after = console.render_lines(view._render())
    assert "about 1:00 of search left" in str(before) and "about 0:39 of search left" in str(after)


def shown(view: _live.Live, console: Console) -> str:
    lines = console.render_lines(view._render(), pad=False)
    return "\n".join("".join(part.text for part in line) for line in lines)


def test_stitching_has_a_bar_with_an_estimate() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    view = _live.Live(console)
    view.run_state.clock = lambda: now[0]
    view(STORY[0])
    view(STORY[1])
    view(SearchStarted(budget=Budget(minutes=1.0)))
    now[0] = 40.0
    view(StitchStarted())
    view(StitchLeft(variants=3, seconds=95.0))
    now[0] = 45.0
    assert "about 1:30 of stitching left, at most 3 variants" in shown(view, console)
    assert (view.run_state.left_s, view.run_state.phase_s) == (90.0, 5.0)
    view(StitchLeft(variants=1))
    assert "at most 1 variant left" in shown(view, console)
    assert view.run_state.left_s is None
    view(StitchDone())
    assert "left" not in shown(view, console)


def test_lines_say_how_long_stitching_takes(capsys: pytest.CaptureFixture[str]) -> None:
    view = _live.Lines()
    view.run_state.clock = lambda: 0.0
    for told in (STORY[0], StitchStarted(), StitchLeft(variants=2, seconds=80.0), StitchLeft(variants=1)):
        view(told)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "integrating kernels and measuring end to end ...",
        "  about 1:20 of stitching left, at most 2 variants",
        "  at most 1 variant left",
    ]

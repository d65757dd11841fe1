"""A command that is cut short records that its run was interrupted."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pytest
import typer

from agentforge.cli import _interrupt, _report
from agentforge.schema import RunResumed, RunStatus, StitchStarted
from agentforge.store import Store
from agentforge.views.run_state import RunState
from tests.store import nouns


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process of its own."""
    monkeypatch.setattr(_interrupt, "_said", threading.Event())
    monkeypatch.setattr(_interrupt, "_last_words", [])


def test_a_reader_that_has_gone_does_not_keep_the_interruption_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'agentforge.db'}"
    with Store(url) as store:
        run = nouns.run(status=RunStatus.SEARCHING)
        store.create_run(run)
    reader, writer = os.pipe()
    os.close(reader)
    nobody = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    os.dup2(writer, nobody.fileno())
    monkeypatch.setattr(sys, "stdout", nobody)
    _report._cut_short(RunState(run=run.id), [f"database_url={url}"], as_json=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), nobody.fileno())  # for the rest of its buffer
    with Store(url) as store:
        assert store.get_run(run.id).status is RunStatus.INTERRUPTED


def test_a_run_that_is_cut_short_keeps_the_time_that_it_used(tmp_path: Path) -> None:
    """What its session wrote down on the way may be minutes old."""
    url, now = f"sqlite:///{tmp_path / 'agentforge.db'}", [0.0]
    with Store(url) as store:
        run = nouns.run(status=RunStatus.STITCHING, seconds_used=120.0, stitched_s=5.0)
        store.create_run(run)
    state = RunState(clock=lambda: now[0])
    state.apply(RunResumed(run=run.id, target="t", device="d", seconds_used=100.0))
    now[0] += 30.0
    state.apply(StitchStarted(run=run.id, chosen={}))
    now[0] += 12.0
    _report._cut_short(state, [f"database_url={url}"], as_json=False)
    with Store(url) as store:
        kept = store.get_run(run.id)
    assert (kept.status, kept.seconds_used, kept.stitched_s) == (RunStatus.INTERRUPTED, 142.0, 17.0)


def test_the_way_on_leads_to_the_same_database(capsys: pytest.CaptureFixture[str]) -> None:
    config = ["referee.threads=1", "home=/a/b"]
    command = "agentforge runs resume r -c home=/a/b"
    _report._interrupted("r", config, as_json=True)
    _report._interrupted("r", config, as_json=False)
    out, errors = capsys.readouterr()
    assert json.loads(out)["resume"] == command
    assert errors == f"agentforge: interrupted; continue with: {command}\n"


def test_an_interruption_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """If the run ends just when it is cut short, both threads would tell it."""

    def run(_: object) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit):
        _report.follow(run, None, as_json=True)
    (last_word,) = _interrupt._last_words
    last_word()
    assert json.loads(capsys.readouterr().out)["exit_code"] == 130


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_run_that_is_cut_short_shows_the_cursor_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    _report._cut_short(RunState(), None, as_json=False)
    assert sys.stderr.getvalue() == "\x1b[?25hinterrupted\n"  # type: ignore[attr-defined]

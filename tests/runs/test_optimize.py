"""A whole run: real frontend, profile, store, referee and stitch; only the agents are simple."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentforge.cli._report import show
from agentforge.config import Settings
from agentforge.frontends import FrontendOptions
from agentforge.runs import ModelStart, resume, start_run
from agentforge.runs.pipeline import RunPipeline
from agentforge.schema import EvaluationStatus, Event, RunStatus, TargetError, UsageError
from agentforge.store import Store
from agentforge.trackers import trackers

pytestmark = pytest.mark.slow

GATE = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)

def get_inputs():
    return [torch.randn(64, 512)]

def get_init_inputs():
    return []
"""


def test_nothing_faster_keeps_the_model_as_it_was(
    model: Path,
    settings: Settings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[Event] = []
    out = tmp_path / "made"
    log = tmp_path / "events.jsonl"
    broken = {"path": str(tmp_path / "no" / "such" / "folder")}
    monkeypatch.setitem(trackers._builtin, "broken", "agentforge.trackers.jsonl:JsonLines")
    settings = settings.model_copy(
        update={
            "trackers": ("broken", "jsonl"),
            "tracker_options": {"broken": broken, "jsonl": {"path": str(log)}},
        }
    )
    report = start_run(
        ModelStart(str(model), FrontendOptions()), settings, device="cpu", out=out, on_event=events.append
    )
    assert report.run.status is RunStatus.FINISHED
    assert report.mode == "eager"
    assert "eager is kept" in report.headline
    assert report.attempts >= 1
    assert Path(report.run.artifact or "") == out
    data = json.loads((out / "report.json").read_text())
    assert data["mode"] == "eager"
    assert report.first_verdict_s is not None
    assert data["first_verdict_s"] == report.first_verdict_s > 0
    said = f"{report.first_verdict_s:.0f} s after the profile"
    assert f"First verdict: {said}." in (out / "report.md").read_text()
    kinds = [event.kind for event in events]
    assert [json.loads(line)["kind"] for line in log.read_text().splitlines()] == kinds
    order = ["run.started", "profile.done", "search.started", "search.done", "stitch.done", "run.finished"]
    assert [kind for kind in kinds if kind in order] == order
    with Store(settings.url) as store:
        stored = store.events(report.run.id)
        assert [(e.seq, e.kind) for e in stored] == [(e.seq, e.kind) for e in events]
    assert report.run.seconds_used > 0
    assert report.plan is not None
    assert {r.name: r.place for r in report.regions} == {
        region.name: place if region.fuse else None for place, region in enumerate(report.plan.regions, 1)
    }
    show(report)
    shown = capsys.readouterr().out
    assert f"plan (playbook, {report.plan.expected_speedup:.2f}x expected" in shown
    assert f"first verdict: {said}\n" in shown

    again = resume(report.run.id, settings)
    assert again.run == report.run
    with (
        Store(settings.url) as store,
        store.lock_run(report.run.id),
        pytest.raises(UsageError, match="process"),
    ):
        resume(report.run.id, settings, limits={"attempts": 5})


def test_a_second_run_takes_the_verdicts_of_the_first(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunPipeline, "stitch", lambda *_: None)
    model = tmp_path / "gate.py"
    model.write_text(GATE)
    settings = settings.model_copy(update={"search": settings.search.model_copy(update={"coder": "wrong"})})
    start = ModelStart(str(model), FrontendOptions())
    first, second = (start_run(start, settings, device="cpu") for _ in range(2))
    with Store(settings.url) as store:
        (before,), (after,) = (store.attempts(report.run.id) for report in (first, second))
        assert before.evaluation and after.evaluation
        found, copy = map(store.get_evaluation, (before.evaluation, after.evaluation))
    assert (found.status, found.reused) == (EvaluationStatus.INCORRECT_NUMERICAL, "")
    same = f"evaluation {before.evaluation} of run {first.run.id} (the same source)"
    assert (copy.status, copy.reasons, copy.reused) == (found.status, found.reasons, same)
    assert f"attempt 1 was not measured in this run: its verdict is {same}" in second.notes


def test_what_cannot_work_is_said_before_anything_is_computed(
    model: Path, settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match="does not exist"):
        start_run(ModelStart(str(tmp_path / "nope.py"), FrontendOptions()), settings, device="cpu")
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "precious.txt").write_text("mine")
    with pytest.raises(UsageError, match="no artifact"):
        start_run(ModelStart(str(model), FrontendOptions()), settings, device="cpu", out=taken)
    unknown = settings.model_copy(update={"search": settings.search.model_copy(update={"planner": "nope"})})
    with pytest.raises(UsageError, match="none of the planners called 'nope'"):
        start_run(ModelStart(str(model), FrontendOptions()), unknown, device="cpu")
    tracked = settings.model_copy(update={"trackers": ("nope",)})
    with pytest.raises(UsageError, match="'nope' is not one of the trackers"):
        start_run(ModelStart(str(model), FrontendOptions()), tracked, device="cpu")
    with Store(settings.url) as store:
        assert store.list_runs() == ()

"""A run goes on under its own limits or new ones, and a resume that is refused changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.config import RefereeSettings, Settings, load_settings
from agentforge.devices import detect
from agentforge.runs import judging_code as judges
from agentforge.runs import resume
from agentforge.runs._base import RunInput
from agentforge.runs.execution import create_run
from agentforge.runs.kinds.pipelines import PIPELINES
from agentforge.runs.pipeline import RunPipeline
from agentforge.runs.run_settings import named_limits, remembered, restored
from agentforge.schema import (
    BusyError,
    JudgingCode,
    MachineError,
    Permission,
    Run,
    RunKind,
    RunSettings,
    RunStatus,
    SearchSummary,
    StitchResult,
    UsageError,
)
from agentforge.store import Store
from tests.store import nouns

from .test_execution import CPU, created


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def run(store: Store, settings: Settings) -> Run:
    return created(store, settings)


def test_new_limits_take_the_place_of_the_runs_own(
    store: Store, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float | None] = []

    def begin(pipeline: RunPipeline) -> None:
        seen.extend((pipeline.meter.budget.dollars, pipeline.run_log.run.budget.dollars))
        raise MachineError("enough")

    monkeypatch.setattr(PIPELINES[RunKind.KERNEL], "run", begin)
    for limits in ({"dollars": 100.0}, None):
        with pytest.raises(MachineError, match="enough"):
            resume(run.id, settings, limits=limits)
    assert seen == [100.0] * 4
    assert store.get_run(run.id).budget == run.budget.model_copy(update={"dollars": 100.0})


def test_a_limit_above_a_year_is_refused(store: Store, settings: Settings, run: Run) -> None:
    with pytest.raises(UsageError, match=r"budget\.minutes is 1000000000: give at most 525600"):
        resume(run.id, settings, limits={"minutes": 1e9})
    assert store.get_run(run.id) == run


def test_new_limits_are_not_kept_while_another_process_works_on_the_run(
    store: Store, settings: Settings, run: Run
) -> None:
    with store.lock_run(run.id), pytest.raises(BusyError):
        resume(run.id, settings, limits={"dollars": 100.0})
    assert store.get_run(run.id) == run


def test_a_finished_run_is_not_written_to_another_folder(
    store: Store, settings: Settings, run: Run, tmp_path: Path
) -> None:
    made, other = tmp_path / "made", tmp_path / "other"
    store.update_run(run.id, status=RunStatus.FINISHED, artifact=str(made))
    with pytest.raises(UsageError, match=f"agentforge runs artifact {run.id} {other}"):
        resume(run.id, settings, out=other)
    store.options = " -c home=/a/b"
    with pytest.raises(UsageError, match=f"agentforge runs artifact {run.id} {other} -c home=/a/b, or give"):
        resume(run.id, settings, out=other, store=store)
    assert not other.exists()
    assert resume(run.id, settings, out=made).run == resume(run.id, settings).run


def test_a_finished_run_whose_proof_was_cut_short_is_proven_again(
    store: Store, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    def begin(pipeline: RunPipeline) -> None:
        seen.append(pipeline.settings.referee.evaluation_timeout_s)

    monkeypatch.setattr(PIPELINES[RunKind.KERNEL], "run", begin)
    store.update_run(run.id, status=RunStatus.FINISHED)
    longer = load_settings(["referee.evaluation_timeout_s=3600"]).referee
    for cut_short in (True, False):
        store.save_record(run.id, StitchResult(mode="eager", summary="eager is kept", cut_short=cut_short))
        resume(run.id, settings.model_copy(update={"referee": longer}))
        assert store.get_run(run.id).status is RunStatus.FINISHED
    assert seen == [3600.0]


@pytest.fixture
def begun(store: Store, run: Run, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why the search of each session takes no step; the run is finished, and its proof was cut short."""
    seen: list[str] = []
    for kind in (RunKind.KERNEL, RunKind.MODEL):
        monkeypatch.setattr(
            PIPELINES[kind], "run", lambda pipeline: seen.append(pipeline.meter.exhausted(dollars=0.0))
        )
    _cut_short(store, run)
    return seen


def _cut_short(store: Store, run: Run, *, unjudged: bool = False) -> None:
    store.update_run(run.id, status=RunStatus.FINISHED)
    made = StitchResult(mode="eager", summary="eager is kept", cut_short=True, unjudged=unjudged)
    store.save_record(run.id, made)


def test_a_proof_that_cannot_be_repeated_here_is_left_as_it_is(
    store: Store, settings: Settings, run: Run, begun: list[str], tmp_path: Path
) -> None:
    store.update_run(run.id, device="another CPU")
    assert resume(run.id, settings).run.id == run.id
    with pytest.raises(UsageError, match=f"agentforge runs artifact {run.id} "):
        resume(run.id, settings, out=tmp_path / "other")
    with pytest.raises(UsageError, match="was begun on another CPU"):
        resume(run.id, settings, limits={"minutes": 30})
    live = _live_run(store, settings)
    assert resume(live.id, settings).run.id == live.id
    with pytest.raises(UsageError, match="needs its weights"):
        resume(live.id, settings, limits={"minutes": 30})
    assert not begun


def _live_run(store: Store, settings: Settings) -> Run:
    """Finished and cut short; its weights are gone."""
    target = nouns.target()
    reference = "_WEIGHTS = Path('/nowhere/live/a.pt')\nclass Model: ..."
    definition = target.definition.model_copy(update={"reference": reference})
    target = target.model_copy(update={"definition": definition, "origin": "live:Net"})
    run = create_run(store, RunInput(target, settings), CPU, kind=RunKind.MODEL)
    _cut_short(store, run)
    return run


def test_a_model_that_could_not_be_judged_is_tried_again_only_under_new_limits(
    store: Store, settings: Settings, run: Run, begun: list[str]
) -> None:
    _cut_short(store, run, unjudged=True)
    assert resume(run.id, settings).run.id == run.id
    assert not begun
    resume(run.id, settings, limits={"minutes": 30})
    assert begun == [""]


def test_a_repeated_proof_takes_no_step_of_a_search_that_its_budget_ended(
    store: Store, settings: Settings, run: Run, begun: list[str]
) -> None:
    for nothing_left in (False, True):
        store.save_record(run.id, SearchSummary(reason="the budget is used up", nothing_left=nothing_left))
        resume(run.id, settings)
    resume(run.id, settings, limits={"minutes": 30})
    assert begun == ["the budget is used up", "", ""]


def test_a_database_that_is_open_already_is_used(store: Store, run: Run, tmp_path: Path) -> None:
    store.update_run(run.id, status=RunStatus.FINISHED)
    other = Settings(home=tmp_path / "other")
    assert resume(run.id, other, store=store).run.id == run.id
    assert not other.home.exists()


def test_the_folder_that_a_run_began_with_is_checked_first(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    run = created(store, settings, out=tmp_path / "made")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="made contains something that is no artifact"):
        resume(run.id, settings)


def test_a_metric_that_is_gone_is_missed_before_the_search(
    store: Store, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(pipeline: RunPipeline) -> None:
        raise MachineError("begun")

    monkeypatch.setattr(PIPELINES[RunKind.MODEL], "run", begin)
    metric = tmp_path / "metric.py"
    permission = Permission.parse("bf16", f"{metric}:accuracy", "1%")
    found = RunInput(nouns.target(), settings, (), ())
    run = create_run(store, found, CPU, kind=RunKind.MODEL, permission=permission)
    with pytest.raises(UsageError, match=r"metric\.py cannot be read \(No such file"):
        resume(run.id, settings)
    metric.write_text("def accuracy(model): ...\n")
    with pytest.raises(MachineError, match="begun"):
        resume(run.id, settings)


def test_a_run_knows_each_code_that_judged_it(
    store: Store, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(pipeline: RunPipeline) -> None:
        raise MachineError("enough")

    monkeypatch.setattr(PIPELINES[RunKind.KERNEL], "run", begin)
    assert store.get_record(run.id, JudgingCode) is None
    for code in ("one", "other", "one"):
        monkeypatch.setattr(judges, "judging_code", lambda code=code: code)
        with pytest.raises(MachineError, match="enough"):
            resume(run.id, settings)
    assert store.get_record(run.id, JudgingCode) == JudgingCode(codes=("one", "other"))


def test_a_part_of_a_mapping_leaves_its_other_parts() -> None:
    began = load_settings(["search.policy=beam", "search.options.width=3", "search.options.depth=2"])
    kept = remembered(began, detect("cpu"), None)
    again = restored(kept, load_settings(["search.options.width=4"])).search
    assert again.options == {"width": 4, "depth": 2}
    other = restored(kept, load_settings(["search.policy=best-first", "search.options.starts=1"])).search
    assert other.options == {"starts": 1}
    assert restored(kept, load_settings(["search.policy=best-first"])).search.options == {}
    languages = {"cpp": {"a": 1, "b": 2}, "cuda": {"c": 3}}
    kept = kept.model_copy(update={"referee": {"language_options": languages}})
    merged = restored(kept, load_settings(["referee.language_options.cpp.b=4"])).referee
    assert merged.language_options == {"cpp": {"a": 1, "b": 4}, "cuda": {"c": 3}}


def test_a_setting_of_another_version_is_named() -> None:
    kept = RunSettings(referee={"full_blocks": 24, "of_tomorrow": 1})
    with pytest.raises(UsageError, match=r"does not take, referee\.of_tomorrow \(Extra inputs"):
        restored(kept, load_settings([]))


def test_the_device_has_the_referees_threads(
    store: Store, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def begin(pipeline: RunPipeline) -> None:
        seen.append(pipeline.device.threads)
        raise MachineError("enough")

    monkeypatch.setattr(PIPELINES[RunKind.KERNEL], "run", begin)
    with pytest.raises(MachineError, match="enough"):
        resume(run.id, settings.model_copy(update={"referee": RefereeSettings(threads=1)}))
    assert seen == [1]


def test_only_limits_that_a_caller_names_are_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of settings, or a variable, is not meant for a run that has a budget of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agentforge.toml").write_text("[budget]\nattempts = 3\n")
    settings = load_settings(["budget.minutes=30", "budget.tokens=5000"])
    assert settings.budget.attempts == 3
    assert named_limits(settings, ["referee.processes", "budget.minutes"]) == {"minutes": 30.0}
    assert named_limits(settings, []) == {}

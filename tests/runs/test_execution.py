"""Every kind of run takes one path: checks, loading, a run with its records, its phases under its lock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentforge.agents import create_coder, create_judge, create_planner
from agentforge.config import Settings, load_settings
from agentforge.devices import DeviceSpec, detect
from agentforge.frontends import FrontendOptions
from agentforge.loop import Agents
from agentforge.runs import IntentStart, KernelStart, ModelStart, SequentialStart, TargetStart, start_run
from agentforge.runs._base import RunInput
from agentforge.runs.execution import create_run, execute, opened
from agentforge.runs.kinds.pipelines import PIPELINES
from agentforge.runs.pipeline import RunPipeline
from agentforge.schema import (
    Attempt,
    Event,
    GivenKernel,
    GivenKernels,
    Level,
    MachineError,
    Run,
    RunFailed,
    RunKind,
    RunResumed,
    RunSettings,
    RunStarted,
    RunStatus,
    TargetError,
    UsageError,
)
from agentforge.store import Store
from tests.store import nouns

CPU = detect("cpu")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def test_each_kind_of_run_has_phases_and_each_beginning_has_a_kind() -> None:
    assert set(PIPELINES) == set(RunKind)
    options = FrontendOptions()
    starts = (
        ModelStart("m.py", options),
        TargetStart(nouns.target),
        KernelStart(Path("k.py"), "m.py", options),
        SequentialStart(Path("f.c"), {}),
        IntentStart("softmax"),
    )
    kinds = [RunKind.MODEL, RunKind.MODEL, RunKind.KERNEL, RunKind.SEQUENTIAL, RunKind.INTENT]
    assert [start.kind for start in starts] == kinds


def created(store: Store, settings: Settings, device: DeviceSpec = CPU, out: Path | None = None) -> Run:
    solution = nouns.solution()
    kernels = GivenKernels(kernels=(GivenKernel(strategy="given-kernel", solution=solution.hash),))
    found = RunInput(nouns.target(), settings, (kernels,), (solution,))
    return create_run(store, found, device, kind=RunKind.KERNEL, out=out)


def test_a_run_whose_live_module_has_no_weights_is_refused(store: Store, settings: Settings) -> None:
    reference = "_WEIGHTS = Path('/nowhere/live/a.pt')\nclass Model: ..."
    definition = nouns.target().definition.model_copy(update={"reference": reference})
    target = nouns.target().model_copy(update={"definition": definition, "origin": "live:Net"})
    run = create_run(store, RunInput(target, settings), CPU, kind=RunKind.MODEL)
    with pytest.raises(UsageError, match=r"needs its weights, and /nowhere/live/a\.pt cannot be read"):
        execute(store, run, settings, CPU, None, None)


def test_a_new_run_has_its_kind_its_records_and_its_solutions(store: Store, settings: Settings) -> None:
    run = created(store, settings, out=Path("made"))
    stored = store.get_run(run.id)
    assert (stored.kind, stored.status, stored.device) == (RunKind.KERNEL, RunStatus.CREATED, CPU.name)
    assert "-llama-" in run.id
    kept = store.get_record(run.id, RunSettings)
    assert kept is not None
    assert (kept.out, kept.search["policy"]) == (str(Path("made").absolute()), "best-first")
    given = store.get_record(run.id, GivenKernels)
    assert given is not None
    assert store.get_solution(given.kernels[0].solution) == nouns.solution()


def test_a_run_is_opened_under_its_lock_with_the_phases_of_its_kind(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    run = created(store, settings, out=tmp_path / "made")
    with opened(store, run, settings, CPU, None) as pipeline:
        assert type(pipeline) is PIPELINES[RunKind.KERNEL]
        assert pipeline.out == tmp_path / "made"
        assert pipeline.folder.is_dir()
        with pytest.raises(UsageError, match="process"), store.lock_run(run.id):
            pass
    with opened(store, run, settings, CPU, None, out=tmp_path / "other") as pipeline:
        assert pipeline.out == tmp_path / "other"
    with opened(store, run, settings, CPU, None, out=Path("relative")) as pipeline:
        assert pipeline.out == Path("relative").absolute()


@pytest.mark.parametrize("level", [Level.QUICK, Level.FULL])
def test_an_opened_run_knows_which_regions_had_a_full_verdict(
    store: Store, settings: Settings, level: Level
) -> None:
    run, found = created(store, settings), nouns.evaluation(level=level)
    store.save_definition(nouns.definition())
    identifier, solution = store.save_evaluation(found, run.id), nouns.solution()
    store.save_attempt(
        Attempt(
            id=f"{run.id}/0001",
            run=run.id,
            bottleneck=solution.definition,
            number=1,
            solution=solution.hash,
            evaluation=identifier,
        )
    )
    with opened(store, run, settings, CPU, None) as pipeline:
        assert pipeline.judged_in_full == ({solution.definition} if level is Level.FULL else set())
    written = settings.model_copy(update={"search": settings.search.model_copy(update={"coder": "replay:x"})})
    agents = Agents(create_planner("playbook"), create_coder("playbook"), create_judge("playbook"))
    with opened(store, run, written, CPU, None, agents=agents) as pipeline:
        assert pipeline.judged_in_full is None


def test_replayed_verdicts_go_to_a_file_of_the_runs_folder_whatever_the_name_of_the_home(
    tmp_path: Path,
) -> None:
    home = tmp_path / "what? %41 #1"
    settings = load_settings(["search.coder=replay:x", "llm.replay_verdicts=true"], {"home": home})
    agents = Agents(create_planner("playbook"), create_coder("playbook"), create_judge("playbook"))
    with Store(settings.url) as store:
        run = created(store, settings)
        with opened(store, run, settings, CPU, None, agents=agents) as pipeline:
            pipeline._knowledge_store().close()
            assert (pipeline.folder / "replayed.db").is_file()
    assert list(tmp_path.iterdir()) == [home]


def test_a_session_says_and_keeps_what_was_used_before_and_what_of_it_was_stitching(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stitch(pipeline: RunPipeline) -> None:
        pipeline.meter.stitching_begins()
        time.sleep(0.01)

    monkeypatch.setattr(PIPELINES[RunKind.MODEL], "run", stitch)
    told: list[Event] = []
    report = start_run(TargetStart(nouns.target), settings, device="cpu", on_event=told.append)
    assert isinstance(told[0], RunStarted) and told[0].seconds_used == 0.0
    assert 0.0 < report.run.stitched_s <= report.run.seconds_used
    with Store(settings.url) as store:
        run = store.update_run(report.run.id, seconds_used=193.0, stitched_s=150.0)
        again = execute(store, run, settings, CPU, None, told.append).run
        assert isinstance(told[-2], RunResumed) and told[-2].seconds_used == 193.0
        assert again.stitched_s > 150.0 and again.seconds_used > 193.0
        with opened(store, store.get_run(run.id), settings, CPU, None) as pipeline:
            assert pipeline.meter.search_s == pytest.approx(43.0, abs=5.0)


def test_a_run_stays_on_its_device(store: Store, settings: Settings) -> None:
    run = created(store, settings, DeviceSpec(kind="cpu", name="another machine", architecture="x"))
    with (
        pytest.raises(UsageError, match="was begun on another machine"),
        opened(store, run, settings, CPU, None),
    ):
        pass


@dataclass
class Refused:
    """A beginning that says whether it was loaded."""

    error: Exception | None = None
    kind: RunKind = RunKind.MODEL
    ranged: bool = False
    loaded: list[str] = field(default_factory=list)

    def check(self, settings: Settings, device: DeviceSpec) -> None:
        if self.error is not None:
            raise self.error

    def load(self, settings: Settings, device: DeviceSpec) -> RunInput:
        self.loaded.append(device.kind)
        raise TargetError("the model cannot be loaded")


@pytest.mark.parametrize("setting", ["policy", "trackers", "threads", "out", "own"])
def test_what_is_wrong_is_found_before_anything_is_loaded(
    settings: Settings, tmp_path: Path, setting: str
) -> None:
    search = settings.search.model_copy(update={"policy": "nope"})
    referee = settings.referee.model_copy(update={"threads": 10_000})
    wrong = {
        "policy": {"search": search},
        "trackers": {"trackers": ("nope",)},
        "threads": {"referee": referee},
    }
    start = Refused(MachineError("no compiler") if setting == "own" else None)
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "made" if setting == "out" else None
    with pytest.raises((UsageError, MachineError)):
        start_run(start, settings.model_copy(update=wrong.get(setting, {})), device="cpu", out=out)
    assert start.loaded == []
    assert not settings.home.exists(), "no database was made"


def test_what_cannot_be_loaded_makes_no_run(settings: Settings) -> None:
    start = Refused()
    with pytest.raises(TargetError, match="cannot be loaded"):
        start_run(start, settings, device="cpu")
    assert start.loaded == ["cpu"]
    with Store(settings.url) as opened_store:
        assert opened_store.list_runs() == ()


def test_a_phase_that_fails_leaves_a_run_that_says_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise MachineError("the compiler\nis gone")

    monkeypatch.setattr(PIPELINES[RunKind.MODEL], "run", fail)
    told: list[Event] = []
    with pytest.raises(MachineError):
        start_run(TargetStart(nouns.target), settings, device="cpu", on_event=told.append)
    with Store(settings.url) as opened_store:
        (run,) = opened_store.list_runs()
        assert (run.status, run.error) == (RunStatus.FAILED, "the compiler is gone")
        assert list(opened_store.events(run.id)) == told
    started, failed = told
    assert isinstance(started, RunStarted)
    assert isinstance(failed, RunFailed)
    assert (started.target, started.device, failed.error) == ("llama", CPU.name, "the compiler is gone")


def test_calls_of_language_models_end_at_the_limit_of_the_run(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")
    model = "openai:m@http://127.0.0.1:9/v1"
    search = settings.search.model_copy(update={"coder": model, "judge": model, "limit_s": 100.0})
    settings = settings.model_copy(update={"search": search})
    with opened(store, created(store, settings), settings, CPU, None) as pipeline:
        assert pipeline.agents.judge._role.ledger.deadline == pipeline.meter.limit
        assert pipeline.agents.judge._role.ledger.deadline is not None

"""What a run's phases keep for each other and for a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentforge.config import Settings
from agentforge.devices import Roofline, detect
from agentforge.loop import SearchResult
from agentforge.referee import EvaluationRequest, OnStage
from agentforge.runs._base import RunInput
from agentforge.runs.execution import create_run, opened
from agentforge.runs.run_settings import with_referee
from agentforge.schema import (
    Evaluation,
    EvaluationStatus,
    Level,
    Permission,
    Progress,
    RunKind,
    Solution,
    StitchLeft,
    StitchResult,
)
from agentforge.stitch import StitchedArtifact
from agentforge.store import Store
from tests.loop.scripted import SimulatedReferee
from tests.store import nouns

CPU = detect("cpu")
NOTHING = SearchResult(nouns.profile(), (), 0, "the search is over", False)


class Stitching:
    """Keeps eager; the first time, the time ends before that."""

    def __init__(self) -> None:
        self.metrics: list[float | None] = []
        self.compiled: list[tuple[str, ...]] = []

    def __call__(self, target: Any, profile: Any, chosen: Any, folder: Path, **options: Any) -> Any:
        folder.mkdir(exist_ok=True)
        self.metrics.append(options["metric"])
        self.compiled.append(options["compiled"])
        return StitchedArtifact(
            folder=folder,
            mode="eager",
            summary="eager is kept",
            kernels=(),
            solution=nouns.solution(),
            evaluation=None,
            proven=True,
            cut_short=len(self.metrics) == 1,
            unjudged=len(self.metrics) == 1,
            report={
                "kernels": [],
                "packed": [],
                "moves": [],
                "tokens_per_second": {},
                "sites_left_as_they_were": {},
            },
        )


def test_stitching_that_was_cut_short_is_done_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stitching: Any = Stitching()
    made: list[StitchResult | None] = []
    monkeypatch.setattr("agentforge.stitch.stitch", stitching)
    with Store(settings.url) as store:
        run = create_run(store, RunInput(nouns.target(), settings), CPU, kind=RunKind.MODEL)
        with opened(store, run, settings, CPU, None) as pipeline:
            for _ in range(3):
                pipeline.stitch(NOTHING, stitching)
                made.append(store.get_record(run.id, StitchResult))
    assert stitching.metrics == [None, None]
    assert [result and result.unjudged for result in made] == [True, False, False]


@pytest.mark.slow
def test_the_original_models_metric_is_kept_for_stitching(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stitching: Any = Stitching()
    monkeypatch.setattr("agentforge.stitch.stitch", stitching)
    monkeypatch.setattr("agentforge.stitch.metric.metric_value", lambda *_, **__: 0.9)
    permission = Permission(precision="bf16", metric="/m.py:accuracy", bound=0.1, relative=True)
    found = RunInput(nouns.target(), settings)
    with Store(settings.url) as store:
        run = create_run(store, found, CPU, kind=RunKind.MODEL, permission=permission)
        with opened(store, run, settings, CPU, None) as pipeline:
            pipeline._try_metric()
        with opened(store, run, settings, CPU, None) as pipeline:  # a resume
            pipeline.stitch(NOTHING, stitching)
    assert stitching.metrics == [0.9]


@pytest.mark.parametrize(
    ("search", "referee", "modes"),
    [
        ({}, {}, ("compile", "freezing")),
        ({}, {"baselines": ("freezing",)}, ("freezing",)),
        ({}, {"compile_baseline": False}, ("compile",)),
        ({"prove_compile": False}, {}, ()),
    ],
)
def test_the_modes_of_torch_compile_that_are_baselines_may_become_the_artifact(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    search: dict[str, Any],
    referee: dict[str, Any],
    modes: tuple[str, ...],
) -> None:
    stitching: Any = Stitching()
    monkeypatch.setattr("agentforge.stitch.stitch", stitching)
    update = {
        "search": settings.search.model_copy(update={"prove_compile": True, **search}),
        "referee": settings.referee.model_copy(update={"compile_baseline": True, "baselines": (), **referee}),
    }
    chosen = settings.model_copy(update=update)
    with Store(settings.url) as store:
        run = create_run(store, RunInput(nouns.target(), chosen), CPU, kind=RunKind.MODEL)
        with opened(store, run, chosen, CPU, None) as pipeline:
            pipeline.stitch(NOTHING, stitching)
    assert stitching.compiled == [modes]


class StitchingWithForecast(Stitching):
    """Judges one variant."""

    def __call__(self, target: Any, profile: Any, chosen: Any, folder: Path, **options: Any) -> Any:
        options["forecast"].quick = 2
        options["forecast"].before(Level.QUICK)
        return super().__call__(target, profile, chosen, folder, **options)


def test_what_is_left_of_stitching_is_estimated_from_earlier_verdicts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those on the model if there are any, also of another run, else those on the run's kernels."""
    monkeypatch.setattr("agentforge.stitch.stitch", StitchingWithForecast())
    target, here = nouns.target(), nouns.evaluation().environment.model_copy(update={"device": CPU.name})
    model = {"definition": target.definition.hash, "environment": here}
    found = []
    with Store(settings.url) as store:
        for name in ("kernels", "model"):
            run = create_run(store, RunInput(target, settings), CPU, kind=RunKind.MODEL)
            quick = nouns.evaluation(environment=here, level=Level.QUICK, seconds=4.0)
            full = nouns.evaluation(environment=here, seconds=50.0, after_s=1.0)
            for evaluation in (quick, full):
                store.save_evaluation(evaluation.model_copy(update={"solution": name}), run.id)
            if name == "kernels":
                slow = nouns.evaluation(seconds=900.0, definition=target.definition.hash)  # on another device
                store.save_evaluation(slow, run.id)
            else:
                for place, seconds in enumerate((100.0, 120.0, 0.0, 200.0)):
                    made = nouns.evaluation(**model, seconds=seconds, after_s=float(place))
                    store.save_evaluation(made)
            with opened(store, run, settings, CPU, None) as pipeline:
                pipeline.stitch(NOTHING, pipeline)  # type: ignore[arg-type]
            found += [event for event in store.events(run.id) if isinstance(event, StitchLeft)]
    assert [(event.variants, event.seconds) for event in found] == [(3, 58.0), (3, 128.0)]


def test_a_profile_says_how_long_the_last_one_of_its_target_took(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = nouns.profile().model_copy(update={"device": CPU.name})
    roofline = Roofline(bandwidth=1e10, peak_flops={"float32": 1e10})
    monkeypatch.setattr("agentforge.runs.pipeline.profile_target", lambda *_, **__: made)
    monkeypatch.setattr("agentforge.runs.pipeline.measure_roofline", lambda *_, **__: roofline)
    monkeypatch.setattr("agentforge.runs.pipeline.at_ceilings", lambda profile, *_: profile)
    said = []
    with Store(settings.url) as store:
        for target in (nouns.target(), nouns.target(), nouns.target().model_copy(update={"origin": "b.py"})):
            run = create_run(store, RunInput(target, settings), CPU, kind=RunKind.MODEL)
            with opened(store, run, settings, CPU, None) as pipeline:
                monkeypatch.setattr(type(pipeline.meter), "seconds", 28.4)
                pipeline.profile()
            said.append([event.text for event in store.events(run.id) if isinstance(event, Progress)])
    assert said == [[], ["the last profile of this target took 28 s"], []]


def test_a_run_does_not_check_shares_by_ablation(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def profiled(*_: Any, **options: Any) -> Any:
        asked.update(options)
        return nouns.profile()

    monkeypatch.setattr("agentforge.runs.pipeline.profile_target", profiled)
    with Store(settings.url) as store:
        run = create_run(store, RunInput(nouns.target(), settings), CPU, kind=RunKind.MODEL)
        with opened(store, run, settings, CPU, None) as pipeline:
            pipeline.make_profile(Roofline(bandwidth=1e10, peak_flops={"float32": 1e10}))
    assert "progress" in asked and "ablation" not in asked


class OnThisCpu(SimulatedReferee):
    """Its verdicts are those of the run's device."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        found = super().evaluate(request, progress=progress)
        return found.model_copy(
            update={"environment": found.environment.model_copy(update={"device": CPU.name})}
        )


class StitchingOne(Stitching):
    """Keeps a model whose full verdict is verified."""

    def __init__(self, model: Solution) -> None:
        super().__init__()
        self.model = model

    def __call__(self, target: Any, profile: Any, chosen: Any, folder: Path, **options: Any) -> Any:
        artifact = super().__call__(target, profile, chosen, folder, **options)
        asked = EvaluationRequest(target.definition, target.workloads, self.model, level=Level.FULL)
        proven = (evaluation := options["referee"].evaluate(asked)).verified
        kernels = ("kernel",) if proven else ()
        changes = {"cut_short": False, "kernels": kernels, "evaluation": evaluation, "proven": proven}
        return artifact.model_copy(update=changes)


def test_a_verdict_on_the_model_that_a_busy_machine_spoiled_is_asked_for_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, referee = nouns.target(), OnThisCpu()
    model = nouns.solution('# {"speed": 2.0, "noisy": 1}', definition=target.definition.hash)
    monkeypatch.setattr("agentforge.stitch.stitch", StitchingOne(model))
    with Store(settings.url) as store:
        run = create_run(store, RunInput(target, settings), CPU, kind=RunKind.MODEL)
        results = []
        for _ in range(3):
            with opened(store, run, settings, CPU, None) as pipeline:
                pipeline.stitch(NOTHING, referee)
                results.append(pipeline.run_log.record(StitchResult))
    assert [(r.proven, r.cut_short) for r in results if r] == [(False, True), (True, False), (True, False)]
    assert len(referee.evaluations) == 2


def test_a_verdict_on_the_model_that_took_too_long_is_asked_for_again_with_more_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, referee = nouns.target(), OnThisCpu(status=EvaluationStatus.TIMEOUT)
    model = nouns.solution('# {"speed": 2.0}', definition=target.definition.hash)
    monkeypatch.setattr("agentforge.stitch.stitch", StitchingOne(model))
    with Store(settings.url) as store:
        run = create_run(store, RunInput(target, settings), CPU, kind=RunKind.MODEL)
        asked = []
        for seconds in (900.0, 900.0, 1800.0, 1800.0):
            limited = with_referee(settings, evaluation_timeout_s=seconds)
            with opened(store, run, limited, CPU, None) as pipeline:
                pipeline.stitch(NOTHING, referee)
                asked.append(len(referee.evaluations))
            referee.status = EvaluationStatus.TIMEOUT if len(asked) < 2 else None
        found = store.get_record(run.id, StitchResult)
    assert asked == [1, 1, 2, 2]
    assert found is not None and found.proven and not found.cut_short

"""The report says what the store says, and claims nothing that is not proven."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentforge.analysis import build_report
from agentforge.schema import (
    REUSED,
    Attempt,
    AttemptEvaluated,
    Evaluation,
    Event,
    Evidence,
    Profile,
    ProfileDone,
    RunResumed,
    StitchResult,
)
from agentforge.store import Store
from tests.loop.conftest import Bench, make_run
from tests.loop.scripted import bottleneck, profile
from tests.loop.test_bottleneck_state import measured
from tests.store.test_calls import call as make_call

PROFILE = profile(
    bottleneck("won"),
    bottleneck("tried"),
    bottleneck("vendor", optimizable=False),
    bottleneck("left", share=0),
)
SCRIPT = {"won": [{"speed": 2.0}, {"speed": 1.0, "cannot": "no"}], "tried": [{"speed": 0.5}]}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        store.save_profile("run", PROFILE)
        bench = Bench(store, tmp_path)
        bench.search(PROFILE, SCRIPT)
        yield bench


def stitched(store: Store, evaluation: Evaluation | None, **changes: object) -> None:
    identifier = store.save_evaluation(evaluation, "run") if evaluation else None
    fields = {"evaluation": identifier, "proven": True, "mode": "kernels", "summary": "1 kernel won"}
    store.save_record("run", StitchResult.model_validate({**fields, **changes}))


def test_before_the_end_nothing_is_claimed(bench: Bench) -> None:
    report = build_report(bench.store, "run")
    assert report.headline == "Not finished: nothing was proven end to end yet."
    assert report.end_to_end is None
    assert report.stopped == "nothing left is worth another attempt"
    won = report.regions[0]
    assert (won.attempts, won.failed, won.strategy) == (2, 1, "strategy-0")
    assert won.speedup["eager"].point == 2.0
    assert won.outcome == "verified alone; not integrated yet"


def test_what_became_of_each_region(bench: Bench) -> None:
    won = PROFILE.bottlenecks[0].definition.hash
    stitched(bench.store, measured(1.4), calls={won: 3})
    report = build_report(bench.store, "run")
    assert [(r.outcome, r.calls) for r in report.regions] == [
        ("integrated", 3),
        ("kept: nothing was verified faster than eager", None),
        ("kept: its operators have to stay as they are", None),
        ("kept: not tried", None),
    ]
    interval = "1.40x [1.39, 1.41]"
    assert report.headline == f"Verified: {interval} over eager, {interval} over torch.compile."


def test_shares_are_those_of_the_eager_time_and_of_what_is_left(bench: Bench) -> None:
    regions = build_report(bench.store, "run").regions
    now = PROFILE.with_solutions({PROFILE.bottlenecks[0].definition.hash: 2.0}).bottlenecks
    shares = {b.definition.hash: b.share for b in now}
    assert [r.share_now for r in regions] == [pytest.approx(shares[r.definition]) for r in regions]
    assert regions[0].share_now < regions[0].share  # type: ignore[operator]


def test_a_win_that_slows_the_whole_is_said_to_be_left_out(bench: Bench) -> None:
    stitched(bench.store, None, mode="eager", summary="nothing was faster; eager is kept")
    report = build_report(bench.store, "run")
    assert report.regions[0].outcome == "verified alone; the artifact does without it"
    assert report.headline == "nothing was faster; eager is kept"


@pytest.mark.slow
@pytest.mark.parametrize(("evidence", "proven"), [(Evidence.UNVERIFIED, True), (Evidence.VERIFIED, False)])
def test_only_what_is_proven_makes_a_headline(bench: Bench, evidence: Evidence, proven: bool) -> None:
    evaluation = measured(9.0).model_copy(update={"evidence": evidence, "reasons": ("it was too good",)})
    stitched(bench.store, evaluation, proven=proven)
    headline = build_report(bench.store, "run").headline
    assert headline == "The optimized model is not verified: it was too good."
    assert "9.0" not in headline


def test_what_was_not_measured_in_this_run_is_said(bench: Bench) -> None:
    final = measured(1.4)
    environment = final.environment.model_copy(update={"notes": {REUSED: "evaluation x of run y"}})
    stitched(bench.store, final.model_copy(update={"environment": environment}))
    (note,) = build_report(bench.store, "run").notes
    assert note == "the whole model was not measured in this run: its verdict is evaluation x of run y"


def test_a_promotion_during_the_reading_of_a_run_that_goes_on_does_no_harm(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = bench.store, bench.store.attempts
    tried, solution = PROFILE.bottlenecks[1].definition.hash, read("run")[0].solution
    evaluation = store.save_evaluation(measured(3.0), "run")

    def attempts(run: str) -> tuple[Attempt, ...]:
        found = read(run)
        store.save_promotion(run, tried, solution or "", evaluation)  # of an attempt that is not in `found`
        return found

    monkeypatch.setattr(store, "attempts", attempts)
    assert build_report(store, "run").regions[1].solution is None
    later = build_report(store, "run").regions[1]
    assert (later.solution, later.strategy) == (solution, "")


def test_a_run_without_a_profile(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        report = build_report(store, "run")
    assert (report.profile, report.regions, report.attempts) == (None, (), 0)


def test_it_survives_json(bench: Bench) -> None:
    report = build_report(bench.store, "run")
    assert type(report).model_validate_json(report.model_dump_json()) == report
    assert isinstance(report.profile, Profile)


def test_dollars_are_those_of_all_calls(bench: Bench) -> None:
    for key, role, status in (
        ("a", "author", "answered"),
        ("b", "planner", "failed"),
        ("c", "coder", "begun"),
    ):
        bench.store.save_call(make_call(key, role=role, status=status, dollars=0.25))
    report = build_report(bench.store, "run")
    assert report.dollars == 0.75
    assert [(c.role, c.failed) for c in report.llm] == [("author", 0), ("planner", 1), ("coder", 1)]


def test_the_first_verdict_is_timed_from_the_profile_of_its_session(tmp_path: Path) -> None:
    began = datetime(2026, 1, 2, tzinfo=UTC)

    def at(seconds: float, event: Event) -> Event:
        return event.model_copy(update={"time": began + timedelta(seconds=seconds)})

    profiled, resumed = ProfileDone(total_s=1.0), RunResumed(target="t", device="d")
    quick = {"attempt": "a", "number": 1, "bottleneck": "b", "level": "quick"}
    judged = AttemptEvaluated.model_validate({**quick, "status": "PASSED", "evidence": "unverified"})
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        for event in (
            at(0, profiled),
            at(5, resumed),
            at(10, profiled),
            at(11, profiled),  # told again after regions were merged
            at(12, judged.model_copy(update={"reused": True})),
        ):
            store.append_event("run", event)
        assert build_report(store, "run").first_verdict_s is None
        for event in (at(14.5, judged), at(20, resumed), at(21, profiled), at(30, judged)):
            store.append_event("run", event)
        assert build_report(store, "run").first_verdict_s == 4.5

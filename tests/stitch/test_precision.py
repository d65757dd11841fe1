"""When a variant in lower precision is taken, with a referee and a metric whose numbers are given."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentforge.referee import EvaluationRequest, OnStage
from agentforge.schema import (
    Evaluation,
    EvaluationStatus,
    Level,
    MoveKind,
    Permission,
    TargetError,
    TimeEnded,
)
from agentforge.stitch import precision
from agentforge.stitch.precision import LowerPrecision, permitted
from agentforge.stitch.select import Selection
from agentforge.stitch.trial import Trial
from agentforge.stitch.variants import Variant

from .test_select import TARGET, Given, Verdict, judged, promoted

METRICS = {None: 0.9, "changed": 0.899}


class Precise(Given):
    """Checks that each mode is judged by the definition it belongs to."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        mode = next(m for h, (m, _) in self.made.items() if self._same(h, request.solution.hash))
        assert request.solution.definition == request.definition.hash
        assert request.definition.precision == ("bf16" if mode == "kernels+bf16" else None)
        kernels = next(k for h, (_, k) in self.made.items() if self._same(h, request.solution.hash))
        self.judged.append((mode, tuple(sorted(kernels)), request.level.value))
        return self.verdict(mode, kernels, request.level)

    def _make(
        self,
        mode: str,
        kernels: frozenset[str],
        moves: Sequence[MoveKind] = (),
        eager: Sequence[str] = (),
        way: str = "",
    ) -> Variant:
        variant = super()._make(mode, kernels, moves, eager, way)
        lowered = permitted(TARGET.definition, self.permission).hash
        for definition in (TARGET.definition.hash, lowered):
            copy = variant.solution.model_copy(update={"definition": definition})
            self.made[copy.hash] = (mode, kernels)
        return variant

    def _same(self, known: str, asked: str) -> bool:
        return known == asked

    permission = Permission(precision="bf16", metric="/m.py:accuracy", bound=0.005, relative=True)


def improve(
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
    *,
    changed: float | Exception = 0.899,
    base_speed: float = 1.2,
    cut_short: bool = False,
    names: tuple[str, ...] = (),
    original: float | None = None,
    refuted: bool = False,
) -> tuple[Selection, dict[str, object], Precise, list[str]]:
    given, measured, ends, end = Precise(verdict), [], set[object](), time.monotonic() + 300.0

    def metric(target: object, permission: object, artifact: Path | None, **options: object) -> float:
        measured.append("changed" if artifact else "original")
        ends.add(options["end"])
        if artifact and isinstance(changed, Exception):
            raise changed
        return float(changed) if artifact else 0.9  # type: ignore[arg-type]

    monkeypatch.setattr(precision, "metric_value", metric)
    monkeypatch.setattr(precision, "build_into", lambda *arguments: None)
    kernels = {name: promoted(name) for name in names}
    base = given._make("kernels+packed", frozenset(names))
    trial = Trial(base, judged(frozenset(names), Level.FULL, base_speed, base_speed))
    quick = Trial(base, judged(frozenset(names), Level.QUICK, base_speed, base_speed))
    selection = Selection(base, trial, (quick, trial), "the base won", cut_short=cut_short)
    if refuted:
        wrong = judged(frozenset(names), Level.FULL, status=EvaluationStatus.INCORRECT_NUMERICAL)
        selection = Selection(given.eager(), None, (quick, Trial(base, wrong)), "eager", cut_short=True)
    lower = LowerPrecision(
        Precise.permission,
        TARGET,
        given,  # type: ignore[arg-type]
        kernels,
        given,
        Path("cache"),
        end,
        lambda line: None,
        original,
    )
    found, report = lower.improve(selection)
    assert ends <= {end}
    return found, report, given, measured


def fast(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
    return judged(kernels, level, 1.8, 1.7)


@pytest.mark.parametrize("names", [(), ("a",)])
def test_a_faster_variant_within_the_bound_is_taken(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    found, report, given, measured = improve(fast, monkeypatch, names=names)
    assert found.variant.mode == "kernels+bf16"
    assert found.reason.endswith(
        "won end to end; bf16 was allowed: metric accuracy 0.9 -> 0.899 (bound 0.5%)"
    )
    assert report["installed"] is True
    assert report["metric_values"] == {"original": 0.9, "changed": 0.899}
    assert measured == ["original", "changed"]
    assert given.judged[-1][2] == "full"
    assert found.trial is not None
    assert found.variant.solution.definition != TARGET.definition.hash


@pytest.mark.parametrize("cut_short", [True, False])
@pytest.mark.parametrize("changed", [0.899, 0.8])
def test_a_resume_goes_on_if_the_time_ended_before(
    monkeypatch: pytest.MonkeyPatch, changed: float, cut_short: bool
) -> None:
    found, _, _, _ = improve(fast, monkeypatch, changed=changed, cut_short=cut_short)
    assert found.variant.mode == ("kernels+bf16" if changed == 0.899 else "kernels+packed")
    assert found.cut_short is cut_short


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (0.8, "metric accuracy 0.9 -> 0.8 (bound 0.5%); that is outside the bound, so float32 is kept"),
        (1.0, "metric accuracy 0.9 -> 1 (bound 0.5%); that is outside the bound, so float32 is kept"),
        (TargetError("the metric returned nan"), "the metric returned nan, so float32 is kept"),
    ],
)
def test_a_variant_whose_metric_is_outside_of_the_bound_is_dropped(
    monkeypatch: pytest.MonkeyPatch, changed: float | Exception, says: str
) -> None:
    found, report, _, _ = improve(fast, monkeypatch, changed=changed)
    assert found.variant.mode == "kernels+packed"
    assert found.reason == f"the base won; bf16 was allowed: {says}"
    assert report["installed"] is False


@pytest.mark.parametrize("second", ["wrong", "slow", "unproven"])
def test_the_metric_of_one_variant_is_not_said_beside_the_reason_of_another(
    monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if kernels or mode != "kernels+bf16":
            return judged(kernels, level, 1.8, 1.7)
        if second == "wrong":
            return judged(kernels, level, 1.7, 1.7, status=EvaluationStatus.INCORRECT_NUMERICAL)
        return judged(kernels, level, 1.1 if second == "slow" else 1.7, 0.5 if level is Level.FULL else 1.6)

    found, report, _, _ = improve(verdict, monkeypatch, changed=0.8, names=("a",))
    refused = "metric accuracy 0.9 -> 0.8 (bound 0.5%); that is outside the bound"
    assert ("changed" in report["metric_values"]) is (second == "slow")  # type: ignore[operator]
    if second == "slow":
        assert report["summary"] == f"bf16 was allowed: {refused}"
    else:
        assert "metric" not in str(report["summary"])
    assert found.reason == f"the base won; {report['summary']}, so float32 is kept"


def test_a_variant_that_is_no_faster_is_not_proven_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _, given, measured = improve(fast, monkeypatch, base_speed=1.79)
    assert found.reason.endswith("bf16 was allowed: it was not faster end to end, so float32 is kept")
    assert all(level == "quick" for _, _, level in given.judged)
    assert measured == []


def test_a_variant_that_loses_to_the_best_baseline_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, 1.8, 0.9 if level is Level.FULL else 1.7)

    found, _, _, measured = improve(verdict, monkeypatch)
    assert found.variant.mode == "kernels+packed"
    assert measured == [], "only a variant that is proven runs beside the user's data"


@pytest.mark.parametrize("wrong", ["kernels+packed", "kernels+bf16"])
def test_a_wrong_answer_is_dropped_also_if_only_the_strict_bound_sees_it(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        status = EvaluationStatus.INCORRECT_NUMERICAL if mode == wrong else EvaluationStatus.PASSED
        return judged(kernels, level, 1.8, 1.7, status=status)

    found, _, given, _ = improve(verdict, monkeypatch, names=("a",))
    # The base was measured with its kernel before; the form without kernels is judged here.
    assert ("kernels+packed", (), "quick") in given.judged
    assert found.variant.kernels == {"a"}
    assert found.variant.mode == ("kernels+bf16" if wrong == "kernels+packed" else "kernels+packed")
    assert ("kernels+bf16", (), "quick") not in given.judged or wrong == "kernels+bf16"


def test_the_full_verdict_on_the_strict_bound_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _, given, _ = improve(fast, monkeypatch, refuted=True)
    assert found.variant.mode == "eager"
    assert given.judged == []


def test_a_metric_that_is_known_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found, report, _, measured = improve(fast, monkeypatch, original=0.9)
    assert found.variant.mode == "kernels+bf16"
    assert measured == ["changed"]
    assert report["metric_values"] == {"original": 0.9, "changed": 0.899}


def test_if_the_time_ends_in_the_metric_float32_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found, report, _, _ = improve(fast, monkeypatch, changed=TimeEnded("over"))
    assert found.cut_short
    assert found.reason.endswith("the time for stitching ended before it was proven, so float32 is kept")
    assert report["installed"] is False


def test_if_the_model_cannot_be_judged_float32_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        raise TargetError("two calls differ")

    found, _, _, _ = improve(verdict, monkeypatch, names=("a",))
    assert found.cut_short and found.unjudged
    assert found.variant.mode == "kernels+packed"
    assert "the model could not be judged: two calls differ, so float32 is kept" in found.reason


def test_if_the_time_ends_float32_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if level is Level.FULL:
            raise TimeEnded("over")
        return judged(kernels, level, 1.8, 1.7)

    found, report, _, _ = improve(verdict, monkeypatch)
    assert found.cut_short and not found.unjudged
    assert found.variant.mode == "kernels+packed"
    assert "the time for stitching ended before it was proven" in found.reason
    assert report["installed"] is False

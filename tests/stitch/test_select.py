"""Which variant is taken, with a referee whose numbers are given."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from agentforge.referee import EvaluationRequest, OnStage
from agentforge.schema import (
    Definition,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    KernelUse,
    Level,
    MemoryShortageError,
    Move,
    MoveKind,
    Performance,
    Solution,
    StageResult,
    TargetError,
    TimeEnded,
)
from agentforge.stitch.select import Selection, Selector
from agentforge.stitch.trial import Forecast
from agentforge.stitch.variants import Promoted, Variant
from agentforge.testing.language import make_solution

from .making import target_of

Verdict = Callable[[str, frozenset[str], Level], Evaluation]
TARGET = target_of("class Model: ...")


def solution(text: str) -> Solution:
    return make_solution("python", {"model_new.py": text}, definition=TARGET.definition.hash)


def promoted(name: str, time_s: float = 1.0) -> Promoted:
    definition = Definition(name=name, op_type="norm", reference=name)
    return Promoted(name, definition, solution(name), (), time_s)


class Given:
    """Variants without a model, and a referee without a clock."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.made: dict[str, tuple[str, frozenset[str]]] = {}
        self.judged: list[tuple[str, tuple[str, ...], str]] = []
        self.deadlines: list[float | None] = []
        self.sol_s = set[float | None]()
        self.placeless: set[MoveKind] = set()
        self.units: Sequence[str] = ("",)
        self.stages: Sequence[str] = ()

    def prepare(self, selections: Sequence[Sequence[str]], **options: Any) -> None:
        return None

    def prepare_moves(self, kernels: Any, mode: str, choices: Any) -> None:
        return None

    def _make(
        self,
        mode: Any,
        kernels: frozenset[str],
        moves: Sequence[MoveKind] = (),
        eager: Sequence[str] = (),
        way: str = "",
    ) -> Variant:
        made = solution(f"{mode} {sorted(kernels)} {sorted(moves)} {sorted(eager)} {way}")
        label = "+".join([mode, *moves]) + "".join(f"-{unit}" for unit in eager)
        self.made[made.hash] = (label + (f" ({way})" if way else ""), kernels)
        return Variant(
            mode,
            kernels,
            made,
            expected=dict.fromkeys(kernels, 1),
            moves=dict.fromkeys(moves, 1 if kernels else 2),
            compiled=tuple(u for u in self.units if u not in eager) if mode == "kernels+compile" else (),
            eager=tuple(eager),
            way=way,
        )

    def with_kernels(
        self,
        kernels: Sequence[str],
        mode: str,
        moves: Sequence[MoveKind] = (),
        eager: Sequence[str] = (),
        way: str = "",
    ) -> Variant | None:
        found = [kind for kind in moves if kind not in self.placeless]
        if moves and not found:
            return None
        if not kernels and mode in ("kernels", "kernels+compile") and not moves:
            return None
        return self._make(mode, frozenset(kernels), found, eager, way)

    def compiled(self, mode: str) -> Variant:
        return self._make(mode, frozenset())

    def eager(self) -> Variant:
        return self._make("eager", frozenset())

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        mode, kernels = self.made[request.solution.hash]
        self.deadlines.append(request.deadline)
        self.sol_s.add(request.sol_s)
        self.judged.append((mode, tuple(sorted(kernels)), request.level.value))
        for stage in self.stages:
            assert progress is not None
            progress(stage)
        return self.verdict(mode, kernels, request.level)


def judged(
    kernels: frozenset[str],
    level: Level,
    over_eager: float = 1.0,
    over_compile: float = 1.0,
    *,
    status: EvaluationStatus = EvaluationStatus.PASSED,
    spread: float = 0.01,
    runs: int = 1,
    **over: float,
) -> Evaluation:
    passed = status is EvaluationStatus.PASSED
    over |= {"eager": over_eager, "compile": over_compile}
    return Evaluation(
        definition="d",
        solution="s",
        workloads=(),
        level=level,
        status=status,
        evidence=Evidence.VERIFIED if passed and level is Level.FULL else Evidence.UNVERIFIED,
        performance=Performance(
            latency_s=1.0,
            baseline_s=over,
            speedup={name: Interval(point=p, low=p - spread, high=p + spread) for name, p in over.items()},
            control=Interval(point=1.0, low=0.99, high=1.01),
            blocks=10,
            processes=3,
        )
        if passed
        else None,
        kernels=tuple(KernelUse(name=k, own=True, calls=runs) for k in kernels) if runs else (),
        environment=Environment(device="d", architecture="a", toolchain={}),
        timestamp=datetime.now(UTC),
    )


def select(
    verdict: Verdict,
    *names: str,
    seconds: float = 60,
    placeless: Sequence[MoveKind] = (),
    units: Sequence[str] = ("",),
    **options: Any,
) -> tuple[Selection, Given]:
    given = Given(verdict)
    given.placeless.update(placeless)
    given.units = tuple(units)
    kernels = {name: promoted(name, float(i + 1)) for i, name in enumerate(names)}
    end = time.monotonic() + 300
    selector = Selector(TARGET, given, kernels, given, seconds=seconds, end=end, **options)  # type: ignore[arg-type]
    return selector.run(), given


@pytest.mark.parametrize(("gain", "taken"), [(1.3, "kernels"), (0.9, "eager")])
def test_one_operator_is_proven_at_once_and_in_no_other_variant(gain: float, taken: str) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over = gain if mode == "kernels" else 0.9
        return judged(kernels, level, over_eager=over, over_compile=over)

    selection, given = select(verdict, "a", alone=True, sol_s=1e-3)
    assert given.sol_s == {1e-3}
    assert selection.variant.mode == taken
    assert given.judged[0] == ("kernels", ("a",), "full")
    assert not any("kernels" in mode for mode, *_ in given.judged[1:])


def test_after_the_time_for_variants_one_that_wins_is_enough() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager=1.2, over_compile=1.2)

    selection, given = select(verdict, "a", "b", seconds=0)
    assert selection.variant.mode == "kernels"
    assert [mode for mode, *_ in given.judged] == ["kernels", "kernels"]

    def loses(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over = 1.3 if mode == "kernels+compile" else 0.9
        return judged(kernels, level, over_eager=over + 0.2, over_compile=over)

    assert select(loses, "a", seconds=0)[0].variant.mode == "kernels+compile"

    def loses_to_eager(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager=0.9, over_compile=0.2)

    for seconds, tried in ((0, False), (60, True)):
        _, given = select(loses_to_eager, "a", seconds=seconds)
        assert any(mode == "kernels+compile" for mode, *_ in given.judged) is tried


def test_without_variants_eager_is_kept_unmeasured_if_torch_compile_is_not_asked_for() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager=1.4, over_compile=1.0)

    selection, given = select(verdict, compiled=())
    assert (selection.variant.mode, selection.trial, given.judged) == ("eager", None, [])
    assert selection.reason == "no kernel was promoted; eager is kept"
    packed, given = select(verdict, packed=True, compiled=())  # there is something to try
    assert (packed.variant.mode, given.judged[0][0]) == ("kernels+packed", "kernels+packed")
    moved, _ = select(verdict, moves=MOVES[:1], compiled=())
    assert list(moved.variant.moves) == [NORM]


@pytest.mark.parametrize(("over_eager", "taken"), [(1.5, "kernels"), (0.9, "eager")])
def test_if_torch_compile_is_no_artifact_what_beats_eager_is_kept(over_eager: float, taken: str) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager=over_eager, over_compile=over_eager * 0.6)

    for alone in (True, False):
        selection, given = select(verdict, "a", alone=alone, compiled=())
        assert selection.variant.mode == taken
        assert not any(mode.startswith("compile") for mode, *_ in given.judged)
        assert taken == "eager" or selection.reason == "1 kernel won over eager"


@pytest.mark.parametrize("names", [("a",), ()])
@pytest.mark.parametrize(("gain", "taken"), [(1.3, "kernels+packed"), (1.1, "kernels"), (0.9, "kernels")])
def test_packed_weights_are_taken_where_they_are_faster(
    names: tuple[str, ...], gain: float, taken: str
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over = {"kernels": 1.1, "kernels+packed": gain}.get(mode, 0.9)
        return judged(kernels, level, over_eager=over, over_compile=over)

    selection, given = select(verdict, *names, packed=True)
    assert ("kernels+packed", names, "quick") in given.judged
    assert selection.variant.mode == (taken if names else "kernels+packed" if gain > 1 else "eager")
    _, given = select(verdict, *names)
    assert not any(mode == "kernels+packed" for mode, _, _ in given.judged)


@pytest.mark.parametrize("names", [("a", "b"), ()])
def test_a_cuda_graph_is_tried_first_where_the_gpu_waits_for_the_host(names: tuple[str, ...]) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = {"kernels+graph": 2.0}.get(mode, 0.9)
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, given = select(verdict, *names, waits=True)
    assert selection.variant.mode == "kernels+graph"
    assert given.judged == [("kernels+graph", names, "quick"), ("kernels+graph", names, "full")]
    _, given = select(verdict, *names)
    assert not any(mode == "kernels+graph" for mode, _, _ in given.judged)


@pytest.mark.parametrize(
    ("gains", "kept"),
    [
        ({"ab": 0.9, "a": 1.2, "b": 0.8, "": 0.95}, ("a",)),
        ({"ab": 0.8, "a": 0.85, "b": 0.7, "": 1.1}, ()),
        ({"ab": 0.9, "a": 0.8, "b": 0.7, "": 0.85}, ("a", "b")),
    ],
)
def test_a_graph_has_only_the_kernels_that_make_it_faster(gains: dict[str, float], kept: tuple[str]) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = gains["".join(sorted(kernels))] if mode == "kernels+graph" else 0.5
        return judged(kernels, level, over_eager=2 * gain, over_compile=gain)

    selection, _ = select(verdict, "a", "b", waits=True)
    assert selection.variant.mode == "kernels+graph"
    assert selection.variant.kernels == set(kept)


@pytest.mark.parametrize("names", [("a",), ()])
@pytest.mark.parametrize("waits", [True, False])
def test_several_streams_are_taken_where_they_add_to_it(names: tuple[str, ...], waits: bool) -> None:
    """In the graph if the GPU waits for the host; in a tie the simpler one wins."""
    plain = "kernels+graph" if waits else "kernels"

    def select_with(streamed: float) -> tuple[str, set[str]]:
        def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
            gain = {plain: 1.5, f"{plain}+streams": streamed}.get(mode, 0.9)
            return judged(kernels, level, over_eager=gain, over_compile=gain)

        selection, given = select(verdict, *names, waits=waits, streams=True)
        return selection.variant.mode, {mode for mode, *_ in given.judged}

    mode, judged_modes = select_with(1.6)
    assert mode == f"{plain}+streams"
    assert {m for m in judged_modes if "streams" in m} == {mode}
    if names or waits:  # without kernels there is nothing that is plain
        assert select_with(1.51)[0] == plain


def test_a_cuda_graph_that_ties_with_the_best_baseline_is_kept_where_torch_compile_is_slower() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over_eager = {"kernels+graph": 2.0, "compile": 1.5}.get(mode, 0.9)
        return judged(kernels, level, over_eager=over_eager, over_compile=0.99)

    selection, _ = select(verdict, waits=True)
    assert selection.variant.mode == "kernels+graph"
    assert "won over eager" in selection.reason


def test_kernels_under_torch_compile_are_taken_where_alone_they_do_not_win() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = {"kernels": 0.9, "kernels+compile": 1.6}[mode]
        return judged(kernels, level, over_eager=gain * 1.2, over_compile=gain)

    selection, given = select(verdict, "a", "b")
    assert selection.variant.mode == "kernels+compile"
    assert selection.trial is not None
    assert selection.trial.proven
    assert [level for *_, level in given.judged] == ["quick", "quick", "full"]


@pytest.mark.parametrize("seconds", [60, 0])
@pytest.mark.parametrize(
    ("alone", "under", "gain", "taken"),
    [
        (1.01, 1.15, 1.3, "kernels+compile"),  # alone they tie, which would be enough
        (1.04, 1.03, 1.3, "kernels"),
        (1.6, 1.2, 1.3, "kernels"),
        (1.01, 1.5, 1.02, "kernels"),  # torch.compile has nothing to add
    ],
)
def test_kernels_that_tie_are_compared_with_kernels_under_torch_compile(
    alone: float, under: float, gain: float, taken: str, seconds: int
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over = {"kernels": alone, "kernels+compile": under}.get(mode, 0.9)
        return judged(kernels, level, over_eager=over * gain, over_compile=over)

    selection, given = select(verdict, "a", seconds=seconds)
    assert selection.variant.mode == taken
    compared = any(mode == "kernels+compile" for mode, *_ in given.judged)
    assert compared == (gain > 1.05 or (seconds > 0 and taken != "kernels"))


@pytest.mark.parametrize(
    ("full", "taken"),
    [(1.2, "kernels+compile"), (1.04, "kernels+compile"), (1.01, "kernels"), (0.9, "kernels")],
)
def test_a_tie_is_taken_if_nothing_beside_it_is_faster(full: float, taken: str) -> None:
    """Quick verdicts are noisy: here that of the kernels alone is the highest."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        quick = {"kernels": 1.15, "kernels+packed": 0.9, "kernels+compile": 1.08}
        proven = {"kernels": 1.0, "kernels+compile": full}
        over, spread = (quick, 0.01) if level is Level.QUICK else (proven, 0.05)
        found = judged(kernels, level, over[mode] * 1.3, over[mode], spread=spread)
        assert found.performance is not None
        performance = found.performance.model_copy(update={"minimum_effect": 0.05})
        return found.model_copy(update={"performance": performance})

    selection, given = select(verdict, "a", packed=True)
    assert selection.variant.mode == taken
    finals = [mode for mode, _, level in given.judged if level == "full"]
    assert finals == ["kernels", "kernels+compile"]


@pytest.mark.parametrize("under", ["kernels", "kernels+compile"])
def test_where_torch_compile_is_wrong_what_was_proven_to_beat_eager_is_kept(under: str) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode.startswith("compile"):
            found = judged(kernels, level, status=EvaluationStatus.INCORRECT_NUMERICAL)
            stage = StageResult(name="variants", status=found.status, seconds=1.0)
            return found.model_copy(update={"stages": (stage,), "reasons": ("transposed",)})
        gain = 1.5 if mode == under else 1.1
        spread = 0.2 if level is Level.FULL else 0.01
        return judged(kernels, level, over_eager=gain, over_compile=gain / 1.52, spread=spread)

    selection, _ = select(verdict, "a")
    assert selection.variant.mode == under
    assert "won over eager; torch.compile was refused: transposed" in selection.reason


def test_a_kernel_that_costs_is_left_out() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 0.9 if "slow" in kernels else 1.4
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, _ = select(verdict, "good", "slow", "fine")
    assert selection.variant.kernels == {"good", "fine"}


def test_a_kernel_that_breaks_the_model_is_left_out() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        broken = EvaluationStatus.INCORRECT_NUMERICAL if "wrong" in kernels else EvaluationStatus.PASSED
        return judged(kernels, level, 1.5, 1.5, status=broken)

    selection, _ = select(verdict, "wrong", "right")
    assert selection.variant.kernels == {"right"}


@pytest.mark.parametrize(("compile_gain", "mode"), [(1.3, "compile"), (1.0, "eager"), (0.7, "eager")])
def test_where_nothing_wins_the_best_baseline_stays(compile_gain: float, mode: str) -> None:
    def verdict(variant: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if variant == "compile":
            return judged(kernels, level, over_eager=compile_gain, over_compile=1.0)
        return judged(kernels, level, over_eager=0.9 * compile_gain, over_compile=0.9)

    selection, _ = select(verdict, "a")
    assert selection.variant.mode == mode
    assert not selection.variant.kernels


def test_a_win_that_the_full_evaluation_does_not_confirm_is_none() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.5 if level is Level.QUICK else 0.97
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, given = select(verdict, "a")
    assert selection.variant.mode == "eager"
    assert "not confirmed" in selection.reason
    assert sum(level == "full" for *_, level in given.judged) <= 3


def test_kernels_that_tie_with_torch_compile_are_taken_without_it() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.0 if mode == "kernels" else 0.9
        return judged(kernels, level, over_eager=1.5 * gain, over_compile=gain)

    selection, _ = select(verdict, "a")
    assert selection.variant.mode == "kernels"


@pytest.mark.parametrize(
    ("low", "taken"),
    [
        ({"compile": 1.2, "freezing": 1.01}, True),
        ({"compile": 1.2, "freezing": 0.97}, False),  # its median is the larger one, and proves nothing
    ],
)
def test_a_win_is_one_over_each_baseline(low: dict[str, float], taken: bool) -> None:
    """Two modes of torch.compile have nearly the same median."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.3 if mode == "kernels+compile" else 0.9
        found = judged(kernels, level, over_eager=gain, over_compile=gain, freezing=gain)
        if level is Level.QUICK or mode != "kernels+compile":
            return found
        assert found.performance is not None
        speedup = {name: Interval(point=1.3, low=low.get(name, 1.2), high=1.4) for name in found.speedup}
        baseline_s = {"eager": 1.6, "compile": 1.30, "freezing": 1.31}
        changed = {"speedup": speedup, "baseline_s": baseline_s}
        return found.model_copy(update={"performance": found.performance.model_copy(update=changed)})

    selection, _ = select(verdict, "a")
    assert any(trial.wins for trial in selection.trials) is taken
    assert selection.reason.endswith("won end to end" if taken else "won over eager")


def test_no_tie_with_torch_compile_makes_up_for_one_with_eager() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.0 if mode == "kernels" else 0.9
        return judged(kernels, level, over_eager=gain + 0.005, over_compile=gain)

    selection, _ = select(verdict, "a")
    assert selection.variant.mode == "eager"


@pytest.mark.parametrize("runs", [0, 2])
def test_kernels_that_did_not_run_as_often_as_they_must_prove_nothing(runs: int) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, 2.0, 2.0, runs=runs)

    selection, _ = select(verdict, "a")
    assert selection.variant.mode != "kernels"
    assert any("ran" in p for trial in selection.trials for p in trial.problems)


def test_without_kernels_torch_compile_is_proven_if_it_looks_faster() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager=1.4, over_compile=1.0)

    selection, given = select(verdict)
    assert selection.variant.mode == "compile"
    assert given.judged == [("compile", (), "quick"), ("compile", (), "full")]


MODES = ("compile", "freezing")


@pytest.mark.parametrize("gain", [0.98, 1.02])
def test_if_quick_verdicts_see_no_gain_of_torch_compile_none_is_full(gain: float) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager=gain if mode == "compile" else 1.01, over_compile=1.0)

    selection, given = select(verdict, compiled=MODES)
    assert (selection.variant.mode, selection.trial) == ("eager", None)
    assert given.judged == [("compile", (), "quick"), ("compile+freezing", (), "quick")]
    assert selection.reason == (
        f"no kernel was promoted; at level quick torch.compile was {gain:.2f}x over eager and torch.compile "
        "(freezing) was 1.01x over eager, too little for a full evaluation; eager is kept"
    )


def test_a_mode_that_alone_looks_faster_is_the_one_that_is_proven() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.3 if mode == "compile+freezing" else 1.0
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, given = select(verdict, compiled=MODES)
    assert selection.variant.mode == "compile+freezing"
    assert given.judged[1:] == [("compile+freezing", (), "quick"), ("compile+freezing", (), "full")]
    assert "too little" not in selection.reason
    selection, given = select(verdict, compiled=["cuda-graph"])  # it is no mode of torch.compile
    assert [mode for mode, *_ in given.judged] == ["compile"]


@pytest.mark.parametrize(("gain", "judgements"), [(1.0, ["freezing quick"]), (1.3, ["compile full"])])
def test_a_mode_that_quick_verdicts_measured_as_a_baseline_needs_none(
    gain: float, judgements: list[str]
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over = {"compile": gain, "compile+freezing": 1.0}.get(mode, 0.9 * gain)
        return judged(kernels, level, over_eager=over, over_compile=over / gain)

    selection, given = select(verdict, "a", compiled=MODES)
    assert selection.variant.mode == ("compile" if gain > 1 else "eager")
    own = [(mode.rpartition("+")[2], level) for mode, _, level in given.judged if mode.startswith("compile")]
    assert [" ".join(judgement) for judgement in own] == judgements


def test_people_see_what_is_judged_and_what_takes_long() -> None:
    lines: list[str] = []
    given: Any = Given(lambda mode, kernels, level: judged(kernels, level, over_eager=0.9, over_compile=0.9))
    given.stages = ("build", "compiled baseline", "timing", "end", "compiled baseline")
    kernels = {"a": promoted("a")}
    options: dict[str, Any] = {"alone": True, "compiled": (), "progress": lines.append}
    Selector(TARGET, given, kernels, given, seconds=60, **options).run()
    assert lines[:3] == [
        "judging 1 kernel at level full",
        "judging 1 kernel at level full: it waits for the baseline that torch.compile compiles",
        "judging 1 kernel at level full: it is timed",
    ]
    assert len(lines) == 4


@pytest.mark.parametrize(("artifact", "taken"), [(1.4, "compile+freezing"), (1.2, "compile")])
def test_the_fastest_mode_of_torch_compile_is_kept_if_its_artifact_is_faster(
    artifact: float, taken: str
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = {"compile": 1.3, "compile+freezing": artifact}[mode]
        more: dict[str, Any] = {"freezing": gain / 1.45} if level is Level.FULL else {}
        return judged(kernels, level, over_eager=gain, over_compile=gain / 1.3, **more)

    selection, given = select(verdict)
    assert selection.variant.mode == taken
    assert [mode for mode, _, level in given.judged if level == "full"] == ["compile", "compile+freezing"]
    if artifact > 1.3:
        assert selection.reason.endswith("torch.compile (freezing) is kept")


def test_a_mode_that_was_slower_as_a_baseline_is_not_tried() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager=1.2, over_compile=1.2 / 1.3, freezing=1.2 / 1.25)

    selection, given = select(verdict)
    assert selection.variant.mode == "compile"
    assert [mode for mode, _, level in given.judged if level == "full"] == ["compile"]


def test_full_verdicts_say_whether_torch_compile_is_worth_one() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain, over_compile = (1.1, 1.03) if level is Level.QUICK else (0.97, 0.97)
        return judged(kernels, level, over_eager=gain, over_compile=over_compile)

    selection, given = select(verdict, "a")
    assert selection.variant.mode == "eager"
    assert "compile" not in [mode for mode, *_ in given.judged]


def test_a_mode_of_torch_compile_that_gives_wrong_answers_is_not_kept_and_the_reason_says_so() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode == "compile+freezing":
            wrong = ("with some NaN out[0]: got 0.5, expected nan; relative error inf",)
            refused = judged(kernels, level, status=EvaluationStatus.INCORRECT_NUMERICAL)
            return refused.model_copy(update={"reasons": wrong})
        return judged(kernels, level, over_eager=1.3, over_compile=1.0, freezing=0.8)

    selection, _ = select(verdict)
    assert selection.variant.mode == "compile"
    assert selection.reason.endswith(
        "torch.compile is kept; "
        "torch.compile (freezing) was refused: with some NaN out[0]: got 0.5, expected nan"
    )


def wrong(stage: str) -> Evaluation:
    refused = judged(frozenset(), Level.FULL, status=EvaluationStatus.INCORRECT_NUMERICAL)
    failed = StageResult(name=stage, status=EvaluationStatus.INCORRECT_NUMERICAL)
    passed = StageResult(name="random", status=EvaluationStatus.PASSED)
    reasons = (f"with {stage} out[0]: got 2, expected 1; relative error 1",)
    return refused.model_copy(update={"stages": (passed, failed), "reasons": reasons})


@pytest.mark.parametrize(
    ("stage", "over_eager", "taken"),
    [("variants", 1.3, "compile+contiguous"), ("variants", 0.9, "eager"), ("stability", 1.3, "eager")],
)
def test_if_torch_compile_is_wrong_in_another_layout_it_is_kept_for_contiguous_inputs(
    stage: str, over_eager: float, taken: str
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode == "compile" and level is Level.FULL:
            return wrong(stage)
        return judged(kernels, level, 1.3 if level is Level.QUICK else over_eager, 1.0)

    selection, given = select(verdict)
    assert selection.variant.mode == taken
    assert [mode for mode, *_ in given.judged][2:] == ["compile+contiguous"] * (stage == "variants")
    assert f"torch.compile was refused: with {stage} out[0]: got 2, expected 1" in selection.reason


def test_kernels_that_are_as_fast_as_torch_compile_is_wrongly_are_kept_instead() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.3 if mode == "kernels+compile" else 0.9
        return (
            wrong("variants") if mode == "compile" else judged(kernels, level, gain, gain / 1.3, spread=0.1)
        )

    selection, given = select(verdict, "a")
    assert selection.variant.kernels == {"a"}
    assert "compile+contiguous" not in [mode for mode, *_ in given.judged]


@pytest.mark.parametrize("refuted", [True, False])
def test_kernels_that_the_full_verdict_refused_do_not_prevent_that(refuted: bool) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode == "compile" or (kernels and refuted and (level is Level.FULL or mode != "kernels")):
            return wrong("variants")
        found = judged(kernels, level, 1.5 if kernels else 1.3, 1.2)
        return found.model_copy(update={"evidence": Evidence.UNVERIFIED}) if kernels else found

    selection, _ = select(verdict, "a")
    assert selection.variant.mode == "compile+contiguous"


@pytest.mark.parametrize(
    ("other", "full"),
    [(1.4, ["kernels"]), (1.49, ["kernels"]), (1.51, ["kernels+compile", "kernels"])],
)
def test_what_loses_to_a_mode_that_a_full_verdict_measured_gets_none(other: float, full: list[str]) -> None:
    """Quick verdicts measure the default mode alone; the first full one finds another mode at 1.5x."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.49 if mode == "kernels" else other if kernels else 1.0
        more: dict[str, Any] = {"freezing": gain / 1.5} if level is Level.FULL else {}
        return judged(kernels, level, over_eager=gain, over_compile=gain / 1.2, **more)

    _, given = select(verdict, "a")
    assert [mode for mode, names, level in given.judged if level == "full" and names] == full


@pytest.mark.parametrize("under", [1.3, 0.9])
def test_noise_in_one_time_of_torch_compile_prefers_no_variant(under: float) -> None:
    """Quick verdicts on examples/llama_block.py: torch.compile was slow in that on packed weights."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if level is Level.FULL:
            over = {"kernels+packed": 0.95, "kernels+compile": under}.get(mode, 1.0)
            return judged(kernels, level, over * 1.33, over, freezing=over * 0.99)
        quick = {"kernels": (1.27, 0.94), "kernels+packed": (1.31, 1.11), "kernels+compile": (1.62, 0.93)}
        return judged(kernels, level, *quick[mode] if kernels else (1.19, 0.7))

    selection, given = select(verdict, "a", packed=True)
    finals = [mode for mode, _, level in given.judged if level == "full"]
    won = ["kernels+compile"]
    assert finals == (won if under > 1 else [*won, "kernels+packed", "compile+freezing"])
    assert selection.variant.mode == finals[-1]


@pytest.mark.parametrize(("full", "judges"), [(1.01, False), (0.99, True)])
def test_torch_compile_needs_no_verdict_if_kernels_are_as_fast_in_theirs(full: float, judges: bool) -> None:
    """Their interval is too wide for a tie, and torch.compile is no faster than its baseline."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over = 1.05 if level is Level.QUICK else full
        return judged(kernels, level, over * 1.3, over if kernels else 1.0, spread=0.1)

    selection, given = select(verdict, "a")
    assert ("compile" in [mode for mode, *_ in given.judged]) is judges
    if not judges:
        assert selection.variant.mode == "kernels"
        assert (
            selection.reason == "1 kernel won over eager, and its verdict does not see torch.compile faster"
        )


def test_people_see_how_many_variants_are_left_and_how_long_they_take() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        over = 1.3 if mode == "kernels" else 1.1
        found = judged(kernels, level, over, over)
        return found.model_copy(update={"seconds": 20.0 if level is Level.QUICK else 0.0})

    told: list[tuple[int, float | None]] = []

    def tell(variants: int, seconds: float | None) -> None:
        told.append((variants, None if seconds is None else round(seconds)))

    known = {Level.QUICK: 10.0, Level.FULL: 70.0}
    select(verdict, "a", "b", seconds=600, forecast=Forecast(known, tell))
    assert told[:2] == [(5, 110), (4, 130)]  # four quick ones of 10 s, then three of 20 s; a full one of 70 s
    told.clear()
    select(verdict, "a", "b", seconds=15.0, forecast=Forecast(known, tell))
    assert told[0] == (5, 85)  # no new variant after 15 s
    told.clear()
    select(verdict, "a", alone=True, forecast=Forecast({Level.FULL: 70.0}, tell))
    assert told == [(1, 70)]
    told.clear()
    select(verdict, "a", forecast=Forecast({}, tell))
    assert told[0] == (3, None)


@pytest.mark.parametrize("evidence", [Evidence.UNVERIFIED, Evidence.VERIFIED])
def test_if_the_fastest_variant_is_not_proven_the_next_one_that_beats_eager_is_taken(
    evidence: Evidence,
) -> None:
    """Both lose to torch.compile as a baseline, and torch.compile is refused as an artifact."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode.startswith("compile"):
            return wrong("stability")
        gain = {("kernels", 2): 1.5, ("kernels", 1): 1.4}.get((mode, len(kernels)), 0.8)
        over_compile = gain / 1.3 if level is Level.QUICK else gain / 1.6
        found = judged(kernels, level, over_eager=gain, over_compile=over_compile)
        if level is Level.FULL and len(kernels) == 2:
            return found.model_copy(update={"evidence": evidence, "reasons": ("it is too noisy",)})
        return found

    selection, given = select(verdict, "a", "b")
    proven = evidence is Evidence.VERIFIED
    assert len(selection.variant.kernels) == (2 if proven else 1)
    assert selection.reason.startswith("2 kernels" if proven else "1 kernel won over eager")
    finals = [names for mode, names, level in given.judged if level == "full" and mode == "kernels"]
    assert len(finals) == (1 if proven else 2)


def test_kernels_that_only_the_default_mode_loses_to_are_not_taken() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        more: dict[str, Any] = {"freezing": 0.8} if level is Level.FULL else {}
        return judged(kernels, level, over_eager=1.2 if kernels else 1.0, over_compile=1.1, **more)

    selection, _ = select(verdict, "a")
    assert "full evaluation" in selection.reason or "won over eager" in selection.reason
    assert not any(trial.wins for trial in selection.trials)


@pytest.mark.parametrize(("ends_in", "taken"), [("kernels", "eager"), ("compile+freezing", "compile")])
def test_if_the_reserve_ends_the_proven_variant_is_kept_else_eager(ends_in: str, taken: str) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode == ends_in:
            raise TimeEnded("the run's time ended")
        gain = {"compile": 1.3}.get(mode, 0.9)
        return judged(kernels, level, over_eager=gain, over_compile=gain / 1.3, freezing=gain / 1.6)

    selection, given = select(verdict, *(("a",) if ends_in == "kernels" else ()))
    assert selection.variant.mode == taken
    assert "the time for stitching ended" in selection.reason
    assert [deadline for deadline in given.deadlines if deadline is not None] == given.deadlines


@pytest.mark.parametrize(("over_eager", "taken"), [(1.4, {"a"}), (1.01, set())])
def test_if_the_reserve_ends_kernels_that_beat_eager_are_kept(over_eager: float, taken: set[str]) -> None:
    """Also if torch.compile was faster as a baseline: it was not judged as an artifact."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode == "compile":
            raise TimeEnded("the run's time ended")
        return judged(kernels, level, over_eager, 0.9 if level is Level.FULL else 1.1, spread=0.02)

    selection, _ = select(verdict, "a")
    assert selection.variant.kernels == taken
    assert "the time for stitching ended" in selection.reason


@pytest.mark.parametrize(("status", "taken"), [("INCORRECT_NUMERICAL", {"a"}), ("PASSED", set())])
def test_if_the_reserve_ends_the_fastest_that_was_proven_is_kept(status: str, taken: set[str]) -> None:
    """The reserve ends after one kernel was proven, and before a faster set was."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode == "compile":
            found = judged(kernels, level, over_eager=1.5, status=EvaluationStatus(status))
            return found.model_copy(update={"reasons": ("another answer",)})
        if mode != "kernels":
            return judged(kernels, level, over_eager=0.5, over_compile=0.4)
        if kernels == {"a"}:
            return judged(kernels, level, over_eager=1.4, over_compile=1.25 if level is Level.QUICK else 0.9)
        if level is Level.FULL:
            raise TimeEnded("the run's time ended")
        return judged(kernels, level, over_eager=1.6, over_compile=0.75)

    selection, _ = select(verdict, "a", "b")
    assert selection.variant.kernels == taken
    assert "the time for stitching ended" in selection.reason
    assert ("torch.compile was refused" in selection.reason) == bool(taken)


@pytest.mark.parametrize(("fails_in", "taken"), [("kernels", "eager"), ("compile", "kernels")])
def test_if_the_whole_model_cannot_be_judged_what_was_proven_is_kept(fails_in: str, taken: str) -> None:
    """A referee that cannot tell right from wrong says so at the model's first verdict, after the search."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        if mode == fails_in:
            raise TargetError("two calls on the same inputs differ; seed it")
        return judged(kernels, level, over_eager=1.4, over_compile=0.9 if level is Level.FULL else 1.1)

    selection, _ = select(verdict, "a")
    assert (selection.variant.mode, selection.cut_short, selection.unjudged) == (taken, True, True)
    said = "the whole model could not be judged: two calls on the same inputs differ; seed it; "
    assert selection.reason.startswith(said)
    assert selection.reason.endswith("is kept")


def test_if_the_model_can_no_longer_be_captured_eager_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise MemoryShortageError("no memory for the child process")

    monkeypatch.setattr(Given, "prepare", fails)
    selection, given = select(lambda _, kernels, level: judged(kernels, level), "a")
    assert (selection.variant.mode, given.judged) == ("eager", [])
    assert selection.cut_short and not selection.unjudged  # memory may be free again
    assert "no memory for the child process; eager is kept" in selection.reason


def test_a_selection_that_ends_by_itself_is_not_cut_short() -> None:
    assert not select(lambda _, kernels, level: judged(kernels, level, 1.4, 1.4), "a")[0].cut_short


def test_a_model_that_torch_compile_cannot_run_stays_as_it_is() -> None:
    """It is judged once: nothing is measured that could change the answer."""
    failed = EvaluationStatus.RUNTIME_ERROR
    selection, given = select(lambda _, kernels, level: judged(kernels, level, status=failed), compiled=MODES)
    assert selection.variant.mode == "eager"
    assert given.judged == [("compile", (), "quick")]


@pytest.mark.parametrize(("slow", "left"), [("bc", ("b", "c")), ("", ()), ("abc", ("a", "b"))])
def test_each_unit_is_compiled_unless_that_makes_it_slower(slow: str, left: tuple[str, ...]) -> None:
    """One stays compiled: kernels between eager operators are a variant of their own."""

    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        compiled = mode.startswith("kernels+compile")
        gain = 1.1 + 0.1 * sum(f"-{unit}" in mode for unit in slow) if compiled else 0.9
        gain -= 0.1 * sum(f"-{unit}" in mode for unit in "abc" if unit not in slow)
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, given = select(verdict, "k", units="abc")
    assert selection.variant.mode == "kernels+compile"
    assert selection.variant.eager == left
    assert [level for *_, level in given.judged].count("full") == 1
    assert not any("-" in mode for mode, *_ in select(verdict, "k", units="a")[1].judged)


@pytest.mark.parametrize(
    ("freezing", "frozen", "taken", "full"),
    [
        (1.5, 1.6, "freezing", 2),  # it wins where the default mode loses
        (1.2, 1.6, "freezing", 2),  # it is faster than what wins
        (1.2, 1.3, "", 1),
        (1.1, 1.6, "", 1),  # the default mode is the fastest baseline
    ],
)
def test_units_are_compiled_in_the_mode_of_the_fastest_baseline(
    freezing: float, frozen: float, taken: str, full: int
) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = {"kernels+compile": 1.4, "kernels+compile (freezing)": frozen}.get(mode, 0.9)
        more: dict[str, Any] = {"freezing": gain / freezing} if level is Level.FULL else {}
        return judged(kernels, level, over_eager=gain, over_compile=gain / 1.1, **more)

    selection, given = select(verdict, "a")
    assert (selection.variant.mode, selection.variant.way) == ("kernels+compile", taken)
    assert [level for *_, level in given.judged].count("full") == full


@pytest.mark.parametrize("fault", ["unsure", "late", "broken"])
def test_what_was_proven_stays_if_another_mode_is_not(fault: str) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        other = mode == "kernels+compile (freezing)"
        gain = {"kernels+compile": 1.4, "kernels+compile (freezing)": 1.6}.get(mode, 0.9)
        more: dict[str, Any] = {"freezing": gain / 1.2} if level is Level.FULL else {}
        if other and fault != "unsure":
            raise TimeEnded("late") if fault == "late" else TargetError("broken")
        spread = 0.4 if other and level is Level.FULL else 0.01
        return judged(kernels, level, over_eager=gain, over_compile=gain / 1.1, spread=spread, **more)

    selection, _ = select(verdict, "a")
    assert (selection.variant.mode, selection.variant.way) == ("kernels+compile", "")
    assert not selection.cut_short
    assert "won end to end" in selection.reason


NORM, MERGE, LAST = MoveKind.FOLD_BATCH_NORM, MoveKind.MERGE_PRODUCTS, MoveKind.CHANNELS_LAST
MOVES = [Move(kind=kind) for kind in (NORM, MERGE, LAST)]


@pytest.mark.parametrize("names", [("a",), ()])
def test_moves_that_pay_are_kept_and_the_others_dropped_with_a_reason(names: tuple[str, ...]) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.0 + 0.3 * (NORM in mode) - 0.2 * (LAST in mode) + 0.1 * len(kernels)
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, given = select(verdict, *names, moves=MOVES, placeless=[MERGE])
    assert selection.variant.kernels == set(names)
    assert list(selection.variant.moves) == [NORM]
    assert selection.dropped.keys() == {MERGE, LAST}
    assert selection.dropped[MERGE] == "it finds no place in the model"
    gains = (1.4, 1.2) if names else (1.3, 1.1)
    assert selection.dropped[LAST] == "the quick verdict is {:.2f}x without it and {:.2f}x with it".format(
        *gains
    )
    assert [level for *_, level in given.judged].count("full") == 1


def test_moves_alone_win_if_kernels_prevent_them() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.3 if NORM in mode and not kernels else 1.1
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, _ = select(verdict, "a", "b", moves=MOVES[:1])
    assert (selection.variant.kernels, list(selection.variant.moves)) == (set(), [NORM])
    assert not selection.dropped


def test_a_move_that_breaks_the_model_is_dropped() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        broken = EvaluationStatus.INCORRECT_NUMERICAL if LAST in mode else EvaluationStatus.PASSED
        return judged(kernels, level, 1.5, 1.5, status=broken)

    selection, _ = select(verdict, moves=MOVES)
    assert LAST not in selection.variant.moves
    assert "INCORRECT_NUMERICAL with it" in selection.dropped[LAST]


def test_moves_that_do_not_pay_leave_the_kernels_alone() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        gain = 1.2 if mode == "kernels" else 0.9
        return judged(kernels, level, over_eager=gain, over_compile=gain)

    selection, _ = select(verdict, "a", moves=MOVES[:1])
    assert (selection.variant.kernels, dict(selection.variant.moves)) == ({"a"}, {})
    assert selection.dropped == {NORM: "the quick verdict is 0.90x with moves and 1.20x without"}


@pytest.mark.parametrize(
    ("over_eager", "said"),
    [(1.3, "it was not taken"), (0.9, "the quick verdict is 0.90x with moves and 1.00x without")],
)
def test_moves_without_a_variant_beside_them_are_compared_with_eager(over_eager: float, said: str) -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        return judged(kernels, level, over_eager, 0.8 if NORM in mode else 1.0)

    selection, _ = select(verdict, moves=MOVES[:1])
    assert not selection.variant.moves
    assert selection.dropped == {NORM: said}


def test_the_line_of_a_full_verdict_that_proves_nothing_says_why() -> None:
    def verdict(mode: str, kernels: frozenset[str], level: Level) -> Evaluation:
        found = judged(kernels, level, over_eager=1.3, over_compile=1.2)
        if level is Level.FULL:
            doubts = {"evidence": Evidence.UNVERIFIED, "reasons": ("it is too noisy; measure again",)}
            found = found.model_copy(update=doubts)
        return found

    lines: list[str] = []
    selection, _ = select(verdict, "a", progress=lines.append)
    assert selection.variant.mode == "eager"
    assert any(line.endswith("(quick): 1.20x over torch.compile, 1.30x over eager") for line in lines)
    full = [line for line in lines if "(full)" in line]
    assert full
    assert all(line.endswith("1.30x over eager, not verified: it is too noisy") for line in full)

"""What is looked at of timed calls and of many: parts of the output, and every wrong one is told."""

from __future__ import annotations

import weakref
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.baselines.prepared import OutputForm
from agentforge.referee.checks import When
from agentforge.referee.checks.behaviour.soak import Soak
from agentforge.referee.comparison.comparator import OutputComparator
from agentforge.referee.comparison.draw_bounds import DrawBounds
from agentforge.referee.comparison.output_sampling import OutputSampling, Sample, SamplePlan, range_of
from agentforge.referee.comparison.tolerance import Bound, root_mean_square
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf, Part
from agentforge.schema import EvaluationStatus

BOUND = Bound(1e-5, 1e-5, 1e-6, 1e-7)


def course_of(*tensors: torch.Tensor) -> Any:
    """As much of a course as is looked at."""
    forms = [OutputForm.of(Leaf(f"out[{n}]", t)) for n, t in enumerate(tensors)]
    scales = [root_mean_square(t) for t in tensors]
    return SimpleNamespace(outputs=forms, scales=scales, bounds=[BOUND] * len(forms), strict=False)


def checks_of(seed: int, *tensors: torch.Tensor) -> OutputSampling:
    return OutputSampling(course_of(*tensors), OutputComparator(), Random(seed))


def own_draw(value: torch.Tensor, bound: Bound = BOUND, *, usual: torch.Tensor | None = None) -> DrawBounds:
    """Bounds of a draw whose answer is `value`; the usual ones are of `usual`, or of `value`."""
    prepared = course_of(value if usual is None else usual)
    return DrawBounds(prepared, lambda: ([Leaf("out", value)], [bound]))


def seen_of(look: SamplePlan, *tensors: torch.Tensor) -> Sample:
    """What would be read of an answer."""

    def cut(parts: list[Part]) -> list[torch.Tensor]:
        return [tensors[n].reshape(-1)[first : first + count].clone() for n, first, count in parts]

    leaves = [Leaf(f"out[{n}]", t.clone()) for n, t in enumerate(tensors)] if look.whole else []
    return Sample(cut(look.sample), leaves, [] if look.whole else cut(look.parts))


sizes = st.lists(st.integers(1, 300_000), min_size=1, max_size=3)


@given(sizes, st.integers(0, 10_000), st.integers(1, 7))
def test_parts_lie_inside_of_the_output(sizes: list[int], seed: int, calls: int) -> None:
    checks = checks_of(seed, *(torch.zeros(n) for n in sizes))
    looks = checks.choose(calls)
    assert len(looks) == calls
    for look in looks:
        for leaf, first, count in [*look.sample, *look.parts]:
            assert first >= 0 and count > 0 and first + count <= sizes[leaf]


@pytest.mark.parametrize(("numel", "whole"), [(1 << 10, 5), (1 << 20, 1)])
def test_small_outputs_are_read_whole_each_time_and_others_once(numel: int, whole: int) -> None:
    checks = checks_of(1, torch.zeros(numel))
    for _ in range(20):
        assert sum(look.whole for look in checks.choose(5)) == whole


def test_large_outputs_are_read_whole_in_some_turns() -> None:
    checks = checks_of(1, torch.empty((1 << 24) // 4 + 1))
    turns = [sum(look.whole for look in checks.choose(5)) for _ in range(200)]
    assert set(turns) == {0, 1}
    assert 20 < sum(turns) < 90


@given(st.integers(0, 10_000), st.booleans())
def test_the_same_answer_passes(seed: int, whole: bool) -> None:
    value = torch.randn(5000, generator=torch.Generator().manual_seed(seed))
    checks = checks_of(seed, value)
    look = checks.choose(1)[0]
    look = SamplePlan(look.sample, look.parts, whole)
    checks.compare(look, seen_of(look, value), seen_of(look, value), own_draw(value))


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(["sample", "rest"]))
def test_one_wrong_element_where_it_is_looked_at_is_told(seed: int, whole: bool, where: str) -> None:
    value = torch.randn(5000, generator=torch.Generator().manual_seed(seed))
    checks = checks_of(seed, value)
    look = checks.choose(1)[0]
    look = SamplePlan(look.sample, look.parts, whole)
    _, first, count = (look.sample if where == "sample" else look.parts)[seed % 8]
    wrong = value.clone()
    wrong[first + seed % count] += 1e-3
    with pytest.raises(WorkerFailure) as told:
        checks.compare(look, seen_of(look, wrong), seen_of(look, value), own_draw(value))
    assert told.value.status is EvaluationStatus.INCORRECT_NUMERICAL


def test_a_sample_of_another_type_is_told() -> None:
    value = torch.ones(100)
    checks = checks_of(3, value)
    look = checks.choose(1)[0]
    with pytest.raises(WorkerFailure, match="another shape or type"):
        checks.compare(look, seen_of(look, value.double()), seen_of(look, value), own_draw(value))


@pytest.mark.parametrize("whole", [False, True])
def test_a_draw_that_is_hard_to_compute_has_bounds_of_its_own(whole: bool) -> None:
    """Equations of another draw may be much worse conditioned than those that the usual bounds are from."""
    usual, large = torch.ones(5000), torch.full((5000,), 100.0)
    checks = checks_of(3, usual)
    look = checks.choose(1)[0]
    look = SamplePlan(look.sample, look.parts, whole)
    got, expected = seen_of(look, large + 5e-3), seen_of(look, large)
    with pytest.raises(WorkerFailure):
        checks.compare(look, got, expected, own_draw(large, usual=usual))
    harder = Bound(1e-4, 1e-4, 0.0, 1e-5)
    checks.compare(look, got, expected, own_draw(large, harder, usual=usual))
    with pytest.raises(WorkerFailure):
        checks.compare(look, seen_of(look, large + 0.5), expected, own_draw(large, harder, usual=usual))


class _Party:
    """Gives what it holds."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value

    def fetch(self, slot: int, ago: int = 0) -> list[Leaf]:
        return [Leaf("out", self.value)]

    def fetch_parts(self, slot: int, parts: list[Part], ago: int = 0) -> list[torch.Tensor]:
        return [self.value[first : first + count] for _, first, count in parts]


@given(st.integers(0, 10_000), st.booleans())
def test_an_output_that_is_written_over_is_told(seed: int, whole: bool) -> None:
    value = torch.randn(5000, generator=torch.Generator().manual_seed(seed))
    look = SamplePlan([], [(0, seed % 4000, 1000)], whole)
    before = (
        Sample([], [Leaf("out", value)]) if whole else Sample([], [], [value[seed % 4000 :][:1000].clone()])
    )
    OutputSampling.unchanged(_Party(value.clone()), 0, look, before, 1, frozenset())  # type: ignore[arg-type]
    later = value.clone()
    later[seed % 4000 + 7] = torch.nextafter(later[seed % 4000 + 7], torch.tensor(9.0))
    with pytest.raises(WorkerFailure, match="static buffers"):
        OutputSampling.unchanged(_Party(later), 0, look, before, 1, frozenset())  # type: ignore[arg-type]
    OutputSampling.unchanged(_Party(later), 0, look, before, 1, frozenset({0}))  # type: ignore[arg-type]


class _Bench:
    """A reference that gives its slot's number."""

    def __init__(self, numel: int = 3000, bound: Bound = BOUND) -> None:
        self.numel, self.bound = numel, bound
        self.asked: list[int] = []
        """Slots whose own bounds were computed."""
        self.answers: list[weakref.ref[torch.Tensor]] = []

    def expect(self, prepared: Any, slot: int) -> list[Leaf]:
        answer = torch.full((self.numel,), float(slot + 1))
        self.answers.append(weakref.ref(answer))
        return [Leaf("out", answer)]

    def bounds_for(self, prepared: Any, slot: int) -> list[Bound]:
        self.asked.append(slot)
        return [self.bound]

    def stop(self) -> None: ...


class _Counter:
    """A candidate that is right until a call."""

    readable = True
    worker = SimpleNamespace(cpu_seconds=lambda: 0.0, late_s=0.0)

    def __init__(self, until: int, off: float = 0.0) -> None:
        self.until, self.off, self.calls = until, off, 0

    def call(self, slot: int) -> int:
        self.calls += 1
        return 10**6

    def fetch_parts(self, slot: int, parts: list[Part]) -> list[torch.Tensor]:
        value = (slot + 1) * (1 + self.off) if self.calls <= self.until else 0.0
        return [torch.full((count,), value) for _, _, count in parts]


def endured(candidate: _Counter, monkeypatch: pytest.MonkeyPatch, bench: _Bench | None = None) -> str:
    bench = bench or _Bench()
    monkeypatch.setattr("agentforge.referee.checks.behaviour.soak._SECONDS", 60.0)
    inputs = SimpleNamespace(slots=3, fill=lambda slot: None)
    prepared = SimpleNamespace(
        inputs=inputs,
        outputs=[OutputForm.of(Leaf("out", torch.empty(bench.numel)))],
        scales=[1.0],
        bounds=[BOUND],
        strict=False,
    )
    context: Any = SimpleNamespace(
        first_group=True,
        doubts_now=[],
        settings=SimpleNamespace(threads=1),
        baselines=bench,
        candidate=candidate,
        prepared=prepared,
        comparator=OutputComparator(),
    )
    return Soak(When.BEFORE_TIMING).run(context)


def test_many_calls_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = _Counter(1000)
    assert endured(candidate, monkeypatch) == f"{candidate.calls} more calls were right"
    assert 150 <= candidate.calls < 400


@pytest.mark.parametrize("until", [0, 40, 149])
def test_an_answer_that_goes_wrong_after_many_calls_is_told(
    until: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = _Counter(until)
    with pytest.raises(WorkerFailure, match="after many calls"):
        endured(candidate, monkeypatch)
    assert candidate.calls == until + 1


def test_the_own_bounds_of_many_calls_are_computed_once_for_each_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = _Bench(bound=Bound(1e-2, 1e-2, 1e-2, 1e-3))
    endured(_Counter(1000, off=1e-3), monkeypatch, bench)
    assert sorted(bench.asked) == [0, 1, 2]


@pytest.mark.parametrize(("numel", "kept"), [(3000, 3), ((1 << 22) + 1, 0)])
def test_of_large_answers_only_parts_are_kept(monkeypatch: pytest.MonkeyPatch, numel: int, kept: int) -> None:
    class Watched(_Counter):
        alive: frozenset[int] = frozenset()

        def call(self, slot: int) -> int:
            self.alive |= {sum(answer() is not None for answer in bench.answers)}
            return super().call(slot)

    bench, candidate = _Bench(numel), Watched(40)
    with pytest.raises(WorkerFailure, match="after many calls"):
        endured(candidate, monkeypatch, bench)
    assert candidate.alive == {kept}
    assert candidate.calls == 41


@pytest.mark.parametrize(
    ("rows", "part"),
    [(10, (0, 4, 3)), (5, (0, 2, 3)), (2, (0, 0, 2)), (0, (0, 0, 0))],
)
def test_a_part_exists_in_an_output_of_another_size(rows: int, part: Part) -> None:
    """As the rows that values of an input select."""
    leaves = [Leaf("out", torch.arange(rows))]
    moved, found = range_of(leaves, (0, 4, 3))
    assert moved == part
    assert found.value.numel() == part[2]


def test_a_part_that_no_answer_has_is_settled_empty() -> None:
    """Also if the reference's answers in float32 and float64 differ in kind somewhere."""
    whole = [Leaf("out", torch.ones(5), alternative=torch.full((5,), torch.inf))]
    plan, empty = SamplePlan([], [(0, 2, 4)], whole=False), Sample(pieces=[torch.ones(0)])
    (piece,) = checks_of(0, torch.ones(9)).settled(plan, empty, empty, whole).pieces
    assert piece.numel() == 0

"""The figures by which GPU MODE's tasks rank, and the order of arms."""

from __future__ import annotations

import pytest

from agentforge.campaigns.native.ranking import Ranked, figure, ranking
from agentforge.schema import SuiteProblem


@pytest.mark.parametrize(("how", "seconds"), [("last", 8.0), ("mean", 5.0), ("geom", 4.0)])
def test_each_ranking_has_its_figure(how: str, seconds: float) -> None:
    assert figure(how, {1: 2.0, 2: 8.0}, 2) == pytest.approx(seconds)


@pytest.mark.parametrize("how", ["last", "mean", "geom"])
def test_a_missing_benchmark_leaves_no_figure(how: str) -> None:
    assert figure(how, {1: 2.0}, 2) is None


def test_only_the_last_benchmark_counts_for_last() -> None:
    assert figure("last", {2: 8.0}, 2) == 8.0


def problem(task: str, number: int, of: int, how: str, kind: str = "benchmarks") -> SuiteProblem:
    native = {"kind": kind, "ranking_by": how, "number": number, "of": of}
    several = f"{task}/{kind}"
    return SuiteProblem(
        id=f"{several}/{number}" if of > 1 else several,
        target="x.py",
        definition=several if of > 1 else "",
        native=native,
    )


def test_benchmarks_of_one_problem_have_their_own_times() -> None:
    native = {
        "kind": "benchmarks",
        "ranking_by": "geom",
        "of": 2,
        "workloads": [{"number": 1}, {"number": 2}],
    }
    whole = SuiteProblem(id="sort/benchmarks", target="x.py", native=native)
    seconds = {("sort/benchmarks/1", "fast"): 2.0, ("sort/benchmarks/2", "fast"): 8.0}
    (fast, half) = ranking([whole], ["half", "fast"], seconds)
    assert (fast.arm, fast.place, fast.seconds) == ("fast", 1, pytest.approx(4.0))
    assert (half.arm, half.place, half.seconds) == ("half", None, None)


def test_the_arm_with_the_smallest_figure_comes_first() -> None:
    problems = [
        problem("sort", 1, 2, "geom"),
        problem("sort", 2, 2, "geom"),
        problem("sort", 1, 1, "geom", kind="tests"),
        problem("sum", 1, 1, "last"),
        SuiteProblem(id="level1/1_a", target="y.py"),
    ]
    seconds = {
        ("sort/benchmarks/1", "slow"): 2.0,
        ("sort/benchmarks/2", "slow"): 8.0,
        ("sort/benchmarks/1", "fast"): 1.0,
        ("sort/benchmarks/2", "fast"): 9.0,
        ("sort/benchmarks/2", "half"): 0.1,
        ("sort/tests", "half"): 0.1,
        ("sum/benchmarks", "half"): 5.0,
        ("sum/benchmarks", "slow"): 5.0,
    }
    found = list(ranking(problems, ["slow", "half", "fast"], seconds))
    assert [(r.task, r.ranking_by, r.arm, r.place) for r in found] == [
        ("sort/benchmarks", "geom", "fast", 1),
        ("sort/benchmarks", "geom", "slow", 2),
        ("sort/benchmarks", "geom", "half", None),
        ("sum/benchmarks", "last", "slow", 1),
        ("sum/benchmarks", "last", "half", 1),
        ("sum/benchmarks", "last", "fast", None),
    ]
    assert found[0].seconds == pytest.approx(3.0)
    assert isinstance(found[0], Ranked)

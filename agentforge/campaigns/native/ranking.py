"""The figure by which a task ranks submissions, made of the times of its benchmarks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentforge.referee.timing.statistics import geometric_mean
from agentforge.schema import FrozenModel, SuiteProblem

RANKINGS = ("last", "mean", "geom")
"""Only the last benchmark counts, or the arithmetic or the geometric mean of all."""


class Ranked(FrozenModel):
    """One arm's place in one task."""

    task: str
    ranking_by: str
    arm: str
    place: int | None = None
    """From 1; None if there is no figure."""
    seconds: float | None = None
    """The figure; None if a benchmark that counts has no verified solution, or is not in the campaign."""


def figure(ranking_by: str, seconds: Mapping[int, float], benchmarks: int) -> float | None:
    """Seconds by which a task ranks; None if a benchmark that counts is missing.

    Args:
        ranking_by: one of `RANKINGS`.
        seconds: a call's time, by number of the benchmark, from 1.
        benchmarks: how many the task has.
    """
    if ranking_by == "last":
        return seconds.get(benchmarks)
    if len(seconds) < benchmarks:
        return None
    mean = statistics.fmean if ranking_by == "mean" else geometric_mean
    return mean(list(seconds.values()))


def ranking(
    problems: Iterable[SuiteProblem], arms: Sequence[str], seconds: Mapping[tuple[str, str], float]
) -> Iterator[Ranked]:
    """For each task with benchmarks all arms, the fastest first.

    Args:
        seconds: a call's time, by problem and arm, of verified solutions. Workloads of a problem that has
            several have names of their own, `TASK/benchmarks/1`.
    """
    tasks: dict[str, list[SuiteProblem]] = {}
    for problem in problems:
        if problem.native.get("kind") == "benchmarks" and problem.native.get("ranking_by") in RANKINGS:
            tasks.setdefault(problem.definition or problem.id, []).append(problem)
    for task, found in tasks.items():
        how, benchmarks = found[0].native["ranking_by"], found[0].native["of"]
        names = {number: name for problem in found for number, name in _numbers(problem)}
        figures = {
            arm: figure(
                how, {n: s for n, name in names.items() if (s := seconds.get((name, arm)))}, benchmarks
            )
            for arm in arms
        }
        known = sorted(s for s in figures.values() if s is not None)
        for arm, value in sorted(figures.items(), key=lambda pair: (pair[1] is None, pair[1] or 0.0)):
            place = None if value is None else known.index(value) + 1
            yield Ranked(task=task, ranking_by=how, arm=arm, place=place, seconds=value)


def _numbers(problem: SuiteProblem) -> list[tuple[int, str]]:
    """Number and name of each benchmark of a problem."""
    several = len(problem.workloads)
    if several:
        return [(number, f"{problem.id}/{number}") for number in range(1, several + 1)]
    return [(problem.native["number"], problem.id)]

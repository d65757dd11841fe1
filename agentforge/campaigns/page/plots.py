"""Plots of a report as SVG shapes; the template draws them. Coordinates are pixels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..report import BEST, CampaignReport, by_definition, definition_score

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 260, 260, 40
"""Of a plot, of the curve's plot, of the names on the left of the bars, and of the axis' labels."""
ROW = 16
"""Height of a row of speedups."""
COLOURS = ("#4c78a8", "#d97706", "#2e8b57", "#b04a7a", "#6b6b6b")


@dataclass(frozen=True)
class Curve:
    """A line of one arm."""

    name: str
    colour: str
    points: str
    """As the attribute of a polyline."""


@dataclass(frozen=True)
class CurvePlot:
    """Cost against the share of problems that are solved and faster than eager."""

    unit: str
    curves: tuple[Curve, ...]
    most: float
    """Cost at the right end of the axis."""


@dataclass(frozen=True)
class Bar:
    """One speedup with its interval."""

    name: str
    y: float
    low: float
    point: float
    high: float
    colour: str
    label: str


@dataclass(frozen=True)
class BarPlot:
    """Speedups by problem on a logarithmic axis."""

    title: str
    height: float
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    one: float
    """Place of a speedup of 1."""


def cost_curves(report: CampaignReport) -> list[CurvePlot]:
    """Plots of seconds, and of dollars if some were paid and no item's are unknown."""
    plots = [_curves(report, "seconds of work", [item.seconds for item in report.items])]
    prices = [item.dollars for item in report.items if item.dollars is not None]
    if len(prices) == len(report.items) and any(prices):
        known = not any(item.unpriced_calls for item in report.items)
        plots.append(_curves(report, "dollars" if known else "dollars or more", prices))
    return plots


def _curves(report: CampaignReport, unit: str, costs: Sequence[float]) -> CurvePlot:
    """Runs count in the order of their ends, imported ones first, and those that are not over last.

    A definition counts when its last workload has ended.
    """
    walks = []
    scores = {of: definition_score(rows, "eager").speedup for of, rows in by_definition(report.items).items()}
    for arm in report.campaign.arms:
        own = [(item, cost) for item, cost in zip(report.items, costs, strict=True) if item.arm == arm.name]
        own.sort(key=lambda pair: pair[0].ended or 0.0 if pair[0].state.over else math.inf)
        left = Counter(item.task for item, _ in own)
        spent, solved, walk = 0.0, 0, [(0.0, 0.0)]
        for item, cost in own:
            spent += cost
            left[item.task] -= 1
            solved += not left[item.task] and (scores[arm.name, item.task] or 0.0) > 1
            walk.append((spent, solved / len(left)))
        walks.append((arm.name, walk))
    most = max((walk[-1][0] for _, walk in walks), default=0.0) or 1.0
    inner = HEIGHT - BOTTOM
    curves = [
        Curve(
            name,
            COLOURS[number % len(COLOURS)],
            " ".join(f"{x / most * WIDTH:.1f},{inner - y * inner:.1f}" for x, y in walk),
        )
        for number, (name, walk) in enumerate(walks)
    ]
    return CurvePlot(unit, tuple(curves), most)


def speedup_bars(report: CampaignReport) -> list[BarPlot]:
    """A plot over eager and one over the best baseline; runs without a measured artifact are left out."""
    return [plot for baseline in ("eager", BEST) if (plot := _bars(report, baseline)) is not None]


def _bars(report: CampaignReport, baseline: str) -> BarPlot | None:
    rows = []
    for item in report.items:
        interval = item.speedup.get(item.best_baseline if baseline == BEST else baseline)
        if interval is not None and interval.point > 0:
            rows.append((item, interval))
    if not rows:
        return None
    rows.sort(key=lambda row: row[1].point, reverse=True)
    ends = [max(x, 1e-3) for _, interval in rows for x in (interval.low, interval.high)]
    low = math.floor(math.log2(min(*ends, 1.0)))
    high = max(math.ceil(math.log2(max(*ends, 1.0))), low + 1)

    def place(value: float) -> float:
        return LEFT + (math.log2(max(value, 1e-3)) - low) / (high - low) * (WIDTH - LEFT)

    bars = [
        Bar(
            name=f"{item.arm}: {item.problem}",
            y=ROW * (number + 0.5),
            low=place(interval.low),
            point=place(interval.point),
            high=place(interval.high),
            colour="#2e8b57" if item.verified else "#9aa0a6",
            label=f"{interval}, {'verified' if item.verified else item.mode or 'not verified'}",
        )
        for number, (item, interval) in enumerate(rows)
    ]
    step = max(1, (high - low) // 8)
    ticks = tuple((place(2.0**power), f"{2.0**power:g}x") for power in range(low, high + 1, step))
    title = "the best baseline" if baseline == BEST else baseline
    return BarPlot(title, ROW * len(rows), tuple(bars), ticks, place(1.0))

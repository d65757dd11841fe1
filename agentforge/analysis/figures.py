"""A trajectory as plotly figures. Plotly reads tags and formulas in text: what others wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from textwrap import shorten
from typing import TYPE_CHECKING

from agentforge.profiling.classify import BANDWIDTH, RATE, values_of
from agentforge.schema import AttemptStatus, baseline_name
from agentforge.visible import visible

from ._context import package
from .steps import RunSteps, Search, Step

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOURS = {
    "verified": "#2e8b57",
    "suspicious": "#d97706",
    "unverified": "#4c78a8",
    "not passed": "#c0392b",
}
"""By what came of an attempt."""
_HEIGHT, _MARGIN = 300, 140
"""Pixels: of one bottleneck's plot, and of title and legend."""
_BESIDE = 0.15
"""Horizontal distance of a second marker from the first, in attempts, so that whiskers do not overlap."""
_MOST_TICKS = 20
_SEEN_DECADES = 1.0
"""Of arithmetic intensity, on either side of the points of a roofline."""


def speedups(trajectory: RunSteps) -> Figure:
    """Speedup over eager (and over torch.compile) against the number of the attempt, one plot a bottleneck.

    Whiskers are 95% intervals. An attempt without a time is at 0; an unfinished one is left out. The line is
    the best verified speedup so far.

    Raises:
        MachineError: plotly is not installed.
    """
    searches = trajectory.searches
    if not searches:
        return _nothing(f"run {trajectory.run.id} has no attempts yet")
    make_subplots = package("plotly.subplots").make_subplots
    names = [_plain(search.bottleneck.definition.name) for search in searches]
    figure = make_subplots(
        rows=len(searches), shared_xaxes=True, subplot_titles=names, vertical_spacing=0.3 / len(searches)
    )
    shown: set[str] = set()
    last = trajectory.steps[-1].attempt.number
    for row, search in enumerate(searches, start=1):
        for trace in _speedup_traces(search, last):
            trace.showlegend = trace.name not in shown
            trace.legendgroup = trace.name
            shown.add(trace.name)
            figure.add_trace(trace, row=row, col=1)
        figure.add_hline(y=1.0, line_width=1, line_dash="dot", line_color="gray", row=row, col=1)
    figure.update_yaxes(title_text="speedup", rangemode="tozero")
    figure.update_xaxes(tick0=1, dtick=1 + last // _MOST_TICKS)
    figure.update_xaxes(title_text="attempt", row=len(searches), col=1)
    figure.update_layout(title=_title(trajectory), height=_MARGIN + _HEIGHT * len(searches))
    return figure


def roofline(trajectory: RunSteps) -> Figure:
    """What attempts achieved against the measured ceilings (Williams et al., Roofline, CACM 2009).

    Operations a byte of the least traffic, and operations a second, both axes logarithmic.

    Raises:
        MachineError: plotly is not installed.
    """
    points = [(step, *place) for step in trajectory.steps if (place := _achieved(step))]
    if not points:
        return _nothing(f"no attempt of run {trajectory.run.id} has a time and counted bytes and operations")
    go = package("plotly.graph_objects")
    figure = go.Figure()
    for bandwidth, peak in sorted({ceilings for step, *_ in points if (ceilings := _ceilings(step))}):
        xs = _roof(bandwidth, peak, [intensity for _, intensity, _ in points])
        label = f"{bandwidth / 1e9:.4g} GB/s, {peak / 1e9:.4g} GFLOP/s"
        roof = [min(peak, bandwidth * x) for x in xs]
        figure.add_scatter(x=xs, y=roof, mode="lines", name=label, line={"color": "gray"})
    for outcome, colour in COLOURS.items():
        own = [(s, x, y) for s, x, y in points if _outcome(s) == outcome]
        if own:
            figure.add_scatter(
                x=[x for _, x, _ in own], y=[y for _, _, y in own], mode="markers", name=outcome,
                marker={"color": colour, "size": 9}, text=[_hover(s) for s, *_ in own], hoverinfo="text",
            )  # fmt: skip
    _add_eager(figure, points)
    left_out = len(trajectory.steps) - len(points)
    title = f"{_title(trajectory)}<br>{len(points)} attempts, {left_out} left out"
    figure.update_layout(title=title, height=_MARGIN + 2 * _HEIGHT)
    decades = {"type": "log", "dtick": 1, "exponentformat": "SI"}
    figure.update_xaxes(title_text="FLOP / byte", **decades)
    figure.update_yaxes(title_text="FLOP/s", **decades)
    return figure


def _speedup_traces(search: Search, last: int) -> Iterator[Figure]:
    """The traces of one bottleneck."""
    go = package("plotly.graph_objects")
    for outcome, colour in COLOURS.items():
        steps = [step for step in search.steps if _outcome(step) == outcome]
        if steps:
            yield go.Scatter(
                x=[s.attempt.number for s in steps], y=[_speedup(s, "eager")[0] for s in steps],
                mode="markers", name=outcome, error_y=_whiskers(steps, "eager"),
                text=[_hover(s) for s in steps], hoverinfo="text", cliponaxis=False,
                marker={"color": colour, "size": 9, "symbol": "x" if outcome == "not passed" else "circle"},
            )  # fmt: skip
    compiled = [s for s in search.steps if _speedup(s, "compile")[0]]
    if compiled:
        yield go.Scatter(
            x=[s.attempt.number + _BESIDE for s in compiled], y=[_speedup(s, "compile")[0] for s in compiled],
            mode="markers", name="over torch.compile", error_y=_whiskers(compiled, "compile"),
            text=[_hover(s) for s in compiled], hoverinfo="text",
            marker={"color": "gray", "symbol": "diamond-open"},
        )  # fmt: skip
    numbers, best = _best_so_far(search, last)
    yield go.Scatter(
        x=numbers, y=best, mode="lines", name="best so far", hoverinfo="y",
        line={"color": COLOURS["verified"], "shape": "hv", "width": 1.5},
    )  # fmt: skip


def _best_so_far(search: Search, last: int) -> tuple[list[int], list[float]]:
    """Numbers of attempts and the verified speedup over eager from each on."""
    numbers, best = [search.steps[0].attempt.number], [1.0]
    for step in search.steps:
        if step.promoted:
            numbers.append(step.attempt.number)
            best.append(_speedup(step, "eager")[0])
    return [*numbers, last], [*best, best[-1]]


def _outcome(step: Step) -> str:
    """A key of `COLOURS`, or how far an attempt came that goes on."""
    if step.evaluation is not None and step.evaluation.passed:
        return step.evaluation.evidence.value
    over = step.evaluation is not None or step.attempt.status is AttemptStatus.FAILED
    return "not passed" if over else step.attempt.status.value


def _speedup(step: Step, baseline: str) -> tuple[float, float, float]:
    """Point, and the interval's lengths below and above it; zeros if it was not measured."""
    found = step.evaluation.speedup.get(baseline) if step.evaluation else None
    return (found.point, found.point - found.low, found.high - found.point) if found else (0.0, 0.0, 0.0)


def _whiskers(steps: Sequence[Step], baseline: str) -> dict[str, object]:
    found = [_speedup(step, baseline) for step in steps]
    return {
        "type": "data",
        "symmetric": False,
        "arrayminus": [f[1] for f in found],
        "array": [f[2] for f in found],
    }


def _hover(step: Step) -> str:
    """Lines on an attempt."""
    attempt, evaluation, plan = step.attempt, step.evaluation, step.attempt.plan
    lines = [f"#{attempt.number} {plan.strategy if plan else ''}", step.outcome]
    if evaluation:
        lines += [f"{interval} over {baseline_name(name)}" for name, interval in evaluation.speedup.items()]
    if plan:
        lines += [f"expected {plan.expected_speedup:.2f}x over the best", shorten(plan.diagnosis, 100)]
    if evaluation and evaluation.classification:
        lines.append(evaluation.classification.bound.adjective)
    lines.append(shorten(attempt.error or (attempt.critique.cause if attempt.critique else ""), 100))
    return "<br>".join(_plain(line) for line in lines if line)


def _achieved(step: Step) -> tuple[float, float] | None:
    """Operations a byte and operations a second."""
    values = _values(step)
    if not values.get(BANDWIDTH) or not values.get(RATE):
        return None
    return values[RATE] / values[BANDWIDTH], values[RATE]


def _ceilings(step: Step) -> tuple[float, float] | None:
    """Bytes/s and FLOP/s that the attempt could reach at most."""
    values = _values(step)
    bandwidth, peak = values.get("bandwidth_ceiling"), values.get("flops_ceiling")
    return (bandwidth, peak) if bandwidth and peak else None


def _values(step: Step) -> dict[str, float]:
    return values_of(step.evaluation.metrics) if step.evaluation else {}


def _roof(bandwidth: float, peak: float, intensities: Sequence[float]) -> list[float]:
    """Where a roof is drawn: its ridge, and beyond all points."""
    beyond = 10**_SEEN_DECADES
    ridge = peak / bandwidth
    return [min(ridge, *intensities) / beyond, ridge, max(ridge, *intensities) * beyond]


def _add_eager(figure: Figure, points: Iterable[tuple[Step, float, float]]) -> None:
    """The point of eager: as measured beside the last attempt at each bottleneck."""
    eager: dict[str, tuple[float, float]] = {}
    for step, intensity, rate in points:
        speedup, *_ = _speedup(step, "eager")
        if speedup and _of_whole_calls(step):
            eager[step.attempt.bottleneck] = intensity, rate / speedup
    if eager:
        figure.add_scatter(
            x=[x for x, _ in eager.values()], y=[y for _, y in eager.values()], mode="markers", name="eager",
            hoverinfo="name", marker={"color": "gray", "size": 9, "symbol": "circle-open"},
        )  # fmt: skip


def _of_whole_calls(step: Step) -> bool:
    """The rate is over the call's time, as speedups are, and not over that of its kernels alone."""
    metrics = step.evaluation.metrics if step.evaluation else ()
    return any(metric.name == RATE and metric.source == "roofline" for metric in metrics)


def _title(trajectory: RunSteps) -> str:
    return _plain(f"{trajectory.run.name} on {trajectory.run.device}, run {trajectory.run.id}")


def _nothing(text: str) -> Figure:
    """An empty figure that says why."""
    figure = package("plotly.graph_objects").Figure()
    figure.update_layout(title=_plain(text), height=_MARGIN)
    return figure


def _plain(text: str) -> str:
    """Without tags, and without the dollars that begin a formula."""
    return escape(visible(text), quote=False).replace("$", "&#36;")

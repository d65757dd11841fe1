"""Numbers and names for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentforge.schema import Interval, ModelPlan, ProfileRanked


def seconds(value: float | None) -> str:
    """Seconds with a unit that fits: `1.23 ms`."""
    if value is None:
        return "-"
    value = float(f"{value:.3g}")  # first: 0.9997 ms is 1 ms
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns" if value else "0"


def speedups(values: Mapping[str, Interval]) -> str:
    """Speedups by baseline on one line: `2.31x over eager, 1.08x over torch.compile`."""
    from agentforge.schema import baseline_name

    return ", ".join(f"{value.point:.2f}x over {baseline_name(name)}" for name, value in values.items())


def budget(left: Mapping[str, Any]) -> str:
    """The rest of each limit: `7.5 minutes, 12 attempts left`."""
    parts = [
        f"{value:,.0f} {name}" if abs(value) >= 100 else f"{value:.3g} {name}"
        for name, value in left.items()
        if value is not None
    ]
    return f"{', '.join(parts)} left" if parts else ""


def estimate(left_s: float, overtime: bool) -> str:
    """How long the search goes on: `about 2:05 of search left, then stitching`."""
    if overtime:
        return f"the minutes are used up; what was begun ends in at most {_minutes(left_s)}, then stitching"
    return f"about {_minutes(left_s)} of search left, then stitching"


def stitching(left_s: float | None, variants: int) -> str:
    """How long stitching goes on: `about 2:05 of stitching left, at most 3 variants`."""
    most = f"at most {variants} variant{'' if variants == 1 else 's'}"
    return f"{most} left" if left_s is None else f"about {_minutes(left_s)} of stitching left, {most}"


def _minutes(value: float) -> str:
    minutes, rest = divmod(round(value), 60)
    return f"{minutes}:{rest:02}"


def ranking(now: ProfileRanked) -> str:
    """The rest after a promotion: `one forward now takes about 31 ms; most is left in softmax`."""
    most = next((b for b in now.bottlenecks if b.gain_s > 0), None)
    said = f"one forward now takes about {seconds(now.total_s)}; "
    if most is None:
        return f"{said}no bottleneck has anything left to gain"
    return f"{said}most is left in {most.name} ({most.share:.1%} of it, limit {most.speedup_limit:.2f}x)"


def plan(of_model: ModelPlan) -> str:
    """Which regions of a model are worked on, in order: `plan by playbook: softmax, norm`."""
    names = [region.name for region in of_model.regions if region.fuse]
    return f"plan by {of_model.author}: {', '.join(names) or 'no region is worth a kernel'}"


def reference(source: str) -> str:
    """A reference that a model wrote, for a person to read before it is optimized."""
    body = "\n".join(f"    {line}".rstrip() for line in source.strip().splitlines())
    return f"the reference that the model wrote and the referee accepted:\n\n{body}\n"

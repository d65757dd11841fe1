"""A trajectory as HTML. Text of candidates and models is escaped: it may contain tags, scripts or characters
that reorder a line."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from agentforge.schema import baseline_name
from agentforge.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

    from .steps import RunSteps

MOST_LOG = 2000
"""Characters of what a candidate printed."""
MOST_LINE = 300
"""Characters of a line of source."""


def page(trajectory: RunSteps) -> str:
    """An HTML fragment: one section a bottleneck, one box an attempt, no script."""
    template = _environment().get_template("trajectory.html.j2")
    return template.render(t=trajectory, report=trajectory.report, most_log=MOST_LOG)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agentforge.analysis"), undefined=jinja2.StrictUndefined,
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_finalized,
    )  # fmt: skip
    environment.filters["cut"] = _cut
    environment.filters["time"] = _time
    environment.filters["baseline"] = baseline_name
    return environment


def _finalized(value: object) -> object:
    return value if hasattr(value, "__html__") else visible(str(value))


def _cut(text: str) -> str:
    """A line of source of bearable length."""
    return text if len(text) <= MOST_LINE else f"{text[:MOST_LINE]} ..."


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"

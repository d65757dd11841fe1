"""A campaign's report as one HTML file without scripts. What others wrote is escaped."""

from __future__ import annotations

from ..render import conditions, sections
from ..report import CampaignReport
from .plots import BOTTOM, HEIGHT, LEFT, WIDTH, cost_curves, speedup_bars


def html(report: CampaignReport) -> str:
    """The tables of the Markdown report, with the cost against fast_1 and the speedups as plots."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agentforge.campaigns.page"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        report=report,
        conditions=list(conditions(report)),
        tables=list(sections(report)),
        curves=cost_curves(report),
        bars=speedup_bars(report),
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        bottom=BOTTOM,
    )

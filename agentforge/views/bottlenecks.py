"""The table of a profile's bottlenecks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import text

if TYPE_CHECKING:
    from agentforge.schema import Bottleneck


def table(bottlenecks: Sequence[Bottleneck]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows."""
    headings = ["bottleneck", "sites", "share", "time", "SOL time", "bound", "gain", "limit", "now"]
    return headings, [
        [
            b.definition.name,
            str(len(b.call_sites)),
            f"{b.share:.1%}",
            text.seconds(b.time_s),
            text.seconds(b.sol_s),
            str(b.bound),
            text.seconds(b.gain_s),
            f"{b.speedup_limit:.2f}x",
            _remark(b),
        ]
        for b in bottlenecks
    ]


def _remark(bottleneck: Bottleneck) -> str:
    """Why no kernel is searched, and on a GPU the families of the kernels that run now."""
    from agentforge.profiling.measure.kernel_attribution import family
    from agentforge.schema import obstacle

    now = {family(kernel) for site in bottleneck.call_sites for kernel in site.kernels}
    reason = [] if bottleneck.optimizable else [obstacle(bottleneck.definition.op_type)]
    return ", ".join([*reason, *sorted(now)])

"""AgentForge without what takes minutes and has its own tests: measured ceilings, variants by torch.compile,
the referee's sanitizers and its check of numerical stability.

`python -m tests.quick ...` is `agentforge ...`.
"""

from __future__ import annotations

from typing import Any

from agentforge.cli import main
from agentforge.devices import Roofline, roofline
from agentforge.referee import pipeline
from agentforge.referee.checks.correctness.stability import Stability
from agentforge.stitch import select

_CEILINGS = Roofline(bandwidth=1e12, peak_flops={"float32": 1e14})
"""Above any CPU's."""
ROOFLINE: tuple[tuple[Any, str, Any], ...] = ((roofline, "_measure", lambda _: _CEILINGS),)
"""Owner, name and replacement."""
SLOW_PARTS: tuple[tuple[Any, str, Any], ...] = (
    (select, "_MODES", ("kernels",)),
    (select, "fastest_compiled", lambda *_: None),
    (pipeline, "has_kernels", lambda _: False),
    (Stability, "applies", lambda *_: False),
)


def leave_out() -> None:
    """Change this process for good: for tests whose runs have a process of their own."""
    for owner, name, replacement in (*ROOFLINE, *SLOW_PARTS):
        setattr(owner, name, replacement)


if __name__ == "__main__":
    leave_out()
    main()

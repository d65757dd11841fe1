"""AgentForge without what takes minutes and has its own tests: measured ceilings, variants by torch.compile.

`python -m tests.quick ...` is `agentforge ...`.
"""

from __future__ import annotations

from agentforge.cli import main
from agentforge.devices import Roofline, roofline
from agentforge.stitch import select, variants


def leave_out() -> None:
    """Change this process for good: for tests whose runs have a process of their own."""
    known = Roofline(bandwidth=1e12, peak_flops={"float32": 1e14})
    roofline._measure = lambda _: known
    select._MODES = ("kernels",)
    variants.VariantBuilder.compiled = lambda *_: None  # type: ignore[method-assign]


if __name__ == "__main__":
    leave_out()
    main()

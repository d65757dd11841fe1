"""`agentforge.verify`: one candidate against one reference."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentforge.schema import Definition, Evaluation, Solution, expanded

from .arguments import naming_arguments
from .targets import load_settings

if TYPE_CHECKING:
    from agentforge.config import Settings


@naming_arguments
def verify(
    reference: str | os.PathLike[str] | Definition,
    candidate: str | os.PathLike[str] | Solution,
    *,
    level: str = "full",
    device: str = "auto",
    settings: Settings | Mapping[str, Any] | Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Evaluation:
    """Judge one candidate against one reference: is it correct, does it really do the work, is it faster?

    The candidate runs in a sandbox. A wrong, crashing or cheating candidate is an `Evaluation` with that
    status, not an exception.

    Args:
        reference: a file with `Model`, `get_inputs()` and `get_init_inputs()`, or a `Definition`.
        candidate: a file with `ModelNew`, a solution's folder, or a `Solution`.
        level: `full`, or `quick` for a first verdict, which is never `verified`.
        device: `auto`, `cpu` or `cuda`.
        settings: overrides such as `{"referee.processes": 5}`.
        progress: called with lines of progress.

    Returns:
        The verdict: `status`, `evidence`, `reasons`, `performance.speedup`.

    Raises:
        AgentForgeError: a file, a setting or the machine cannot be used; the message says what to do.
    """
    from agentforge.runs import verify as judge

    return judge(
        reference if isinstance(reference, Definition) else os.fspath(reference),
        candidate if isinstance(candidate, Solution) else expanded(candidate),
        level,
        device,
        load_settings(settings),
        progress,
    )

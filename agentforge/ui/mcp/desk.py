"""What all tools share: one call at the machine at a time, errors in a sentence, progress to the client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Annotated, Any

import anyio.from_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from agentforge.campaigns import Workbench
from agentforge.loop import OnEvent
from agentforge.schema import AgentForgeError, Event

RunId = Annotated[str, Field(description="Identifier of a run, as profile_model gave it, or its beginning.")]
DefinitionId = Annotated[str, Field(description="A bottleneck: its definition's hash, its name, or a part.")]

_SHOWN = {
    "profile.started": lambda d: "profiling",
    "progress": lambda d: d["text"],
    "attempt.evaluating": lambda d: "measuring" if d["level"] == "quick" else "faster: verifying in full",
    "attempt.evaluated": lambda d: f"{d['level']}: {d['status']}",
    "stitch.started": lambda d: "putting kernels in and measuring end to end",
}  # fmt: skip
"""Events that a client is told of."""


class Desk:
    """The workbench, for one caller at a time.

    Args:
        workbench: what the tools work with.
    """

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self._one_at_a_time = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Workbench]:
        """For tools that only read; an expected failure reaches the client as a sentence."""
        try:
            yield self.workbench
        except AgentForgeError as error:
            raise ToolError(" ".join(str(error).split())) from error

    @contextmanager
    def working(self) -> Iterator[Workbench]:
        """For tools that use the machine: two measurements at once would disturb each other."""
        with self._one_at_a_time, self.reading() as workbench:
            yield workbench


def teller(context: Context[Any, Any]) -> OnEvent:
    """Reports a run's events to the client as progress; called in the tool's worker thread."""
    steps = count(1)

    def tell(event: Event) -> None:
        text: Callable[[dict[str, Any]], str] | None = _SHOWN.get(event.kind)
        if text is not None:
            message = text(dict(event.data))
            anyio.from_thread.run(context.report_progress, next(steps), None, message)

    return tell

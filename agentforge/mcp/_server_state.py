"""Shared by all tools: one machine call at a time, errors as sentences, progress for the client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Annotated, Any

import anyio.from_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from agentforge.loop import OnEvent
from agentforge.runs import Workbench
from agentforge.schema import (
    AgentForgeError,
    AttemptEvaluated,
    AttemptEvaluating,
    Event,
    Level,
    ProfileStarted,
    Progress,
    StitchStarted,
)

RunId = Annotated[str, Field(description="Identifier of a run from profile_model, or its beginning.")]
DefinitionId = Annotated[
    str, Field(description="A bottleneck: its definition's hash or name, or a part of it.")
]


def event_text(event: Event) -> str:
    """What a client sees of an event; empty if nothing."""
    match event:
        case ProfileStarted():
            return "profiling"
        case Progress():
            return event.text
        case AttemptEvaluating():
            return "faster: verifying in full" if event.level is Level.FULL else "measuring"
        case AttemptEvaluated():
            return f"{event.level.value}: {event.status.value}"
        case StitchStarted():
            return "integrating kernels and measuring end to end"
        case _:
            return ""


class ServerState:
    """The workbench, used by one caller at a time.

    Args:
        workbench: the run's session behind the tools.
    """

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self._one_at_a_time = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Workbench]:
        """For tools that only read. An expected failure reaches the client as a sentence."""
        try:
            yield self.workbench
        except AgentForgeError as error:
            raise ToolError(" ".join(str(error).split())) from error
        except OSError as error:
            raise ToolError(f"the machine failed: {error}") from error

    @contextmanager
    def working(self) -> Iterator[Workbench]:
        """For tools that use the machine. Two measurements at once would disturb each other."""
        with self._one_at_a_time, self.reading() as workbench:
            yield workbench


def progress_reporter(context: Context[Any, Any]) -> OnEvent:
    """Report a run's events to the client as progress; called in the tool's worker thread."""
    steps = count(1)

    def tell(event: Event) -> None:
        if message := event_text(event):
            anyio.from_thread.run(context.report_progress, next(steps), None, message)

    return tell

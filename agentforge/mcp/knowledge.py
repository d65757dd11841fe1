"""`search_strategies`, `record_lesson`."""

from __future__ import annotations

import math
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from agentforge.knowledge import context_for
from agentforge.schema import Strategy, UsageError

from ._server_state import DefinitionId, RunId, ServerState
from .evaluate import AttemptId


def register(server: MCPServer[Any], server_state: ServerState) -> None:
    """Add the tools."""

    @server.tool()
    def search_strategies(
        run: RunId,
        definition: DefinitionId,
        languages: Annotated[
            list[str],
            Field(description="Languages that you would write in; without any, the run's device's."),
        ] = [],  # noqa: B006 - read only
        most: Annotated[int, Field(ge=1, le=50)] = 8,
    ) -> dict[str, Any]:
        """Techniques for a bottleneck, highest expected gain first, with their record on such regions.

        `mean_speedup` is over the best baseline; `mean_credit` leaves out what the technique was built on.
        """
        with server_state.reading() as workbench:
            _, bottleneck = workbench.bottleneck(run, definition)
            context = context_for(bottleneck, workbench.device)
            asked = languages or [workbench.settings.search.language]
            found = workbench.knowledge.retrieve(context, asked, workbench.device.kind)
            return {"strategies": [_shown(strategy) for strategy in found[:most]]}

    @server.tool()
    def record_lesson(
        attempt: AttemptId,
        lesson: Annotated[
            str,
            Field(min_length=1, max_length=600, description="One sentence that is true beyond the attempt."),
        ],
    ) -> dict[str, Any]:
        """Keep what a verified attempt taught, with its strategy, for later plans.

        Refused for an attempt that the referee did not verify.
        """
        with server_state.reading() as workbench:
            found = workbench.store.get_attempt(attempt)
            if found.evaluation is None or found.plan is None:
                raise UsageError(f"attempt {attempt} has no evaluation: {found.error or found.status}")
            _, bottleneck = workbench.bottleneck(found.run, found.bottleneck)
            kept = workbench.knowledge.learn(
                found.plan.strategy,
                context_for(bottleneck, workbench.device),
                workbench.store.get_evaluation(found.evaluation),
                lesson,
                author=found.plan.author,
                expected_speedup=found.plan.expected_speedup,
                run=found.run,
            )
            return {"lesson": kept.id, "strategy": kept.strategy, "speedup": kept.speedup}


def _shown(strategy: Strategy) -> dict[str, Any]:
    records = [record for record in strategy.records if record.newest is not None]  # others are claims only
    return {
        "id": strategy.id,
        "title": strategy.title,
        "summary": strategy.summary,
        "languages": list(strategy.languages),
        "parameters": {name: list(values) for name, values in strategy.parameters.items()},
        "how": strategy.body,
        "records": [
            {
                "op_type": r.context.op_type,
                "shape_class": r.context.shape_class,
                "architecture": r.context.architecture,
                "verified": r.n,
                "mean_speedup": math.exp(r.mean_log_speedup) if r.n else None,
                "mean_credit": None if r.mean_credit is None else math.exp(r.mean_credit),
                "failures": r.failures,
                "best_parameters": r.best_parameters,
            }
            for r in records[:4]
        ],
        "lessons": [
            {
                "text": lesson.text,
                "expected_speedup": lesson.expected_speedup,
                "measured_speedup": lesson.speedup,
            }
            for lesson in strategy.lessons[:4]
        ],
    }

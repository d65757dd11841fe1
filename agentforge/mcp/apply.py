"""`apply_solutions`."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from agentforge.schema import expanded

from ._server_state import RunId, ServerState, progress_reporter


def register(server: MCPServer[Any], server_state: ServerState) -> None:
    """Add the tool."""

    @server.tool()
    def apply_solutions(
        run: RunId,
        context: Context[Any, Any],
        out: Annotated[
            str, Field(description="Folder for the artifact, new or empty; else below the run.")
        ] = "",
    ) -> dict[str, Any]:
        """Put the fastest verified solution of each bottleneck into the model, and measure it end to end.

        Takes minutes: the whole model is judged with and without the kernels, against eager PyTorch and
        torch.compile. If the kernels do not win, the artifact keeps the faster baseline and says so.
        """
        with server_state.working() as workbench:
            folder = expanded(out).absolute() if out else None
            report = workbench.apply(run, folder, progress_reporter(context))
            speedup = report.end_to_end.speedup if report.end_to_end else {}
            return {
                "run": report.run.id,
                "headline": report.headline,
                "artifact": report.run.artifact,
                "proven": report.proven,
                "end_to_end": {name: interval.model_dump() for name, interval in speedup.items()},
                "regions": [
                    {"name": r.name, "strategy": r.strategy, "outcome": r.outcome, "calls": r.calls}
                    for r in report.regions
                ],
                "notes": list(report.notes),
            }

"""`agentforge mcp`: the same tools for coding agents, over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def mcp(
        http: Annotated[
            int | None,
            typer.Option(
                "--http", metavar="PORT", help="Serve streamable HTTP at http://HOST:PORT/mcp; else stdio."
            ),
        ] = None,
        host: Annotated[
            str,
            typer.Option("--host", help="For --http; beyond this machine AGENTFORGE_MCP_TOKEN is needed."),
        ] = "127.0.0.1",
        device: _options.Device = "auto",
        config: _options.Config = None,
    ) -> None:
        """Serve profiling, the referee and the knowledge base to a coding agent.

        It needs no key of ours: the agent writes the kernels. The referee's settings are those of this
        command; no client can change them.
        """
        settings = _options.settings(config)
        from agentforge.schema import MachineError

        try:
            import mcp.server.mcpserver  # noqa: F401
        except ImportError as error:
            raise MachineError(
                "serving tools needs the mcp package: pip install 'agentforge[mcp]'"
            ) from error
        from agentforge.campaigns import Workbench
        from agentforge.ui.mcp import serve_http, serve_stdio

        workbench = Workbench(settings, device)
        try:
            if http is None:
                serve_stdio(workbench)
            else:
                serve_http(workbench, host, http)
        finally:
            workbench.close()

"""`agentforge mcp`: AgentForge's tools for coding agents, over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import _options


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def mcp(
        http: Annotated[
            int | None,
            typer.Option(
                "--http",
                metavar="PORT",
                min=1,
                max=65535,
                help="Serve streamable HTTP at http://HOST:PORT/mcp. Default: stdio.",
            ),
        ] = None,
        host: Annotated[
            str | None,
            typer.Option(
                "--host",
                help="Address for --http. Default: 127.0.0.1. An address beyond this machine needs "
                "AGENTFORGE_MCP_TOKEN.",
            ),
        ] = None,
        device: _options.Device = "auto",
        config: _options.Config = None,
    ) -> None:
        """Serve the profiler, the referee and the knowledge base to a coding agent.

        No API key is needed: the agent writes the kernels itself. Clients cannot change the referee's
        settings.
        """
        settings = _options.settings(config)
        from agentforge.schema import MachineError, UsageError, pip_install

        if host is not None and http is None:
            raise UsageError("--host goes with --http: add --http PORT, or leave out --host")
        try:
            import mcp.server.mcpserver  # noqa: F401
        except ImportError as error:
            raise MachineError(f"agentforge mcp needs the package mcp: run {pip_install('mcp')}") from error
        from agentforge.mcp import serve_http, serve_stdio
        from agentforge.runs import Workbench

        workbench = Workbench(settings, device)
        try:
            if http is None:
                serve_stdio(workbench)
            else:
                serve_http(workbench, host or "127.0.0.1", http)
        finally:
            workbench.close()

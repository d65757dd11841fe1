"""The MCP server: its tools, and its two transports."""

from __future__ import annotations

import hmac
import os
import socket
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult
from pydantic import ValidationError

from agentforge._version import __version__
from agentforge.runs import Workbench
from agentforge.schema import UsageError

from . import apply as applying
from . import evaluate as judging
from . import knowledge as knowing
from . import profile as profiling
from ._server_state import ServerState

TOKEN = "AGENTFORGE_MCP_TOKEN"
"""Variable with the token that HTTP clients must send; required for addresses beyond this machine."""

INSTRUCTIONS = """\
AgentForge makes PyTorch models faster with kernels that a referee has verified. The way to work:
1. profile_model: where a model's time goes; it begins a run, whose identifier the other tools take.
2. list_bottlenecks, get_definition: what is worth a kernel, and its exact contract.
3. search_strategies: techniques with what they brought here.
4. evaluate_solution: the referee compiles, checks and times what you wrote against eager PyTorch and
   torch.compile, interleaved; read why it failed and fix it, or make it faster. get_metrics shows all of it.
5. record_lesson: one sentence that a verified evaluation taught.
6. apply_solutions: puts the fastest verified solutions into the model and proves it end to end.
Evaluations take from seconds to a few minutes; progress is reported."""


class _Server(MCPServer[Any]):
    """Says in a sentence which arguments of a call do not fit."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            wrong = error.__cause__
            if not isinstance(wrong, ValidationError):
                raise
            said = (f"{'.'.join(map(str, e['loc']))}: {e['msg'].lower()}" for e in wrong.errors())
            raise ToolError(f"{name} cannot take these arguments: {'; '.join(said)}") from error


def create_server(workbench: Workbench) -> MCPServer[Any]:
    """The server for a workbench, which the caller closes."""
    server: MCPServer[Any] = _Server(
        "agentforge",
        title="AgentForge",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    server_state = ServerState(workbench)
    for group in (profiling, judging, knowing, applying):
        group.register(server, server_state)
    return server


def serve_stdio(workbench: Workbench) -> None:
    """Serve the client that started this process, until it disconnects."""
    create_server(workbench).run("stdio")


def serve_http(workbench: Workbench, host: str, port: int) -> None:
    """Serve streamable HTTP at `http://HOST:PORT/mcp` until interrupted.

    Raises:
        UsageError: it would be open to other machines without a token, or the address cannot be used.
    """
    import uvicorn

    token = os.environ.get(TOKEN, "")
    local = host in ("127.0.0.1", "localhost", "::1")
    if not local and not token:
        raise UsageError(
            f"--host {host} can be reached from other machines, and profiling runs code that a client names: "
            f"set {TOKEN}, or serve on 127.0.0.1"
        )
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise UsageError(
            f"cannot serve on {host}, port {port} ({error.strerror}): take another one"
        ) from error
    app: Any = create_server(workbench).streamable_http_app(host=host)
    uvicorn.run(require_token(app, token) if token else app, host=host, port=port, log_level="warning")


def require_token(app: Any, token: str) -> Any:
    """The application, protected by a bearer token."""
    wanted = f"Bearer {token}".encode()

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            shown = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(shown, wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return guard

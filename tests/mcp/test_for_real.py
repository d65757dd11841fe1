"""The whole way over HTTP with the real referee, by two public clients."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.agents.llm.test_cli import MODEL

from .test_tools import TOOLS, answer, refusal

ROOT = Path(__file__).resolve().parents[2]
INSPECTOR = os.environ.get("MCP_INSPECTOR") or shutil.which("mcp-inspector")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "model.py").write_text(MODEL)
    environment = {**os.environ, "AGENTFORGE_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    environment.pop("AGENTFORGE_MCP_TOKEN", None)
    settings = ["-c", "referee.compile_baseline=false", "-c", "referee.quick_seconds=0.3", "-c",
                "referee.full_seconds=0.5", "-c", "referee.random_seeds=1", "-c", "referee.threads=2",
                "--device", "cpu"]  # fmt: skip
    for _ in range(3):  # another process may take the port between our look and the server's
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "tests.quick", "mcp", "--http", str(port)]
        process = subprocess.Popen([*command, *settings], cwd=folder, env=environment)
        try:
            if _listens(process, port):
                yield f"http://127.0.0.1:{port}/mcp"
                return
        finally:
            process.terminate()
            process.wait(timeout=60)
    pytest.fail("the server did not start")


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    for _ in range(1200):
        if process.poll() is not None:
            return False
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False


def test_every_tool_by_the_sdks_client(url: str) -> None:
    async def main() -> None:
        async with Client(url, read_timeout_seconds=280) as client:
            profile = await answer(client, "profile_model", target="model.py")
            run, region = profile["run"], profile["bottlenecks"][0]["definition"]
            assert (await answer(client, "list_bottlenecks", run=run))["run"] == run
            contract = await answer(client, "get_definition", run=run, definition=region)
            found = await answer(client, "search_strategies", run=run, definition=region)
            assert found["strategies"]
            wrong = contract["reference"].replace("class Model(", "class ModelNew(") + "\nModelNew = None\n"
            judged = await answer(
                client, "evaluate_solution", run=run, definition=region, files={"model_new.py": wrong}
            )
            assert judged["status"] != "PASSED"
            metrics = await answer(client, "get_metrics", attempt=judged["attempt"])
            assert metrics["evaluation"]["status"] == judged["status"]
            said = await refusal(client, "record_lesson", attempt=judged["attempt"], lesson="None is fast.")
            assert "verified" in said
            applied = await answer(client, "apply_solutions", run=run)
            assert Path(applied["artifact"]).is_dir()

    asyncio.run(main())


@pytest.mark.skipif(
    INSPECTOR is None, reason="no mcp-inspector (npm install -g @modelcontextprotocol/inspector)"
)
def test_every_tool_by_the_inspector(url: str) -> None:
    def inspect(*arguments: str) -> Any:
        command = [str(INSPECTOR), "--cli", url, "--transport", "http", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def call(tool: str, **arguments: str) -> Any:
        pairs = [part for key, value in arguments.items() for part in ("--tool-arg", f"{key}={value}")]
        return inspect("--method", "tools/call", "--tool-name", tool, *pairs)

    assert {tool["name"] for tool in inspect("--method", "tools/list")["tools"]} == TOOLS
    profile = call("profile_model", target="model.py")["structuredContent"]
    run, region = profile["run"], profile["bottlenecks"][0]["definition"]
    assert call("list_bottlenecks", run=run)["structuredContent"]["run"] == run
    assert (
        "class Model" in call("get_definition", run=run, definition=region)["structuredContent"]["reference"]
    )
    assert call("search_strategies", run=run, definition=region)["structuredContent"]["strategies"]
    files = json.dumps({"model_new.py": "class ModelNew:\n    pass\n"})
    judged = call("evaluate_solution", run=run, definition=region, files=files)["structuredContent"]
    assert judged["status"] != "PASSED"
    assert call("get_metrics", attempt=judged["attempt"])["structuredContent"]["attempt"] == judged["attempt"]
    assert call("record_lesson", attempt=judged["attempt"], lesson="x")["isError"]
    assert call("apply_solutions", run=run)["structuredContent"]["proven"] in (True, False)

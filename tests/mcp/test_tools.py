"""The tools, by the SDK's own client: in this process over a simulated referee, and as users start it."""

from __future__ import annotations

import asyncio
import errno
import inspect
import math
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from agentforge.config import RefereeSettings
from agentforge.frontends import FrontendOptions
from agentforge.knowledge import KnowledgeBase
from agentforge.mcp import create_server
from agentforge.mcp._server_state import ServerState
from agentforge.mcp.evaluate import slug, solution_of
from agentforge.mcp.knowledge import _shown
from agentforge.mcp.profile import contract
from agentforge.mcp.server import TOKEN, require_token, serve_http
from agentforge.runs import ModelStart, Workbench
from agentforge.runs._base import RunInput
from agentforge.runs.pipeline import RunPipeline
from agentforge.runs.run_settings import with_search
from agentforge.schema import (
    DType,
    MachineError,
    RunStatus,
    Strategy,
    StrategyRecord,
    TolerancePolicy,
    UsageError,
)
from tests.store import nouns

TOOLS = {
    "profile_model",
    "list_bottlenecks",
    "get_definition",
    "evaluate_solution",
    "get_metrics",
    "search_strategies",
    "record_lesson",
    "apply_solutions",
}


def kernel(speed: float, **said: Any) -> dict[str, str]:
    import json

    return {"model_new.py": f"# {json.dumps({'speed': speed, **said})}\nclass ModelNew: ...\n"}


def using(bench: Workbench, work: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        server: MCPServer[Any] = create_server(bench)
        async with Client(server) as client:
            await work(client)

    asyncio.run(main())


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def test_a_coding_agent_works_on_a_run(workbench: Workbench) -> None:
    told: list[str] = []

    async def work(client: Client) -> None:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        [region] = (await answer(client, "list_bottlenecks", run="run"))["bottlenecks"]
        before = region["time_s"]
        contract = await answer(client, "get_definition", run="run", definition=region["name"])
        assert contract["reference"] == "# norm\n"
        arguments = {"run": "run", "definition": region["definition"], "files": kernel(2.0, full=2.5)}
        strategy = {"strategy": "Rows in L1", "expected_speedup": 3.0, "idea": "one pass"}
        result = await client.call_tool(
            "evaluate_solution", {**arguments, **strategy}, progress_callback=progress
        )
        first = dict(result.structured_content or {})
        assert (first["status"], first["evidence"], first["level"]) == ("PASSED", "verified", "full")
        assert first["speedup"]["eager"]["point"] == 2.5
        second = await answer(
            client, "evaluate_solution", **{**arguments, "files": kernel(1.1), "parent": first["attempt"]}
        )
        assert second["evidence"] == "unverified"
        elsewhere = {**arguments, "files": kernel(1.3), "parent": "run/77"}
        assert "at this bottleneck" in await refusal(client, "evaluate_solution", **elsewhere)
        metrics = await answer(client, "get_metrics", attempt=first["attempt"])
        assert metrics["plan"]["expected_speedup"] == 3.0
        assert metrics["evaluation"]["evidence"] == "verified"
        await answer(client, "record_lesson", attempt=first["attempt"], lesson="Rows fit in L1.")
        assert "verified" in await refusal(client, "record_lesson", attempt=second["attempt"], lesson="No.")
        found = await answer(client, "search_strategies", run="run", definition="norm", languages=["python"])
        [own] = [s for s in found["strategies"] if s["id"] == "rows-in-l1"]
        lesson = {"text": "Rows fit in L1.", "expected_speedup": 3.0, "measured_speedup": 2.5}
        assert own["lessons"] == [lesson]
        [region] = (await answer(client, "list_bottlenecks", run="run"))["bottlenecks"]
        assert region["attempts"] == 2
        assert region["verified_speedup"]["eager"]["point"] == 2.5
        assert region["time_s"] == pytest.approx(before / 2.5)

    using(workbench, work)
    assert told == ["measuring", "quick: PASSED", "faster: verifying in full", "full: PASSED"]
    one, two = workbench.store.attempts("run")
    assert (one.number, two.number, two.parent) == (1, 2, one.id)
    assert one.plan is not None
    assert one.plan.author.startswith("mcp")
    assert [p.solution for p in workbench.store.promotions("run")] == [one.solution]


@pytest.mark.parametrize(
    ("language", "says", "fast"),
    [
        ("cpp", "agentforge_cpp", "vec"),
        ("triton", "@triton.jit", "tile"),
        ("cuda", "agentforge_cuda", "warp"),
    ],
)
def test_rules_and_strategies_are_those_of_the_devices_language(
    workbench: Workbench, tmp_path: Path, language: str, says: str, fast: str
) -> None:
    for name, of in (("vec", "cpp"), ("tile", "triton"), ("warp", "cuda")):
        head = f"id: {name}\ntitle: {name}\nsummary: s\nlanguages: [{of}]"
        (tmp_path / f"{name}.md").write_text(f"---\n{head}\n---\n")
    workbench.knowledge = KnowledgeBase(workbench.store, [tmp_path])
    workbench.settings = with_search(workbench.settings, language=language)
    region = workbench.bottleneck("run", "norm")[1]
    typed = region.model_copy(
        update={"definition": region.definition.model_copy(update={"dtypes": (DType.BFLOAT16,)})}
    )

    async def work(client: Client) -> None:
        shown = await answer(client, "get_definition", run="run", definition="norm")
        spoken = {"agentforge_cpp", "@triton.jit", "agentforge_cuda"}
        assert {word for word in spoken if word in shown["how_to_answer"]} == {says}
        found = await answer(client, "search_strategies", run="run", definition="norm")
        assert [strategy["id"] for strategy in found["strategies"]] == [fast]

    using(workbench, work)
    assert contract(typed, language)["dtypes"] == ["bfloat16"]


def test_solutions_without_a_technique_are_no_strategy(workbench: Workbench) -> None:
    async def work(client: Client) -> None:
        arguments = {"run": "run", "definition": "norm", "files": kernel(2.0)}
        assert (await answer(client, "evaluate_solution", **arguments))["evidence"] == "verified"

    using(workbench, work)
    assert workbench.store.outcomes() == ()
    assert workbench.store.stored_strategies() == ()


def test_records_of_claims_only_are_not_shown() -> None:
    own = StrategyRecord(context=nouns.context(), n=1, newest=nouns.NOW)
    claims = StrategyRecord(context=nouns.context(dtype="bfloat16"), claims=9)
    shown = _shown(Strategy(id="fuse", title="Fuse", summary="s", records=(claims, own)))
    assert [record["verified"] for record in shown["records"]] == [1]


def test_a_record_has_its_credit_beside_the_whole_speedup() -> None:
    known = {"context": nouns.context(), "newest": nouns.NOW}
    own = StrategyRecord(n=1, mean_log_speedup=math.log(3), mean_credit=math.log(1.5), **known)
    failed = StrategyRecord(failures=1, **known)
    records = _shown(Strategy(id="fuse", title="Fuse", summary="s", records=(own, failed)))["records"]
    assert [r["mean_speedup"] for r in records] == [pytest.approx(3), None]
    assert [r["mean_credit"] for r in records] == [pytest.approx(1.5), None]


@pytest.mark.parametrize("method", ["profile", "apply"])
@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (MachineError("no compiler"), RunStatus.FAILED, "run.failed"),
        (KeyboardInterrupt(), RunStatus.INTERRUPTED, "run.interrupted"),
    ],
)
def test_a_call_that_is_stopped_leaves_a_run_that_says_so(
    workbench: Workbench,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    error: BaseException,
    status: RunStatus,
    kind: str,
) -> None:
    def stop(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(ModelStart, "load", lambda _, settings, device: RunInput(nouns.target(), settings))
    monkeypatch.setattr(RunPipeline, "make_profile", stop)
    monkeypatch.setattr(RunPipeline, "_judge_of_model", stop)
    with pytest.raises(type(error)):
        if method == "profile":
            workbench.profile("model.py", FrontendOptions())
        else:
            workbench.apply("run", None)
    (run,) = [run for run in workbench.store.list_runs() if (run.id == "run") == (method == "apply")]
    assert (run.status, bool(run.error)) == (status, True)
    assert workbench.store.events(run.id)[-1].kind == kind


def test_a_cheat_ends_rejected_and_unlearned(workbench: Workbench) -> None:
    async def work(client: Client) -> None:
        files = kernel(9.0, status="CHEATING")
        cheat = await answer(client, "evaluate_solution", run="run", definition="norm", files=files)
        assert cheat["status"] == "CHEATING"
        assert cheat["speedup"] == {}
        said = await refusal(client, "record_lesson", attempt=cheat["attempt"], lesson="Cheating is fast.")
        assert "verified" in said

    using(workbench, work)
    assert workbench.store.promotions("run") == ()
    assert workbench.store.lessons() == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("list_bottlenecks", {"run": "none"}, "there is no run 'none'"),
        ("get_definition", {"run": "run", "definition": "gemm"}, "there are: norm"),
        ("profile_model", {"target": "nowhere.py"}, "nowhere.py does not exist"),
        ("evaluate_solution", {"run": "run", "definition": "norm", "files": {}}, "ModelNew"),
        (
            "evaluate_solution",
            {"run": "run", "definition": "norm", "files": {"../x.py": ""}},
            "inside the solution",
        ),
        ("evaluate_solution", {"run": "run", "definition": "norm", "files": {"a.py": "def"}}, "not Python"),
        *(
            (
                "evaluate_solution",
                {"run": "run", "definition": "norm", "files": {"a": "", name: ""}},
                "cannot be written as a file",
            )
            for name in ("a/b.py", ".", "x" * 300)
        ),
        (
            "evaluate_solution",
            {"run": "run", "definition": "norm", "files": kernel(1.0), "expected_speedup": "inf"},
            "finite",
        ),
        ("apply_solutions", {"run": "run", "out": "~no-such-user/x"}, "there is no such user"),
        ("get_metrics", {"attempt": "run/0009"}, "no attempt run/0009"),
        ("record_lesson", {"attempt": "run/0009", "lesson": "x"}, "no attempt run/0009"),
        ("list_bottlenecks", {}, "list_bottlenecks cannot take these arguments: run: field required"),
        ("list_bottlenecks", {"run": 3}, "run: input should be a valid string"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    workbench: Workbench, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async def work(client: Client) -> None:
        message = await refusal(client, tool, **arguments)
        assert said in message
        assert not any(word in message for word in ("Traceback", "pydantic"))

    using(workbench, work)


def test_inputs_by_name_reach_the_frontend(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    def profile(_: Workbench, target: str, options: FrontendOptions, on_event: object) -> NoReturn:
        raise UsageError(f"{target} with {options.inputs}")

    async def work(client: Client) -> None:
        said = await refusal(client, "profile_model", target="hf:c.json", inputs=["mask=1,8:int64"])
        assert "hf:c.json with ('mask=1,8:int64',)" in said

    monkeypatch.setattr(Workbench, "profile", profile)
    using(workbench, work)


def test_an_error_of_the_machine_is_a_sentence(workbench: Workbench) -> None:
    with pytest.raises(ToolError, match="No space left on device"), ServerState(workbench).reading():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_no_tool_can_weaken_the_referee(workbench: Workbench) -> None:
    """No parameter has the name of a setting of the referee, and an unknown one is not taken over."""
    knobs = {*RefereeSettings.model_fields, *TolerancePolicy.model_fields, "level", "tolerance", "config"}

    async def work(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            assert not knobs & set(tool.input_schema["properties"]), tool.name
        files = kernel(0.5)
        await client.call_tool(
            "evaluate_solution",
            {"run": "run", "definition": "norm", "files": files, "processes": 1, "tolerance": 1e9},
        )

    before = workbench.settings.referee
    using(workbench, work)
    assert workbench.settings.referee == before
    assert "settings" not in inspect.signature(solution_of).parameters


def test_too_much_is_refused() -> None:
    with pytest.raises(UsageError, match="more than 2 MiB"):
        solution_of({"a.py": "x" * (3 << 20)}, "d", "me")


def test_files_are_in_a_folder_that_the_next_start_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def read(folder: Path, *_: object, author: str) -> NoReturn:
        assert (folder.parent / ".owner").exists()
        seen.append(folder)
        raise UsageError(f"{folder}/a.py is empty")

    monkeypatch.setattr("agentforge.mcp.evaluate.read_solution", read)
    with pytest.raises(UsageError, match=r"^a\.py is empty"):
        solution_of({"a.py": ""}, "d", "me")
    assert not seen[0].parent.exists()


def test_slugs() -> None:
    assert slug("Rows in L1 -- again!") == "rows-in-l1-again"
    assert slug("--") == "unnamed"


def test_other_machines_need_a_token(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(UsageError, match=TOKEN):
        serve_http(workbench, "0.0.0.0", 1)


def test_a_port_in_use_is_one_sentence(workbench: Workbench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot serve on 127.0.0.1, port {port} "):
            serve_http(workbench, "127.0.0.1", port)


@pytest.mark.parametrize(
    ("shown", "status"), [(b"Bearer secret", 200), (b"Bearer other", 401), (b"", 401), (None, 401)]
)
def test_the_token(shown: bytes | None, status: int) -> None:
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [] if shown is None else [(b"authorization", shown)]
    asyncio.run(require_token(app, "secret")({"type": "http", "headers": headers}, None, send))
    assert sent[0]["status"] == status


@pytest.mark.slow
def test_over_stdio_as_clients_start_it(tmp_path: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "agentforge.cli", "mcp", "--device", "cpu"],
        env={**os.environ, "AGENTFORGE_HOME": str(tmp_path)},
    )

    async def main() -> None:
        async with Client(server, read_timeout_seconds=120) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            assert "there is no run" in await refusal(client, "list_bottlenecks", run="none")

    asyncio.run(main())

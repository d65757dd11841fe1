"""`agentforge optimize --llm` as a user runs it: options, budget, resume, who spent what."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.runs.pipeline import RunPipeline
from tests.cli.conftest import Run, home, run
from tests.llm.server import LLMServer, Reply

from .scene import Script, profile

__all__ = ["home", "run"]

MODEL = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(Script(deque())) as running:  # its coder has no idea: nothing is measured
        yield running


def test_another_way_of_working_is_refused(run: Run) -> None:
    answer = run("optimize", "model.py", "--agents", "talk")
    assert answer.code == 2
    assert "search.agents" in answer.err
    assert "'one-shot' or 'dialogue'" in answer.err


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline")
def test_optimize_by_a_model_and_resume_with_more(
    server: LLMServer,
    run: Run,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        RunPipeline, "stitch", lambda *_: None
    )  # nothing to put in: minutes of compiling saved
    (tmp_path / "model.py").write_text(MODEL)
    spec, cassette = f"openai:m@{server.url}", tmp_path / "run.jsonl"
    settings = (
        "-c", "llm.max_tokens=600", "-c", "llm.retries=0", "-c", "search.min_share=0",
        "-c", "referee.compile_baseline=false", "-c", "referee.task_seconds=0",
    )  # fmt: skip
    limits = ("--attempts", "2", "--tokens", "5000")
    first = run(
        "optimize", "model.py", "--llm", spec, "--record", str(cassette), *limits, *settings, "--json"
    )
    assert first.code == 0, first.err + first.out
    assert "budget of 5000 tokens" in first.out
    name = first.json["run"]["id"]
    totals = run("runs", "show", name, "--json").json["llm"]
    assert 0 < sum(t["tokens_in"] + t["tokens_out"] for t in totals) <= 5000
    more = run("runs", "resume", name, "--tokens", "1000000", "--json")
    assert more.code == 0, more.err + more.out
    shown = run("runs", "show", name, "--json").json
    assert len(shown["tried"]) == 2
    assert {t["role"] for t in shown["llm"]} == {"planner", "coder"}
    assert all(t["dollars"] is None for t in shown["llm"])
    assert sum(t["calls"] for t in shown["llm"]) == len(server.seen)
    lines = [json.loads(line) for line in cassette.read_text().splitlines()]
    assert len([line for line in lines if "request" in line]) == len(server.seen)
    bodies = [seen.prompt for seen in server.seen]
    assert max(bodies.count(b) for b in bodies) <= len(shown["tried"]), "paid twice within an attempt"
    text = run("runs", "show", name)
    assert "unknown" in text.out


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("401", "refuses the key, or refuses it m: check AGENTFORGE_LLM_API_KEY"),
        ("404", "has no model 'm', or the URL is wrong: check --llm"),
        ("402", "the quota is used up: add credit"),
        ("gone", "start the server, check the URL in --llm"),
    ],
)
def test_an_endpoint_that_cannot_answer_ends_the_run_with_one_sentence(
    server: LLMServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, says: str
) -> None:
    monkeypatch.setattr(RunPipeline, "make_profile", lambda *_: profile())
    (tmp_path / "model.py").write_text(MODEL)
    server.script = lambda _: Reply(fault=fault)
    spec = "openai:m@http://127.0.0.1:9/v1" if fault == "gone" else f"openai:m@{server.url}"
    settings = ("-c", "llm.retries=0", "-c", "search.min_share=0", "-c", "referee.compile_baseline=false")
    answer = run("optimize", "model.py", "--llm", spec, *settings)
    assert answer.code == 2
    said = [line for line in answer.err.splitlines() if line.startswith("agentforge: ")]
    assert len(said) == 1
    assert says in said[0]
    assert "Traceback" not in answer.err
    assert '"failed"' in run("runs", "list", "--json").out

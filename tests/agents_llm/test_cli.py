"""`agentforge optimize --llm` as a user runs it: profile, search by models, budget, resume, report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from tests.llm.server import LLMServer, Reply

from .scene import Script, role_of, said

MODEL = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(2048))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(2048, 2048)]


def get_init_inputs():
    return []
"""


class Echo(Script):
    """Gives the definition's own code back."""

    def __call__(self, body: dict[str, Any]) -> Reply:
        if role_of(body) == "coder":
            reference = re.search(
                r"The reference, in PyTorch:\n\n```python\n(.*?)```", said(body)[0], re.DOTALL
            )
            assert reference is not None
            number = len(self.prompts)
            self.prompts.append(("coder", said(body)[1]))
            code = f"{reference[1]}\n\nclass ModelNew(Model):\n    number = {number}\n"
            return Reply(f"FILE: model_new.py\n```python\n{code}```\n")
        return super().__call__(body)


def agentforge(folder: Path, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "AGENTFORGE_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "agentforge.cli", *arguments, "--json"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


QUICK = ("referee.quick_seconds=0.1", "referee.compile_baseline=false", "referee.random_seeds=1",
         "search.language=python", "search.min_share=0", "llm.max_tokens=600", "llm.retries=0")  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(1100)
def test_optimize_by_a_model_and_resume_with_more(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    options = [part for setting in QUICK for part in ("-c", setting)]
    with LLMServer(Echo(deque())) as server:
        spec = f"openai:m@{server.url}"
        first = agentforge(
            tmp_path, "optimize", "model.py", "--llm", spec, "--attempts", "2", "--tokens", "5000", *options
        )
        run = first["run"]["id"]
        assert "budget of 5000 tokens" in json.dumps(first)
        shown = agentforge(tmp_path, "runs", "show", run)
        used = sum(total["tokens_in"] + total["tokens_out"] for total in shown["llm"])
        assert 0 < used <= 5000
        asked = len(server.seen)
        agentforge(tmp_path, "runs", "resume", run, "--tokens", "1000000")
        shown = agentforge(tmp_path, "runs", "show", run)
        assert len(shown["tried"]) == 2
        assert {total["role"] for total in shown["llm"]} >= {"planner", "coder"}
        assert all(total["dollars"] is None for total in shown["llm"])
        assert sum(total["calls"] for total in shown["llm"]) == len(server.seen) > asked
        bodies = [seen.prompt for seen in server.seen]
        assert len(set(bodies)) == len(bodies), "a call was paid twice"

"""A small region, and a scripted model that plays planner, coder and judge through the wire."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from agentforge.agents import Hardware
from agentforge.llm import Request, Response
from agentforge.schema import (
    Bottleneck,
    CallSite,
    Context,
    Definition,
    DType,
    Profile,
    TensorInput,
    Workload,
)
from tests.llm.server import Reply

ROWS, COLS = 1024, 2051

REFERENCE = f"""\
import torch


class Model(torch.nn.Module):
    def forward(self, x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def get_inputs():
    return [torch.randn({ROWS}, {COLS}), torch.rand({COLS})]


def get_init_inputs():
    return []
"""

HARDWARE = Hardware("test machine", "x86-64", 4, 2e10, 1e11, (32768, 1048576, 33554432))


def bottleneck(rows: int = ROWS, cols: int = COLS) -> Bottleneck:
    reference = REFERENCE.replace(str(ROWS), str(rows)).replace(str(COLS), str(cols))
    definition = Definition(name="rms_norm_test", op_type="norm", reference=reference)
    inputs = (
        TensorInput(name="x", shape=(rows, cols), dtype=DType.FLOAT32),
        TensorInput(name="weight", shape=(cols,), dtype=DType.FLOAT32),
    )
    site = CallSite(
        name="norm/rms_norm", nodes=("mul",), operators=("aten.pow.Tensor_Scalar", "aten.mul.Tensor"),
        time_s=4e-3, bytes=2.0 * rows * cols * 4, flops=4.0 * rows * cols, sol_s=1e-4,
    )  # fmt: skip
    return Bottleneck(
        definition=definition,
        workloads=(Workload(name=f"{rows}x{cols}", inputs=inputs),),
        call_sites=(site,),
        time_s=4e-3,
        share=0.8,
        sol_s=1e-4,
        bound="memory",
        gain_s=3e-3,
        speedup_limit=3.0,
    )


def profile(rows: int = ROWS, cols: int = COLS) -> Profile:
    b = bottleneck(rows, cols)
    return Profile(
        target="target", device="null device", architecture="x86-64", total_s=5e-3, traces=3,
        attributed=1.0, call_sites=b.call_sites, bottlenecks=(b,),
    )  # fmt: skip


CONTEXT = Context(op_type="norm", shape_class="dram/many-rows")


def said(body: dict[str, Any]) -> tuple[str, str]:
    """System prompt and last message, whichever wire they came by."""
    if "system" in body:
        return "\n".join(p["text"] for p in body["system"]), body["messages"][-1]["content"]
    if "instructions" in body:
        return body["instructions"], body["input"][-1]["content"]
    return body["messages"][0]["content"], body["messages"][-1]["content"]


def first(body: dict[str, Any]) -> str:
    """The question that the conversation began with."""
    turns = body.get("input") or body["messages"]
    return str(next(turn["content"] for turn in turns if turn["role"] == "user"))


def role_of(body: dict[str, Any]) -> str:
    system = said(body)[0]
    signs = {
        "You plan the": "planner", "You write fast": "coder", "You judge one": "judge",
        "You improve the": "editor",
    }  # fmt: skip
    return next(role for sign, role in signs.items() if sign in system)


def measured(prompt: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} = (\S+)$", prompt, re.MULTILINE)
    assert found is not None, f"{name} is not in the prompt:\n{prompt}"
    return float(found[1])


class Scripted:
    """Says what it is given, and keeps what it was asked."""

    spec, model, endpoint = "anthropic:claude-haiku-4-5", "scripted", "nowhere"

    def __init__(self, *answers: str | Response | Exception) -> None:
        self.answers = deque(answers)
        self.asked: list[Request] = []

    def complete(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Response) else Response(text=answer, model="scripted-1")

    @property
    def prompt(self) -> str:
        return self.asked[-1].messages[-1].text


@dataclass
class Script:
    """Codes the given answers in order; plans and judges sensibly, by the values that it is shown."""

    codes: deque[str]
    strategies: deque[str] = field(default_factory=deque)
    verdict: str = "optimize"
    """What its judge says of a right answer."""
    prompts: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, body: dict[str, Any]) -> Reply:
        role, prompt = role_of(body), said(body)[1]
        self.prompts.append((role, prompt))
        if prompt.startswith("Your answer cannot be used"):
            prompt = first(body)
        return getattr(self, f"_{role}")(prompt)

    def of(self, role: str) -> list[str]:
        return [prompt for who, prompt in self.prompts if who == role]

    def _planner(self, prompt: str) -> Reply:
        if "\nRegions, by name" in prompt:
            return self._whole(prompt)
        strategy = self.strategies.popleft() if self.strategies else "one-pass-rows"
        answer = {
            "bottleneck": "memory",
            "diagnosis": "eager moves each row several times",
            "evidence": [{"metric": "share", "value": measured(prompt, "share")}],
            "strategy": strategy,
            "steps": ["one pass over each row", "threads over rows"],
            "parameters": [],
            "expected_speedup": 2.0,
            "risks": [],
        }
        return Reply("```json\n" + json.dumps(answer) + "\n```")

    def _whole(self, prompt: str) -> Reply:
        """The last region first."""
        listed = prompt.partition("Possible moves")[0]
        names = re.findall(r"^- `([^`]+)`:", listed, re.MULTILINE)
        regions = [
            {"name": name, "fuse": True, "expected_speedup": 1.5, "why": "it moves too much"}
            for name in reversed(names)
        ]
        cited = {"metric": "total_s", "value": measured(prompt, "total_s")}
        return Reply(json.dumps({"diagnosis": "norms", "evidence": [cited], "regions": regions}))

    def _coder(self, prompt: str) -> Reply:
        return Reply(self.codes.popleft()) if self.codes else Reply("I have no further idea.")

    def _judge(self, prompt: str) -> Reply:
        if "The referee says" in prompt:
            answer: dict[str, Any] = {
                "cause": "see the message",
                "fix": "mend it",
                "hopeless": False,
                "evidence": [],
            }
        else:
            cited = {"metric": "latency_s", "value": measured(prompt, "latency_s")}
            answer = {
                "verdict": self.verdict,
                "bottleneck": "one thread",
                "evidence": [cited],
                "change": "use all threads and vector instructions",
                "expected_gain": 2.0,
            }
        return Reply(json.dumps(answer))

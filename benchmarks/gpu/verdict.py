"""How long the referee takes from the source of a CUDA kernel to a verdict, its baselines being warm."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.harness import Referee
from agentforge.languages.library import kernel_templates
from agentforge.schema import BuildSpec, Definition, DType, Solution, SourceFile, TensorInput, Workload

LIMIT_S = 3.0
_REPEATS = 3
_REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)

def get_inputs():
    return [torch.randn({size}, {size})]

def get_init_inputs():
    return []
"""
_CLASS = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return softmax(x)
"""


def _solution(definition: Definition, number: int) -> Solution:
    """Our softmax; every number is another source, which no cache knows."""
    template = kernel_templates()["cuda-softmax"]
    entry = SourceFile(path="model_new.py", content=template.render() + _CLASS)
    files = [f.model_copy(update={"content": f"{f.content}\n// {number}\n"}) for f in template.files]
    return Solution(
        name=f"softmax-{number}",
        definition=definition.hash,
        author="playbook",
        spec=BuildSpec(language="cuda"),
        sources=(entry, *files),
    )


def measure(device: str = "cuda", size: int = 4096) -> dict[str, Any]:
    """Seconds of each verdict at level quick, the first of which also starts the baselines."""
    definition = Definition(name="softmax", op_type="softmax", reference=_REFERENCE.format(size=size))
    workload = Workload(
        name=f"{size}x{size}", inputs=(TensorInput(name="x", shape=(size, size), dtype=DType.FLOAT32),)
    )
    found: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as cache,
        Referee(RefereeSettings(), device=detect(device), cache=Path(cache)) as referee,
    ):
        for number in range(_REPEATS + 1):
            begin = time.perf_counter()
            verdict = referee.evaluate(definition, [workload], _solution(definition, number))
            found.append(
                {
                    "seconds": time.perf_counter() - begin,
                    "status": verdict.status.value,
                    "reasons": verdict.reasons,
                    "stages": {s.name: s.seconds for s in verdict.stages},
                    "speedup": {
                        k: v.point
                        for k, v in (verdict.performance.speedup.items() if verdict.performance else ())
                    },
                }
            )
    warm = sorted(v["seconds"] for v in found[1:])
    right = all(v["status"] == "PASSED" for v in found)
    return {"ok": right and warm[0] <= LIMIT_S, "limit_s": LIMIT_S, "warm_s": warm, "verdicts": found}

"""Time from the source of a CUDA kernel to a verdict, with warm baselines."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentforge.codegen.library import kernel_templates
from agentforge.config import RefereeSettings, load_settings
from agentforge.ladder import find_device
from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import BuildSpec, Definition, DType, Solution, SourceFile, TensorInput, Workload

Keep = Callable[[dict[str, Any]], None]
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
    """The shipped softmax; every number gives a new source that is in no cache."""
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


def measure(keep: Keep, device: str = "cuda", size: int = 4096) -> dict[str, Any]:
    """Seconds of each verdict at level quick; the first one also starts the baselines.

    Args:
        keep: writes the results so far.
    """
    definition = Definition(name="softmax", op_type="softmax", reference=_REFERENCE.format(size=size))
    workload = Workload(
        name=f"{size}x{size}", inputs=(TensorInput(name="x", shape=(size, size), dtype=DType.FLOAT32),)
    )
    where = find_device(device, load_settings([]).cache)
    found: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as cache,
        Referee(RefereeSettings(), device=where, cache=Path(cache)) as referee,
    ):
        for number in range(_REPEATS + 1):
            begin = time.perf_counter()
            verdict = referee.evaluate(
                EvaluationRequest(definition, [workload], _solution(definition, number))
            )
            measured = verdict.performance
            found.append(
                {
                    "seconds": time.perf_counter() - begin,
                    "status": verdict.status.value,
                    "reasons": verdict.reasons,
                    "stages": {s.name: s.seconds for s in verdict.stages},
                    "speedup": {k: v.point for k, v in measured.speedup.items()} if measured else {},
                    "call_s": {"solution": measured.latency_s, **measured.baseline_s} if measured else {},
                }
            )
            keep({"verdicts": found})
    warm = sorted(v["seconds"] for v in found[1:])
    right = all(v["status"] == "PASSED" for v in found)
    return {"ok": right and warm[0] <= LIMIT_S, "limit_s": LIMIT_S, "warm_s": warm, "verdicts": found}

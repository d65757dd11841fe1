"""What tests of the referee share: problems and solutions as text, a referee that hardly times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.referee import EvaluationRequest, Referee
from agentforge.referee.checks import CheckContext
from agentforge.referee.result import Findings
from agentforge.referee.timing.exclusive_run import one_thread
from agentforge.schema import (
    Definition,
    Evaluation,
    Level,
    Solution,
    StageResult,
    Workload,
)
from agentforge.testing.language import make_solution

DEVICE = DeviceSpec(kind="cpu", name="test", architecture="test")
WORKLOAD = Workload(name="reference", source="reference")


def problem(forward: str, inputs: str, init: str = "pass", **fields: Any) -> Definition:
    """A definition whose model runs `forward` on what `inputs` draws; `init` builds its weights."""
    names = ", ".join(f"x{n}" if n else "x" for n in range(inputs.count("torch.r") or 1))
    body = "\n".join("        " + line for line in forward.strip().splitlines())
    reference = f"""
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
{body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
    return Definition(name="problem", op_type="other", reference=reference, **fields)


def solution_of(definition: Definition, *changes: tuple[str, str]) -> Solution:
    """The reference as a solution, with parts of its text replaced."""
    source = definition.reference.replace("Model(", "ModelNew(")
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return make_solution("python", {"model_new.py": source}, definition=definition.hash)


def quick_referee(cache: Path) -> Referee:
    """One thread, no compiled baseline, hardly any timing, all the time that the task check wants."""
    settings = RefereeSettings(
        threads=1,
        compile_baseline=False,
        quick_blocks=2,
        quick_seconds=0.1,
        full_blocks=4,
        full_seconds=0.1,
        task_seconds=60,
    )
    return Referee(settings, device=DEVICE, cache=cache)


def judge(
    referee: Referee, definition: Definition, *changes: tuple[str, str], level: Level = Level.QUICK
) -> Evaluation:
    """The verdict on the reference with parts of its text replaced."""
    solution = solution_of(definition, *changes)
    return referee.evaluate(EvaluationRequest(definition, [WORKLOAD], solution, level=level))


@contextmanager
def examined(referee: Referee, definition: Definition, *changes: tuple[str, str]) -> Iterator[CheckContext]:
    """A started candidate, for a stage of level full to be run alone."""
    solution = solution_of(definition, *changes)
    with one_thread():
        baselines = referee.baselines(definition, [WORKLOAD])
        prepared = baselines.prepared[0]
        baselines.enter(prepared)
        builder = referee._candidate_builder()
        folder, _ = builder.build(solution)
        candidate = builder.start(solution, folder, baselines, prepared)
        try:
            request = EvaluationRequest(definition, [WORKLOAD], solution, Level.FULL)
            context = CheckContext(request, referee.settings, DEVICE, builder, Findings())
            context.folder, context.baselines, context.prepared = folder, baselines, prepared
            context.candidate = candidate.client
            yield context
        finally:
            candidate.close()


def stage(evaluation: Evaluation, name: str) -> StageResult:
    """The first stage of that name."""
    return next(s for s in evaluation.stages if s.name == name)

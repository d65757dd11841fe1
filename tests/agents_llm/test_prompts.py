"""Each prompt is there and renders; the worked examples are right by the referee's word."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError

from agentforge.agents.llm import prompts
from agentforge.agents.llm.blocks import sources
from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.harness import Referee
from agentforge.languages import languages
from agentforge.resources import resource
from agentforge.schema import BuildSpec, Definition, DType, Level, Solution, Workload

from .scene import CONTEXT, HARDWARE, bottleneck

ALL = sorted(str(path.relative_to(resource("prompts"))) for path in resource("prompts").rglob("*.j2"))


@pytest.mark.parametrize("template", ALL)
def test_templates_parse(template: str) -> None:
    environment = Environment(loader=FileSystemLoader(resource("prompts")), undefined=StrictUndefined)
    environment.get_template(template)


def test_a_name_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        prompts.render("coder/write.md.j2")


def test_the_problem_is_the_same_whatever_was_tried() -> None:
    from agentforge.agents import Past, Task

    past = Past("run/0001", None, None, None, None, None, error="x")
    first = prompts.problem(Task(bottleneck(), HARDWARE, CONTEXT, (), ("cpp",), ()))
    assert first == prompts.problem(Task(bottleneck(), HARDWARE, CONTEXT, (), ("cpp",), (past,), "run/0002"))
    assert "x: float32[1024, 2051]" in first
    assert "must be right" not in first


def test_other_dtypes_of_the_contract_are_told() -> None:
    from agentforge.agents import Task

    usual = bottleneck()
    asked = usual.definition.model_copy(update={"dtypes": (DType.BFLOAT16, DType.FLOAT16)})
    task = Task(usual.model_copy(update={"definition": asked}), HARDWARE, CONTEXT, (), ("cpp",), ())
    assert "inputs of these dtypes too: bfloat16, float16." in prompts.problem(task)


FORWARDS = {
    "rows": (
        "x, residual, weight, bias",
        "torch.nn.functional.layer_norm(x + residual, (x.shape[-1],), weight, bias, 1e-5)",
        "torch.randn(64, 515), torch.randn(64, 515), torch.rand(515), torch.rand(515)",
    ),
    "softmax": (
        "scores, mask",
        "torch.softmax(scores.masked_fill(mask, -1e9), dim=-1)",
        "torch.randn(4, 16, 77), torch.rand(4, 16, 77) < 0.3",
    ),
    "pointwise": (
        "x, bias, residual",
        "torch.nn.functional.gelu(x + bias) + residual",
        "torch.randn(64, 515), torch.rand(515), torch.randn(64, 515)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["cpp", "triton", "cuda"])
def test_worked_examples_are_right(tmp_path: Path, language: str) -> None:
    if not languages.create(language).available().ok:
        pytest.skip(f"{language} cannot be built here")
    settings = RefereeSettings(
        quick_seconds=0.1, random_seeds=1, compile_baseline=False, quick_blocks=2, task_seconds=0
    )
    with Referee(settings, device=detect("cpu"), cache=tmp_path) as referee:
        for category, (names, body, inputs) in FORWARDS.items():
            reference = (
                f"import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, {names}):\n"
                f"        return {body}\n\n\ndef get_inputs():\n    return [{inputs}]\n\n\n"
                "def get_init_inputs():\n    return []\n"
            )
            definition = Definition(name=category, op_type="other", reference=reference)
            text = prompts.render(f"coder/examples/{language}/{category}.md.j2")
            solution = Solution(
                name=category, definition=definition.hash, author="person", spec=BuildSpec(language=language),
                sources=sources(text, None),
            )  # fmt: skip
            workload = Workload(name="w", source="reference")
            verdict = referee.evaluate(definition, (workload,), solution, level=Level.QUICK)
            assert verdict.passed, (category, verdict.reasons)

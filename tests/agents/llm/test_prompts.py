"""Each prompt is there and renders; the worked examples are right by the referee's word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError

from agentforge.agents.llm import prompts
from agentforge.agents.llm.edits import sources
from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.languages import languages
from agentforge.llm import Message, Request
from agentforge.referee import EvaluationRequest, Referee
from agentforge.resources import resource
from agentforge.schema import BuildSpec, Definition, DType, Level, Solution, Workload, WorkPolicy

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
    assert "8 times the reference's own error against float64, and always 16 units" in first
    assert "must be right" not in first


def test_cores_caches_and_vector_width_are_shown() -> None:
    from agentforge.agents import Task

    machine = replace(HARDWARE, cores=2, vector_bits=512)
    text = prompts.problem(Task(bottleneck(), machine, CONTEXT, (), ("cpp",), ()))
    assert "4 threads on 2 cores, vector registers of 512 bits." in text
    assert "data caches L1 to L3 32768, 1048576, 33554432 bytes" in text


def test_whose_code_may_do_the_work_is_told_in_words() -> None:
    from agentforge.agents import Task

    usual, said = bottleneck(), set[str]()
    for policy in get_args(WorkPolicy):
        changed = usual.model_copy(
            update={"definition": usual.definition.model_copy(update={"policy": policy})}
        )
        text = prompts.problem(Task(changed, HARDWARE, CONTEXT, (), ("cpp",), ()))
        assert policy not in text
        said.add(text)
    assert len(said) == 3


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
        "torch.randn(8, 515), torch.randn(8, 515), torch.rand(515), torch.rand(515)",
    ),
    "softmax": (
        "scores, mask",
        "torch.softmax(scores.masked_fill(mask, -1e9), dim=-1)",
        "torch.randn(2, 4, 77), torch.rand(2, 4, 77) < 0.3",
    ),
    "scan": (
        "x, mask",
        "torch.cumsum(x * mask, dim=-1)",
        "torch.randn(4, 1515), torch.rand(4, 1515) < 0.7",
    ),
    "pointwise": (
        "x, bias, residual",
        "torch.nn.functional.gelu(x + bias) + residual",
        "torch.randn(8, 515), torch.rand(515), torch.randn(8, 515)",
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
            verdict = referee.evaluate(
                EvaluationRequest(definition, (workload,), solution, level=Level.QUICK)
            )
            assert verdict.passed, (category, verdict.reasons)


def test_notes_about_the_measurement_do_not_change_what_a_recording_matches() -> None:
    from agentforge.llm.cassette import _masked

    def question(reasons: tuple[str, ...]) -> str:
        text = prompts.render(
            "judge/optimize.md.j2",
            plan=SimpleNamespace(strategy="s", diagnosis="d", expected_speedup=2.0),
            files=(),
            evaluation=SimpleNamespace(reasons=reasons, verified=not reasons),
            interval=SimpleNamespace(low=1.4, high=1.6), promoted=None, steady=not reasons, calls=1,
            limit="memory-bound" if reasons else None,
            speedup=1.5, before=None, facts=["latency_s = 0.5"], findings=(), lessons=(),
        )  # fmt: skip
        return _masked(Request(messages=(Message(role="user", text=text),)))

    assert question(()) == question(("the control drifted", "the clock changed"))


def test_cards_come_last_and_do_not_change_what_a_recording_matches() -> None:
    from agentforge.agents import Task
    from agentforge.knowledge import Advisor
    from agentforge.llm.cassette import _masked
    from agentforge.schema import Advice, CardKind

    card = Advice(
        id="no-trick", kind=CardKind.AVOID, title="No trick", summary="It costs.", source="A paper, 2020"
    )
    task = Task(bottleneck(), HARDWARE, CONTEXT, (), ("cpp",))
    advised = replace(task, advise=Advisor([card], CONTEXT, ("cpp",), "cpu", 600))

    def asked(task: Task, *kinds: CardKind) -> str:
        return prompts.with_advice("Plan a solution.", task, kinds, None, "")

    assert asked(task, CardKind.AVOID) == asked(advised, CardKind.SYMPTOM) == "Plan a solution."
    text = asked(advised, CardKind.AVOID)
    assert text.startswith("Plan a solution.\n")
    assert "- avoid `no-trick`: No trick. It costs." in text

    def mask(text: str) -> str:
        return _masked(Request(system=("s",), messages=(Message(role="user", text=text),)))

    assert mask(text) == mask("Plan a solution.")

"""A coder's first prompt has both baselines, the tolerance and the playbook's own kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentforge.agents import Task
from agentforge.agents.llm import prompts
from agentforge.agents.llm.yardstick import MOST_CODE, Yardstick, yardstick
from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.knowledge import KnowledgeBase
from agentforge.llm import Message, Request
from agentforge.llm.cassette import _masked
from agentforge.referee import EvaluationRequest, Referee
from agentforge.resources import resource
from agentforge.schema import Correctness, Evaluation, Interval, Level, Plan, Solution
from agentforge.store import Store

from .scene import CONTEXT, HARDWARE, bottleneck
from .test_roles import evaluation


@pytest.fixture
def task(tmp_path: Path) -> Task:
    b = bottleneck(64, 515)
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        known = KnowledgeBase(store, (resource("knowledge_base", "playbook"),))
        strategies = known.retrieve(CONTEXT, ("cpp",), "cpu")
    return Task(b, HARDWARE, CONTEXT, strategies, ("cpp",), ())


def prompt(found: Yardstick) -> str:
    plan = Plan(strategy="rows", diagnosis="slow")
    return prompts.render(
        "coder/write.md.j2", plan=plan, language="cpp", contrast=[], yardstick=found, simulated=""
    )


def test_the_playbooks_kernel_is_judged_and_shown_with_both_baselines(task: Task) -> None:
    asked: list[Solution] = []
    error = Correctness(
        max_absolute_error=0, max_relative_error=0, tolerance=3.3e-6, reference_error=4e-7, checked_calls=1
    )

    def check(solution: Solution, level: Level) -> Evaluation:
        asked.append(solution)
        assert level is Level.QUICK
        found = evaluation(speed=2.0, correctness=error)
        assert found.performance is not None
        both = {
            "baseline_s": {"compile": 1e-3, "eager": 2e-3},
            "speedup": {"compile": Interval(point=1.0, low=0.9, high=1.1), **found.performance.speedup},
        }
        return found.model_copy(update={"performance": found.performance.model_copy(update=both)})

    text = prompt(yardstick(replace(task, measure=check)))
    assert [s.author for s in asked] == ["playbook"]
    assert "takes 2000.0 us in eager PyTorch, 1000.0 us in torch.compile" in text
    assert "may be 3.3e-06 (the reference's own against float64 is 4e-07)" in text
    assert "takes 1000.0 us, 1x over the best baseline. Write a faster one." in text
    assert 'extern "C" void kernel0' in text
    assert "inline" not in text, "the playbook's header is not shown"


def test_if_the_playbooks_kernel_is_wrong_the_reference_is_the_yardstick(task: Task) -> None:
    def check(solution: Solution, level: Level) -> Evaluation:
        return evaluation("PASSED" if solution.author == "reference" else "INCORRECT_NUMERICAL", speed=1.0)

    found = yardstick(replace(task, measure=check))
    assert (found.kernel, found.evaluation is not None) == (None, True)
    assert "2000.0 us in eager" in prompt(found)
    assert "kernel0" not in prompt(found)


def test_without_a_referee_the_profile_gives_eagers_time(task: Task) -> None:
    text = prompt(yardstick(task))
    assert "4000.0 us in eager PyTorch, as profiled" in text
    assert "kernel0" in text


def test_a_long_kernel_is_timed_and_not_shown(task: Task) -> None:
    found = yardstick(task)
    assert found.kernel is not None
    files = found.kernel.sources
    long = files[0].model_copy(update={"content": files[0].content + "#" * MOST_CODE})
    text = prompt(replace(found, kernel=found.kernel.model_copy(update={"sources": (long, *files[1:])})))
    assert "kernel0" not in text
    assert "Write a faster one." in text


def test_what_was_measured_does_not_change_what_a_recording_matches(task: Task) -> None:
    def asked(found: Yardstick) -> str:
        return _masked(Request(messages=(Message(role="user", text=prompt(found)),)))

    assert asked(Yardstick(1e-3)) == asked(replace(yardstick(task), evaluation=evaluation()))


@pytest.mark.slow
def test_the_referee_accepts_kernel_and_reference(task: Task, tmp_path: Path) -> None:
    b = task.bottleneck
    settings = RefereeSettings(quick_seconds=0.2, random_seeds=1, compile_baseline=False, task_seconds=0)
    with Referee(settings, device=detect("cpu"), cache=tmp_path) as referee:

        def check(solution: Solution, level: Level) -> Evaluation:
            return referee.evaluate(EvaluationRequest(b.definition, b.workloads, solution, level=level))

        found = yardstick(replace(task, measure=check))
        plain = yardstick(replace(task, measure=check, strategies=()))
    for each in (found, plain):
        assert each.evaluation is not None
        assert each.evaluation.passed
        assert each.evaluation.correctness is not None
    assert found.kernel is not None
    assert plain.kernel is None


def test_a_gpu_has_multiprocessors() -> None:
    gpu = replace(HARDWARE, device="NVIDIA H100", architecture="sm_90", threads=132)
    text = prompts.render("author/write.md.j2", intent="add", hardware=gpu, earlier="", objection="")
    assert "NVIDIA H100, 132 multiprocessors," in text
    text = prompts.render("author/write.md.j2", intent="add", hardware=HARDWARE, earlier="", objection="")
    assert f"{HARDWARE.threads} threads," in text

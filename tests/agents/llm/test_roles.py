"""Planner, coder and judge over a model whose answers a test writes."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentforge.agents import CODER_FAILED, PLANNER_FAILED, Aim, NothingLeft, Past, Task
from agentforge.agents.llm import LLMCoder, LLMJudge, LLMPlanner
from agentforge.agents.llm.history import Shown, best_verified, closed_strategies, fingerprint
from agentforge.agents.llm.prompts import example, render
from agentforge.agents.llm.role import Role
from agentforge.config import LLMSettings
from agentforge.llm import CallFailed, Ledger, Response, Tokens, ToolCall
from agentforge.schema import (
    Bound,
    Budget,
    BuildSpec,
    Citation,
    Classification,
    Correctness,
    Critique,
    Diagnostic,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Finding,
    Level,
    Metric,
    Plan,
    Reason,
    ReasonCode,
    ResourceUsage,
    Solution,
    SourceFile,
    Strategy,
    StrategyRecord,
)
from agentforge.search.cells import CPU_DIMENSIONS, GPU_DIMENSIONS, LEVELS
from agentforge.store import Store
from tests.store import nouns

from .kernels import MODEL, RIGHT_AND_FAST
from .scene import CONTEXT, HARDWARE, Scripted, bottleneck


@pytest.fixture
def model() -> Scripted:
    return Scripted()


@pytest.fixture
def planner(model: Scripted, store: Store) -> LLMPlanner:
    return LLMPlanner(Role("planner", model, Ledger(store, "run"), LLMSettings()))


@pytest.fixture
def coder(model: Scripted, store: Store) -> LLMCoder:
    return LLMCoder(Role("coder", model, Ledger(store, "run"), LLMSettings()))


@pytest.fixture
def judge(model: Scripted, store: Store) -> LLMJudge:
    return LLMJudge(Role("judge", model, Ledger(store, "run"), LLMSettings()))


def evaluation(status: str = "PASSED", speed: float = 2.0, **changes: Any) -> Evaluation:
    measured = nouns.performance(speed, 0.01, latency_s=2e-3 / speed, baseline_s={"eager": 2e-3}, sol_s=1e-4)
    fields = {
        "level": Level.QUICK,
        "status": EvaluationStatus(status),
        "evidence": Evidence.UNVERIFIED,
        "performance": measured if status == "PASSED" else None,
    }
    return nouns.evaluation(**{**fields, **changes})


PLAN = Plan(strategy="rows", diagnosis="slow", steps=("go",), expected_speedup=3.0)


def solution(coder: LLMCoder, model: Scripted, text: str = RIGHT_AND_FAST + MODEL) -> Any:
    model.answers.append(text)
    return coder.code(task(), PLAN, None).solution


def task(*past: Past, attempt: str = "run/0009", strategies: tuple[Strategy, ...] = ()) -> Task:
    return Task(bottleneck(), HARDWARE, CONTEXT, strategies, ("cpp",), past, attempt)


def failed(number: int, status: str = "COMPILE_ERROR", said: str = "boom", **changes: Any) -> Past:
    result = evaluation(status, diagnostics=(Diagnostic(message=said, file="kernel.cpp", line=number),))
    fields = {"parent": None, "plan": PLAN, "solution": None, "evaluation": result, "critique": None}
    return Past(id=f"run/{number:04d}", **{**fields, **changes})


def plan_answer(**changes: Any) -> str:
    answer = {
        "bottleneck": "memory",
        "diagnosis": "moves too much",
        "evidence": [{"metric": "share", "value": 0.8}],
        "strategy": "Fuse Rows!",
        "steps": ["fuse"],
        "parameters": [],
        "expected_speedup": 2.5,
        "risks": [],
    }
    return json.dumps({**answer, **changes})


# ------------------------------------------------------------------ planner


def test_a_plan_with_cited_values(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.append(plan_answer())
    plan = planner.plan(task(), None)
    assert plan is not None
    assert plan.strategy == "fuse-rows"
    assert plan.evidence == (Citation(metric="share", value=0.8),)
    assert plan.expected_speedup == 2.5
    assert plan.author == "anthropic:claude-haiku-4-5"
    assert "share = 0.8" in model.prompt
    assert "torch.rsqrt" in model.asked[0].system[0]


def test_the_strategies_parameters_are_those_of_its_card(planner: LLMPlanner, model: Scripted) -> None:
    card = Strategy(
        id="tile",
        title="Tile",
        summary="s",
        template="t.j2",
        parameters={"size": (64, 128), "on": (False, True)},
    )
    chosen = [{"name": "size", "value": "128"}, {"name": "on", "value": "maybe"}, {"name": "x", "value": 1}]
    model.answers.append(plan_answer(strategy="tile", parameters=chosen))
    plan = planner.plan(task(strategies=(card,)), None)
    assert plan is not None
    assert plan.parameters == {"size": 128}, "only what the planner chose"
    assert plan.template == "t.j2"
    assert "`tile`: Tile" in model.prompt


@pytest.mark.parametrize(
    ("first", "says"),
    [
        ("no json", "no JSON object"),
        ("", "empty"),
        (Response(text="{", model="m", stop="length"), "cut off"),
        (plan_answer(expected_speedup=-1), "expected_speedup"),
        (plan_answer(evidence=[{"metric": "l2_hit_rate", "value": 0.5}]), "l2_hit_rate"),
        (plan_answer(evidence=[{"metric": "share", "value": 0.5}]), "measured as 0.8"),
    ],
)
def test_a_bad_plan_is_sent_back(
    planner: LLMPlanner, model: Scripted, first: str | Response, says: str
) -> None:
    model.answers.extend([first, plan_answer()])
    assert planner.plan(task(), None) is not None
    assert len(model.asked) == 2
    assert says in model.prompt


def test_an_invented_value_that_stays_is_left_out(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.extend([plan_answer(evidence=[{"metric": "share", "value": 0.1}])] * 2)
    plan = planner.plan(task(), None)
    assert plan is not None
    assert len(model.asked) == 2
    assert plan.evidence == ()


def test_answers_that_never_do_are_a_failed_call(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.extend(["no"] * 9)
    with pytest.raises(CallFailed, match="3 answers"):
        planner.plan(task(), None)


def test_answers_that_are_always_cut_off_say_which_setting_helps(
    planner: LLMPlanner, model: Scripted
) -> None:
    model.answers.extend([Response(text="{", model="m", stop="length")] * 3)
    with pytest.raises(CallFailed, match=r"raise llm\.max_tokens"):
        planner.plan(task(), None)
    assert not any("llm.max_tokens" in request.messages[-1].text for request in model.asked)


def test_a_call_of_a_tool_that_was_not_offered_is_sent_back(planner: LLMPlanner, model: Scripted) -> None:
    call = ToolCall(id="1", name="search", arguments="{}")
    model.answers.extend([Response(text="", model="m", calls=(call,)), plan_answer()])
    assert planner.plan(task(), None) is not None
    assert not any(message.calls for message in model.asked[1].messages)


def test_after_two_equal_failures_another_strategy_must_come(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.extend([plan_answer(strategy="rows"), plan_answer(strategy="other")])
    plan = planner.plan(task(failed(1), failed(2)), None)
    assert plan is not None
    assert plan.strategy == "other"
    assert "`rows`: it failed 2 times in the same way" in model.asked[0].messages[0].text
    assert "strategy 'rows' is closed" in model.prompt


def unwritten(number: int, error: str, solution: Solution | None = None) -> Past:
    return failed(number, evaluation=None, error=error, solution=solution)


def test_what_says_nothing_of_a_strategy_does_not_close_it(coder: LLMCoder, model: Scripted) -> None:
    wrote = solution(coder, model)
    outage, twin = f"{CODER_FAILED}: openai: rate limit", "its machine code is that of attempt 1"
    assert closed_strategies(task(unwritten(1, outage), unwritten(2, outage))) == {}
    assert closed_strategies(task(unwritten(1, twin, wrote), unwritten(2, twin, wrote))) == {}
    assert [*closed_strategies(task(unwritten(1, "no template"), unwritten(2, "no template")))] == ["rows"]


def test_failures_that_were_repaired_do_not_close_a_strategy() -> None:
    first, second = failed(1), failed(3)
    repairs = [failed(n + 1, parent=f"run/{n:04d}", evaluation=evaluation()) for n in (1, 3)]
    assert closed_strategies(task(first, repairs[0], second, repairs[1])) == {}
    assert [*closed_strategies(task(first, repairs[0], second, failed(4, parent=second.id)))] == ["rows"]
    other = replace(repairs[1], plan=PLAN.model_copy(update={"strategy": "other"}))
    assert [*closed_strategies(task(failed(2), second, other))] == ["rows"], "that repaired nothing"


def test_a_solution_of_a_closed_strategy_is_not_built_upon(planner: LLMPlanner, model: Scripted) -> None:
    parent = failed(1, evaluation=evaluation(), critique=Critique(kind="optimize", change="unroll"))
    asked = task(parent, failed(2, parent=parent.id), failed(3, parent=parent.id))
    assert planner.plan(asked, parent) is None
    assert not model.asked


def test_strategies_in_any_script_are_told_apart(planner: LLMPlanner, model: Scripted) -> None:
    names = {
        "使用 AVX 向量化": "使用-avx-向量化",
        "使用 AVX 预取": "使用-avx-预取",
        "Fuse_Rows!": "fuse-rows",
    }
    model.answers.extend(plan_answer(strategy=name) for name in (*names, "🚀"))
    plans = [planner.plan(task(attempt=f"run/{number:04d}"), None) for number in range(4)]
    assert [plan and plan.strategy for plan in plans] == [*names.values(), "new-technique"]


def test_a_repair_needs_no_call(planner: LLMPlanner, model: Scripted) -> None:
    critique = Critique(kind="repair", error_class="compile", cause="no semicolon", change="add it")
    plan = planner.plan(task(failed(1)), failed(1, critique=critique))
    assert plan is not None
    assert (plan.strategy, plan.diagnosis, plan.usage.tokens_in) == ("rows", PLAN.diagnosis, 0)
    assert plan.steps == (*PLAN.steps, "Repair attempt #1: add it")
    assert plan.change == "no semicolon: add it"
    assert model.asked == []


def test_the_judges_improvement_is_the_next_plan_without_a_call(planner: LLMPlanner, model: Scripted) -> None:
    critique = Critique(
        kind="optimize", cause="strided", change="swap the loops", expected_gain=0.5, author="m"
    )
    passed = failed(1, evaluation=evaluation(speed=2.0), critique=critique)
    plan = planner.plan(task(passed), passed)
    assert plan is not None
    assert plan.steps == (*PLAN.steps, "Improve attempt #1: swap the loops")
    assert (plan.expected_speedup, plan.strategy) == (pytest.approx(3.0), "rows")
    assert model.asked == []
    model.answers.append(plan_answer())
    assert planner.plan(task(passed, failed(2, parent=passed.id)), passed) is not None
    assert len(model.asked) == 1, "a change is carried out once"
    assert "carries it out" not in model.prompt
    model.answers.append(plan_answer())
    assert planner.plan(task(passed, failed(2, parent=passed.id, plan=plan, evaluation=None)), passed)
    assert "Proposed change: swap the loops (#2 carries it out: plan another one)" in model.prompt
    assert '#2 `rows`, last step "Improve attempt #1: swap the loops": 3x expected' in model.prompt


def test_a_failed_call_does_not_use_the_judges_change_up(planner: LLMPlanner, model: Scripted) -> None:
    critique = Critique(
        kind="optimize", cause="strided", change="swap the loops", expected_gain=0.5, author="m"
    )
    passed = failed(1, evaluation=evaluation(speed=2.0), critique=critique)
    plan = planner.plan(task(passed), passed)
    silent = {"parent": passed.id, "evaluation": None}
    unplanned = failed(2, **silent, plan=None, error=f"{PLANNER_FAILED}: too many requests")
    unwritten = failed(3, **silent, plan=plan, error=f"{CODER_FAILED}: too many requests")
    assert planner.plan(task(passed, unplanned, unwritten), passed) == plan
    assert model.asked == []
    refused = failed(4, **silent, plan=plan, error="there is no prompt for solutions in cuda")
    model.answers.append(plan_answer())
    assert planner.plan(task(passed, unwritten, refused), passed) != plan
    assert "(#4 carries it out" in model.prompt


def test_a_planner_may_say_that_nothing_is_left(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.append(plan_answer(nothing_left=True, strategy="", steps=[]))
    with pytest.raises(NothingLeft):
        planner.plan(task(), None)
    assert len(model.asked) == 1


def test_a_plan_without_steps_is_sent_back(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.extend([plan_answer(steps=[]), plan_answer()])
    assert planner.plan(task(), None) is not None
    assert "a plan needs a strategy and its steps" in model.prompt


def test_expected_and_measured_are_shown(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.append(plan_answer())
    planner.plan(task(failed(1, evaluation=evaluation(speed=1.7)), failed(2)), None)
    assert f'#1 `rows`, last step "{PLAN.steps[-1]}": 3x expected, 1.7x measured' in model.prompt
    assert "COMPILE_ERROR boom" in model.prompt
    assert "#1.latency_s = " in model.prompt


# -------------------------------------------------------------------- coder


def test_a_solution_is_written(coder: LLMCoder, model: Scripted) -> None:
    draft = solution(coder, model)
    assert {s.path for s in draft.sources} == {"kernel.cpp", "model_new.py"}
    assert draft.author == "scripted-1"
    assert "worked example" in model.asked[0].system[2]
    assert "LayerNorm" in model.asked[0].system[2]


def test_code_that_cannot_be_used_is_sent_back(coder: LLMCoder, model: Scripted) -> None:
    model.answers.extend(["I would rather not.", "```cpp\nint x;\n```", RIGHT_AND_FAST + MODEL])
    coder.code(task(), PLAN, None)
    assert [len(r.messages) for r in model.asked] == [1, 3, 5]
    assert "model_new.py with `class ModelNew` is missing" in model.prompt


def test_what_fails_in_the_code_is_repaired_in_the_same_conversation(
    coder: LLMCoder, model: Scripted
) -> None:
    error = Diagnostic(message="expected ';'", file="kernel.cpp", line=6)
    found = [evaluation("COMPILE_ERROR", diagnostics=(error,)), evaluation(), evaluation(speed=2.0)]
    tried: list[Any] = []
    levels: list[Level] = []

    def check(solution: Any, level: Level) -> Evaluation:
        tried.append(solution)
        levels.append(level)
        return found.pop(0)

    change = "<<<<<<< SEARCH\nimport torch\n\n=======\nimport torch  # repaired\n\n>>>>>>> REPLACE"
    edit = f"EDIT: model_new.py\n{change}"
    model.answers.extend([RIGHT_AND_FAST + MODEL, edit])
    draft = coder.code(replace(task(), check=check), PLAN, None)
    assert [len(r.messages) for r in model.asked] == [1, 3]
    assert "kernel.cpp:6:0: expected ';'" in model.prompt
    assert "6 | #pragma omp parallel" in model.prompt
    assert draft.solution == tried[1] == tried[2] != tried[0]
    assert levels == [Level.SMOKE, Level.SMOKE, Level.QUICK]
    assert "# repaired" in draft.solution.source("model_new.py")


def test_code_that_still_fails_becomes_the_attempt(coder: LLMCoder, model: Scripted) -> None:
    answers = [RIGHT_AND_FAST + MODEL + f"\nFILE: n.h\n```\n// {i}\n```\n" for i in range(9)]
    model.answers.extend(answers)
    tried: list[Any] = []

    def check(solution: Any, level: Level) -> Evaluation:
        tried.append(solution)
        return evaluation("CRASHED")

    draft = coder.code(replace(task(), check=check), PLAN, None)
    assert (len(model.asked), len(tried)) == (5, 4)
    assert "// 4" in draft.solution.source("n.h")


def test_code_that_fails_is_an_attempt_if_no_further_call_is_possible(
    coder: LLMCoder, model: Scripted
) -> None:
    model.answers.extend([RIGHT_AND_FAST + MODEL, "no", "no", "no"])
    draft = coder.code(replace(task(), check=lambda solution, level: evaluation("CRASHED")), PLAN, None)
    assert draft.solution.source("kernel.cpp")


def test_all_answers_of_an_attempt_are_paid_by_it(
    coder: LLMCoder, judge: LLMJudge, model: Scripted, store: Store
) -> None:
    counted = Tokens(input=100, output=10)
    said = [RIGHT_AND_FAST + MODEL, "no", "no", "no"]
    model.answers.extend(Response(text=text, model="m", tokens=counted) for text in said)
    draft = coder.code(replace(task(), check=lambda solution, level: evaluation("CRASHED")), PLAN, None)
    assert (draft.usage.tokens_in, draft.usage.tokens_out) == (400, 40)
    model.answers.extend([Response(text="no", model="m", tokens=counted), CallFailed("busy", counted)])
    critique = judge.judge(task(), PLAN, draft.solution, evaluation())
    assert critique.author == "supervisor"
    assert (critique.usage.tokens_in, critique.usage.tokens_out) == (200, 20)
    assert sum(call.tokens_in for call in store.calls("run")) == 600


def test_the_header_of_the_playbooks_kernels_can_be_included(
    coder: LLMCoder, model: Scripted, tmp_path: Path
) -> None:
    kernel = """FILE: kernel.cpp
```cpp
#include "vector_math.h"
extern "C" void rms_norm(const float* x, float* out, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = af::maximum(af::exp(x[i]), af::erf(af::tanh(x[i])));
}
```
"""
    draft = solution(coder, model, kernel + MODEL)
    for file in draft.sources:
        (tmp_path / file.path).write_text(file.content)
    flags = ["-std=c++20", "-fopenmp", "-fsyntax-only"]
    subprocess.run(["g++", *flags, str(tmp_path / "kernel.cpp")], check=True)


def test_the_header_is_not_shown_again(coder: LLMCoder, judge: LLMJudge, model: Scripted) -> None:
    kernel = RIGHT_AND_FAST.replace("```cpp\n", '```cpp\n#include "vector_math.h"\n') + MODEL
    first = solution(coder, model, kernel)
    assert len(first.source("vector_math.h")) > 5000
    model.answers.append(optimize(("latency_s", 1e-3)))
    judge.judge(task(), PLAN, first, evaluation())
    prompts = [model.prompt]
    critique = Critique(kind="optimize", cause="x", change="y")
    parent = failed(1, solution=first, evaluation=evaluation(), critique=critique)
    for base in (parent, None):
        model.answers.append(kernel.replace("float sum", "double sum"))
        coder.code(task(parent), PLAN, base)
        prompts.append(model.prompt)
    assert all('#include "vector_math.h"' in prompt and len(prompt) < 5000 for prompt in prompts)


def test_cheating_is_not_discussed(coder: LLMCoder, model: Scripted) -> None:
    model.answers.append(RIGHT_AND_FAST + MODEL)
    coder.code(replace(task(), check=lambda solution, level: evaluation("CHEATING")), PLAN, None)
    assert len(model.asked) == 1


def test_long_answers_that_are_sent_back_do_not_pile_up(coder: LLMCoder, model: Scripted) -> None:
    model.answers.extend(["x" * 50_000, "y" * 50_000, RIGHT_AND_FAST + MODEL])
    coder.code(task(), PLAN, None)
    assert [len(r.messages) for r in model.asked] == [1, 3, 3]
    assert max(r.characters for r in model.asked) < 90_000
    assert "y" * 50_000 in model.asked[2].messages[1].text


CUDA = RIGHT_AND_FAST.replace("```cpp", "```cuda") + MODEL


@pytest.mark.parametrize(("code", "objection"), [(CUDA, ""), (RIGHT_AND_FAST + MODEL, "`FILE: kernel.cu`")])
def test_cuda_is_asked_for_and_taken(coder: LLMCoder, model: Scripted, code: str, objection: str) -> None:
    model.answers.extend([code, CUDA])
    plan = PLAN.model_copy(update={"language": "cuda"})
    draft = coder.code(task(), plan, None)
    assert {s.path for s in draft.solution.sources} == {"kernel.cu", "model_new.py"}
    assert draft.solution.spec.language == "cuda"
    assert objection in model.prompt
    _, rules, example = model.asked[0].system
    assert "agentforge_cuda" in rules
    assert "emulator" in rules
    assert "__shfl_down_sync" in example


def test_without_a_gpu_the_assemblers_word_is_shown(coder: LLMCoder, model: Scripted) -> None:
    model.answers.append(CUDA)
    plan = PLAN.model_copy(update={"language": "cuda"})
    first = coder.code(task(), plan, None).solution
    usages = [
        ResourceUsage(kernel="rms_norm", target=target, registers=40, spill_store_bytes=8, occupancy=0.75)
        for target in ("sm_80", "sm_90")
    ]
    untimed = evaluation(performance=None, resources=tuple(usages))
    critique = Critique(kind="optimize", cause="registers spill", change="shorter live ranges")
    parent = failed(1, solution=first, evaluation=untimed, critique=critique)
    model.answers.append(CUDA.replace("float sum", "double sum"))
    coder.code(task(parent), plan, parent)
    assert "It is right and was not timed" in model.prompt
    assert "rms_norm@sm_90.registers = 40" in model.prompt
    assert "rms_norm@sm_90.spilled_bytes = 8" in model.prompt
    assert "sm_80" not in model.prompt


def test_the_same_code_again_is_sent_back(coder: LLMCoder, model: Scripted) -> None:
    first = solution(coder, model)
    model.answers.extend([RIGHT_AND_FAST + MODEL, RIGHT_AND_FAST.replace("float sum", "double sum") + MODEL])
    again = coder.code(task(failed(1, solution=first)), PLAN, None).solution
    assert again.hash != first.hash


def test_a_bad_tune_comment_is_sent_back(coder: LLMCoder, model: Scripted) -> None:
    bad = RIGHT_AND_FAST.replace('extern "C"', 'constexpr int B = 1;  // @tune B [1, 2]\nextern "C"', 1)
    good = bad.replace("@tune B [1, 2]", "@tune B = 1 in {1, 2}")
    model.answers.extend([bad + MODEL, good + MODEL])
    wrote = coder.code(replace(task(), tunable=True), PLAN, None).solution
    assert "write `// @tune NAME = DEFAULT in {A, B, C}` with whole numbers" in model.prompt
    assert "@tune BLOCK = 128 in {64, 128, 256}" in model.asked[-2].messages[0].text
    assert "B = 1 in {1, 2}" in wrote.source("kernel.cpp")
    model.answers.append(bad + MODEL)
    assert "@tune B [1, 2]" in coder.code(task(), PLAN, None).solution.source("kernel.cpp"), "not followed"
    assert "@tune" not in model.asked[-1].messages[0].text


CLASSES = {
    "compile": "does not compile",
    "crash": "crashed or raised",
    "shape": "shape or structure of its outputs differs",
    "dtype": "dtype of its outputs differs",
    "numerical": "Its values are wrong",
    "nondeterministic": "different outputs",
    "timeout": "did not finish in time",
    "out_of_memory": "out of memory",
    "slower": "slower than the attempt",
}


@pytest.mark.parametrize("error_class", list(CLASSES))
def test_repairs_differ_by_error_class(coder: LLMCoder, model: Scripted, error_class: str) -> None:
    first = solution(coder, model)
    kind = "optimize" if error_class == "slower" else "repair"
    critique = Critique(kind=kind, error_class=error_class, cause="the cause", change="the change")
    result = evaluation() if error_class == "slower" else evaluation("RUNTIME_ERROR", reasons=("the reason",))
    parent = failed(1, solution=first, evaluation=result, critique=critique)
    model.answers.append(RIGHT_AND_FAST.replace("float sum", "double sum"))
    draft = coder.code(task(parent), PLAN, parent)
    assert CLASSES[error_class] in model.prompt
    assert "the cause" in model.prompt
    assert "rms_norm(const float" in model.prompt
    assert "double sum" in draft.solution.source("kernel.cpp")


@pytest.mark.parametrize("error_class", ["", "slower"])
def test_siblings_are_not_told_the_same_change(coder: LLMCoder, model: Scripted, error_class: str) -> None:
    critique = Critique(
        kind="optimize", error_class=error_class, cause="strided", change="swap the loops", author="m"
    )
    parent = failed(1, solution=solution(coder, model), evaluation=evaluation(), critique=critique)
    carries = PLAN.model_copy(update={"change": "strided: swap the loops"})
    first, second = failed(2, parent=parent.id, plan=carries), failed(3, parent=parent.id)
    silent = replace(first, evaluation=None, error=f"{CODER_FAILED}: too many requests")
    fourth = failed(4, parent=parent.id)
    asked = (
        (task(parent, first, second, attempt=first.id), carries),
        (task(parent, first, second, attempt=second.id), PLAN),
        (task(parent, second, attempt=second.id), PLAN),  # its planner carries out no change itself
        (replace(task(parent, second, attempt=second.id), aim=Aim((("vectors", 2, 3),))), PLAN),
        (task(parent, silent, fourth, attempt=fourth.id), PLAN),
    )
    told = []
    for one, plan in asked:
        model.answers.append(RIGHT_AND_FAST.replace("float sum", "double sum"))
        coder.code(one, plan, parent)
        assert "The judge says: strided" in model.prompt
        told.append("Proposed fix: swap the loops" in model.prompt)
    assert told == [True, False, True, False, True]


def test_slower_and_faster_attempts_stand_side_by_side(coder: LLMCoder, model: Scripted) -> None:
    first = solution(coder, model)
    second = solution(coder, model, RIGHT_AND_FAST.replace("float sum", "double sum") + MODEL)
    past = (
        failed(1, solution=second, evaluation=evaluation(speed=3.0)),
        failed(2, solution=first, evaluation=evaluation(speed=1.1)),
    )
    model.answers.append(RIGHT_AND_FAST.replace("static", "dynamic") + MODEL)
    coder.code(task(*past), PLAN, None)
    assert model.prompt.index("1.1x") < model.prompt.index("3x")


def test_a_long_error_is_shown_in_part(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    wrote, said = solution(coder, model), "no matching function for call to " + "std::tuple<" * 9000
    model.answers.append(repair())
    judge.judge(task(), PLAN, wrote, evaluation("COMPILE_ERROR", diagnostics=(Diagnostic(message=said),)))
    assert "std::tuple<std::tuple<" in model.prompt
    assert len(model.prompt) < 10_000


def test_an_attempt_that_is_too_long_is_not_shown(coder: LLMCoder, model: Scripted) -> None:
    padded = RIGHT_AND_FAST.replace("float sum", "int unused;  //" + "-" * 30_000 + "\nfloat sum")
    long = solution(coder, model, padded + MODEL)
    model.answers.append(RIGHT_AND_FAST + MODEL)
    coder.code(task(failed(1, solution=long, evaluation=evaluation(speed=3.0))), PLAN, None)
    assert "-" * 1000 not in model.prompt


def test_a_cheat_is_never_shown(coder: LLMCoder, model: Scripted) -> None:
    cheat = failed(
        1, "CHEATING", solution=solution(coder, model, RIGHT_AND_FAST.replace("sum", "cheat") + MODEL)
    )
    model.answers.append(RIGHT_AND_FAST + MODEL)
    coder.code(task(cheat), PLAN, cheat)
    assert "cheat" not in model.prompt


# -------------------------------------------------------------------- judge


def repair(**changes: Any) -> str:
    return json.dumps({"cause": "a", "fix": "b", "hopeless": False, "evidence": [], **changes})


def optimize(*cited: tuple[str, float]) -> str:
    evidence = [{"metric": m, "value": v} for m, v in cited]
    return json.dumps(
        {"verdict": "optimize", "bottleneck": "x", "evidence": evidence, "change": "y", "expected_gain": 0.2}
    )


def test_a_repair_critique(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    found = Correctness(
        max_absolute_error=1.0, max_relative_error=0.5, tolerance=1e-6, reference_error=1e-7, checked_calls=1,
        worst="out[0, 2048]: got 0, expected 1",
    )  # fmt: skip
    result = evaluation("INCORRECT_NUMERICAL", correctness=found)
    wrote = solution(coder, model)
    model.answers.append(repair(evidence=[{"metric": "max_relative_error", "value": 0.5}]))
    critique = judge.judge(task(), PLAN, wrote, result)
    assert (critique.kind, critique.error_class, critique.change) == ("repair", "numerical", "b")
    assert critique.evidence == (Citation(metric="max_relative_error", value=0.5),)
    assert "out[0, 2048]" in model.prompt


def test_an_invented_value_sends_the_critique_back(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    wrote = solution(coder, model)
    model.answers.extend([optimize(("occupancy", 0.3)), optimize(("latency_s", 1e-3))])
    critique = judge.judge(task(), PLAN, wrote, evaluation())
    assert critique.evidence == (Citation(metric="latency_s", value=1e-3),)
    assert "no value named 'occupancy' was measured" in model.prompt


def test_cheating_closes_the_attempt_without_a_call(
    judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    wrote = solution(coder, model)
    asked = len(model.asked)
    critique = judge.judge(task(), PLAN, wrote, evaluation("CHEATING", reasons=("forged",)))
    assert (critique.kind, critique.error_class) == ("abandon", "cheating")
    assert len(model.asked) == asked


def test_the_same_failure_after_its_repair_is_abandoned(
    judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    wrote = solution(coder, model)
    asked = len(model.asked)
    now = failed(2, parent="run/0001")
    assert now.evaluation is not None
    critique = judge.judge(task(failed(1), now, attempt="run/0002"), PLAN, wrote, now.evaluation)
    assert critique.kind == "abandon"
    assert "same failure" in critique.cause
    assert len(model.asked) == asked


def test_a_failure_after_a_success_is_no_repeated_one(
    judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    wrote = solution(coder, model)
    repaired = failed(2, parent="run/0001", evaluation=evaluation())
    now = failed(3, parent="run/0002")
    assert now.evaluation is not None
    model.answers.append(repair())
    critique = judge.judge(task(failed(1), repaired, now, attempt="run/0003"), PLAN, wrote, now.evaluation)
    assert critique.kind == "repair"


def test_slower_than_its_parent_is_said(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    wrote = solution(coder, model)
    parent = failed(1, evaluation=evaluation(speed=3.0))
    now = failed(2, parent="run/0001", evaluation=evaluation(speed=2.0))
    model.answers.append(optimize(("speedup.eager", 2.0)))
    critique = judge.judge(task(parent, now, attempt="run/0002"), PLAN, wrote, evaluation(speed=2.0))
    assert (critique.kind, critique.error_class) == ("optimize", "slower")
    assert "reached 3x" in model.prompt


@pytest.mark.parametrize("status", ["PASSED", "COMPILE_ERROR"])
def test_no_judge_loses_no_attempt(judge: LLMJudge, coder: LLMCoder, model: Scripted, status: str) -> None:
    wrote = solution(coder, model)
    model.answers.append(CallFailed("busy"))
    critique = judge.judge(task(), PLAN, wrote, evaluation(status, reasons=("why",)))
    assert critique.kind == ("optimize" if status == "PASSED" else "repair")
    assert critique.author == "supervisor"


def test_no_money_for_the_judge_loses_no_attempt(coder: LLMCoder, model: Scripted, store: Store) -> None:
    wrote = solution(coder, model)
    poor = Ledger(store, "run", Budget(tokens=10))
    judge = LLMJudge(Role("judge", model, poor, LLMSettings()))
    assert judge.judge(task(), PLAN, wrote, evaluation()).author == "supervisor"


def test_the_speed_of_light_needs_no_judge(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    critique = judge.judge(task(), PLAN, solution(coder, model), evaluation(speed=19.9))
    assert critique.kind == "accept"


# ------------------------------------------------------------- fingerprints


def test_fingerprints_see_through_paths_addresses_hashes_and_numbers() -> None:
    said = "/tmp/ab/{h}/kernel.cpp:{n}: crash at {a} in {h}"
    marks = {
        fingerprint(failed(i, "CRASHED", said.format(h=h, n=i, a=a)))
        for i, (h, a) in enumerate([("deadbeef01", "0x7fff12"), ("0123abcdef", "0x1"), ("99ffaa0011", "0xA")])
    }
    assert len(marks) == 1
    assert fingerprint(failed(1, "CRASHED", "other")) not in marks
    assert fingerprint(failed(1, evaluation=evaluation())) == ""
    assert fingerprint(Past("x", None, PLAN, None, None, None, error="no code")) == "NO_SOLUTION no code"


def test_the_judge_sees_what_compiler_and_profiler_say(
    judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    wrote = solution(coder, model)
    reason = Reason(metric="bandwidth_share", value=0.72, relation="at least", threshold=0.6)
    measured = evaluation().model_copy(
        update={
            "metrics": (Metric(name="bandwidth_share", value=0.72, source="roofline"),),
            "classification": Classification(bound=Bound.MEMORY, reasons=(reason,)),
            "findings": (
                Finding(source="compiler", title="loop not vectorised", message="why", file="k.cpp", line=7),
            ),
        }
    )
    model.answers.append(optimize(("bandwidth_share", 0.72)))
    critique = judge.judge(task(), PLAN, wrote, measured)
    assert critique.evidence == (Citation(metric="bandwidth_share", value=0.72),)
    assert "memory-bound: bandwidth_share 0.72 is at least 0.6" in model.prompt
    assert "- k.cpp:7: loop not vectorised: why" in model.prompt


# ------------------------------------------------- prompts that tell the truth


def test_a_name_has_one_value_in_all_prompts(
    planner: LLMPlanner, judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    usual = bottleneck()
    thrice = usual.model_copy(update={"call_sites": usual.call_sites * 3, "time_s": 12e-3, "sol_s": 3e-4})
    asked = replace(task(), bottleneck=thrice)
    model.answers.append(plan_answer())
    planner.plan(asked, None)
    shown = {"planner": model.prompt}
    wrote = solution(coder, model)
    model.answers.append(optimize(("latency_s", 1e-3)))
    judge.judge(asked, PLAN, wrote, evaluation())
    shown["judge"] = model.prompt
    values: dict[str, set[str]] = {}
    for prompt in shown.values():
        for name, value in re.findall(r"^([\w.#]+) = (\S+)$", prompt, re.MULTILINE):
            values.setdefault(name, set()).add(value)
    assert all(len(found) == 1 for found in values.values()), values
    assert values["region_sol_s"] == {"0.0003"}
    assert values["sol_s"] == {"0.0001"}
    assert "speedup_limit" not in values
    assert "all 3 calls" in shown["planner"]
    assert "all 3 calls" in shown["judge"]


def test_roles_share_their_first_part(
    planner: LLMPlanner, judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    model.answers.append(plan_answer())
    planner.plan(task(), None)
    wrote = solution(coder, model)
    model.answers.append(optimize(("latency_s", 1e-3)))
    judge.judge(task(), PLAN, wrote, evaluation())
    firsts = {request.system[0] for request in model.asked}
    assert len(model.asked) == 3
    assert len(firsts) == 1
    assert "# The machine" in firsts.pop()


def test_strategies_that_only_the_playbook_carries_out_are_not_offered(
    planner: LLMPlanner, model: Scripted
) -> None:
    cards = [Strategy(id=name, title=name, summary="s") for name in ("inductor-seed", "strict-math", "tile")]
    model.answers.extend([plan_answer(strategy="inductor-seed"), plan_answer(strategy="tile")])
    plan = planner.plan(task(strategies=tuple(cards)), None)
    assert plan is not None
    assert plan.strategy == "tile"
    question = model.asked[0].messages[0].text
    assert "`tile`" in question
    assert "inductor-seed" not in question
    assert "strict-math" not in question
    assert "needs the playbook's generator" in model.prompt


def test_the_credit_of_a_strategy_is_beside_its_whole_speedup(planner: LLMPlanner, model: Scripted) -> None:
    record = StrategyRecord(context=CONTEXT, n=2, mean_log_speedup=0.7, mean_credit=0.05)
    cards = (Strategy(id="tile", title="tile", summary="s", records=(record,)),)
    model.answers.append(plan_answer(strategy="tile"))
    planner.plan(task(strategies=cards), None)
    said = "2 verified (mean log speedup 0.700 over the best baseline, 0.050 without what it was built on)"
    assert said in model.prompt


def test_strategies_fill_a_limited_part_of_a_prompt(planner: LLMPlanner, model: Scripted) -> None:
    asked = task(strategies=tuple(Strategy(id=f"s{i}", title="t", summary="word " * 400) for i in range(8)))
    model.answers.append(plan_answer(strategy="s0"))
    planner.plan(asked, None)
    assert asked.served == {"s0", "s1", "s2"}
    section = model.prompt.partition("Strategies of the")[2].partition("This run has not tried")[0]
    assert 3 * 2000 < len(section) <= 8000


def test_failures_are_shown_in_the_referees_words(planner: LLMPlanner, model: Scripted) -> None:
    wrong = evaluation("INCORRECT_NUMERICAL", reasons=("out[0, 0, 1, 249]: got 0, expected 1.25 (float32)",))
    past = failed(1, evaluation=wrong)
    model.answers.append(plan_answer())
    planner.plan(task(past), None)
    assert "INCORRECT_NUMERICAL out[0, 0, 1, 249]: got 0, expected 1.25 (float32)" in model.prompt
    model.answers.append(plan_answer())
    planner.plan(task(past, failed(2, evaluation=wrong)), None)
    assert "got 0, expected 1.25" in model.prompt.partition("Closed strategies")[2]


def test_the_load_of_other_processes_is_no_fault_of_the_kernel(
    planner: LLMPlanner, judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    idle = Classification(
        bound=Bound.OCCUPANCY,
        reasons=(Reason(metric="threads_share", value=0.16, relation="below", threshold=0.6),),
    )
    busy = {"reasons": ("the control drifted",), "codes": (ReasonCode.NOISY_CONTROL,)}
    wrote = solution(coder, model)
    for changes, steady in (({}, True), (busy, False)):
        result = evaluation(classification=idle, **changes)
        model.answers.append(optimize(("latency_s", 1e-3)))
        judge.judge(task(), PLAN, wrote, result)
        assert ("under-occupied" in model.prompt) is steady
        assert ("Other processes disturbed" in model.prompt) is not steady
        critique = Critique(kind="optimize", cause="rows", change="more of them", author="supervisor")
        parent = failed(1, evaluation=result, critique=critique)
        model.answers.append(plan_answer())
        planner.plan(task(parent), parent)
        assert ("under-occupied" in model.prompt) is steady
        assert ("Other processes disturbed" in model.prompt) is not steady


def test_counters_say_what_limits_a_kernel_however_busy_the_machine_is(
    planner: LLMPlanner, judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    busy = {"reasons": ("the control drifted",), "codes": (ReasonCode.NOISY_CONTROL,)}
    wrote = solution(coder, model)
    for name, source in (("dram__throughput", "ncu"), ("bandwidth_share", "profiler")):
        value = Metric(name=name, value=87.5, source=source)
        reason = Reason(metric=name, value=87.5, relation="at least", threshold=60)
        limit = Classification(bound=Bound.MEMORY, reasons=(reason,), source=source)
        result = evaluation(classification=limit, metrics=(value,), **busy)
        model.answers.append(optimize(("latency_s", 1e-3)))
        judge.judge(task(), PLAN, wrote, result)
        assert "Other processes disturbed" in model.prompt
        assert ("By these values it is memory-bound" in model.prompt) is (source == "ncu")
        model.answers.append(plan_answer())
        planner.plan(task(failed(1, evaluation=result)), None)
        assert (f"\n#1.{name} = 87.5\n" in model.prompt) is (source == "ncu")


def test_the_judge_knows_what_is_verified_and_kept(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    wrote = solution(coder, model)
    model.answers.append(optimize(("latency_s", 1e-3)))
    judge.judge(task(), PLAN, wrote, evaluation())
    assert "**not verified**: its 95% interval is 1.98 to 2.02" in model.prompt
    assert "Kept so far: nothing" in model.prompt
    verified = evaluation(speed=1.5, evidence=Evidence.VERIFIED, level=Level.FULL)
    before = failed(3, evaluation=verified, solution=wrote)
    model.answers.append(optimize(("latency_s", 1e-3)))
    judge.judge(task(before), PLAN, wrote, evaluation(evidence=Evidence.VERIFIED, level=Level.FULL))
    assert "is **verified**" in model.prompt
    assert "Kept so far: #3 `rows`, 1.5x" in model.prompt


def test_infinity_can_be_cited(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    found = Correctness(
        max_absolute_error=float("inf"), max_relative_error=float("nan"), tolerance=1e-6,
        reference_error=1e-7, checked_calls=1, worst="out[0]: got inf, expected 1",
    )  # fmt: skip
    wrote, asked = solution(coder, model), len(model.asked)
    cited = [("max_absolute_error", "inf"), ("max_absolute_error", 1e308), ("max_relative_error", "nan")]
    for number, (metric, value) in enumerate(cited):
        model.answers.append(repair(evidence=[{"metric": metric, "value": value}]))
        judge.judge(
            task(attempt=f"run/{number:04d}"),
            PLAN,
            wrote,
            evaluation("INCORRECT_NUMERICAL", correctness=found),
        )
    assert len(model.asked) == asked + 3, "nothing was sent back"


def test_one_bad_citation_among_good_ones_is_left_out(planner: LLMPlanner, model: Scripted) -> None:
    cited = [{"metric": "share", "value": 0.8}, {"metric": "l2_miss_rate", "value": 0.5}]
    model.answers.append(plan_answer(evidence=cited))
    plan = planner.plan(task(), None)
    assert plan is not None
    assert plan.evidence == (Citation(metric="share", value=0.8),)
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("operators", "reference", "title"),
    [
        (("aten.softmax.int",), "x", "masked softmax"),
        (("aten.native_layer_norm.default",), "x", "LayerNorm"),
        (("aten.mul.Tensor", "aten.gelu.default"), "x", "GELU"),
        (("aten.mul.Tensor", "aten.cumsum.default"), "x", "prefix sums"),
        ((), "torch.log_softmax(x, -1)", "masked softmax"),
        ((), "x.mean(-1)", "LayerNorm"),
        ((), "x * 2", "GELU"),
    ],
)
def test_the_example_of_a_whole_reference_follows_its_operators(
    operators: tuple[str, ...], reference: str, title: str
) -> None:
    usual = bottleneck()
    definition = usual.definition.model_copy(update={"op_type": "custom", "reference": reference})
    sites = tuple(s.model_copy(update={"operators": operators}) for s in usual.call_sites)
    whole = usual.model_copy(update={"definition": definition, "call_sites": sites})
    assert title in example(replace(task(), bottleneck=whole), "cpp").splitlines()[0]


def test_a_scan_is_no_reduction_to_learn_from() -> None:
    usual = bottleneck()
    sites = tuple(s.model_copy(update={"operators": ("aten.cumsum.default",)}) for s in usual.call_sites)
    definition = usual.definition.model_copy(update={"op_type": "reduction"})
    scan = usual.model_copy(update={"definition": definition, "call_sites": sites})
    assert "prefix sums" in example(replace(task(), bottleneck=scan), "cpp").splitlines()[0]


def test_without_a_gpu_prompts_speak_of_machine_code_and_not_of_times(
    planner: LLMPlanner, coder: LLMCoder, model: Scripted
) -> None:
    wrote = solution(coder, model)
    used = ResourceUsage(kernel="rows", target="sm_90", registers=40, spill_store_bytes=64)
    untimed = evaluation(performance=None, codes=(ReasonCode.UNTIMED,), reasons=("-",), resources=(used,))
    right = failed(1, evaluation=untimed, solution=wrote)
    model.answers.append(plan_answer())
    there = replace(task(right), languages=("triton",))
    planner.plan(there, None)
    asked = model.asked[-1]
    said = "\n".join(asked.system)
    assert "No GPU is here. Triton kernels are compiled for sm_90" in said
    assert "it cannot time it here" in said
    assert "times it against eager" not in said
    assert "copy bandwidth" not in said
    assert "\n#1.rows@sm_90.registers = 40\n" in model.prompt
    assert "\n#1.rows@sm_90.spilled_bytes = 64\n" in model.prompt
    model.answers.append(plan_answer())
    planner.plan(replace(there, languages=("cpp",)), None)
    assert "times it against eager" in "\n".join(model.asked[-1].system)
    with contextlib.suppress(IndexError):  # its question is enough
        coder.code(task(right), PLAN, None)
    assert "Attempt #1, `rows`: right, and not timed" in model.prompt


def test_a_target_is_an_instruction_and_moves_are_hints(
    planner: LLMPlanner, coder: LLMCoder, model: Scripted
) -> None:
    aim = Aim(levels=(("vectors", 2, 3),), moves=(("unrolling", -1, 0.9, 3),))
    right = failed(
        1, evaluation=evaluation(), solution=solution(coder, model),
        critique=Critique(kind="optimize", cause="memory", change="stream the stores"),
    )  # fmt: skip
    model.answers.append(plan_answer())
    planner.plan(replace(task(right), aim=aim), right)
    assert (
        "- vectors: 512-bit vectors in the hot loop (now: 256-bit vectors in the hot loop)." in model.prompt
    )
    assert "- unrolling down: 0.9x the speed, over 3 attempts." in model.prompt
    with contextlib.suppress(IndexError):  # its question is enough
        coder.code(replace(task(right), aim=aim), PLAN, right)
    assert "- vectors: 512-bit vectors" in model.prompt
    for names in (CPU_DIMENSIONS, GPU_DIMENSIONS):
        every = Aim(tuple((name, now, 3 - now) for name in names for now in range(LEVELS)))
        assert render("shared/target.md.j2", aim=every).count("(now:") == LEVELS * len(names)


def test_adjectives_of_the_prompts_are_read(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.append(plan_answer(bottleneck="under-occupied"))
    plan = planner.plan(task(), None)
    assert plan is not None
    assert plan.diagnosis.startswith("under-occupied")
    assert len(model.asked) == 1


def test_a_role_has_its_own_limit_until_an_answer_is_cut_off(planner: LLMPlanner, model: Scripted) -> None:
    model.answers.extend([Response(text="{", model="m", stop="length"), plan_answer()])
    planner.plan(task(), None)
    assert [request.max_tokens for request in model.asked] == [8192, 16384]


def test_a_limit_for_one_role_leaves_those_of_others(model: Scripted, store: Store) -> None:
    settings = LLMSettings(role_max_tokens={"judge": 4096})
    model.answers.append(plan_answer())
    LLMPlanner(Role("planner", model, Ledger(store, "run"), settings)).plan(task(), None)
    assert [request.max_tokens for request in model.asked] == [8192]


def suspicious(speed: float = 2.0, **changes: Any) -> Evaluation:
    reasons = ("it lowers the precision of products",)
    return evaluation(speed=speed, evidence=Evidence.SUSPICIOUS, reasons=reasons, **changes)


def test_a_suspicious_attempt_at_the_speed_of_light_goes_to_the_judge(
    judge: LLMJudge, coder: LLMCoder, model: Scripted
) -> None:
    """It cannot be kept as it is, so its region is not done."""
    wrote = solution(coder, model)
    model.answers.append(optimize(("latency_s", 1e-4)))
    critique = judge.judge(task(), PLAN, wrote, suspicious(speed=20.0))
    assert (critique.kind, critique.closes) == ("optimize", False)
    assert "it lowers the precision of products" in model.prompt


def test_the_coder_is_told_why_its_parent_is_not_kept(coder: LLMCoder, model: Scripted) -> None:
    parent = failed(
        1, evaluation=suspicious(), solution=solution(coder, model), critique=Critique(kind="optimize")
    )
    model.answers.append(RIGHT_AND_FAST.replace("sum", "total") + MODEL)
    coder.code(task(parent), PLAN, parent)
    assert "It is not kept, because it is suspicious: it lowers the precision" in model.prompt


def test_a_child_is_built_and_entered_as_its_parent(coder: LLMCoder, model: Scripted) -> None:
    wrote = solution(coder, model)
    spec = BuildSpec(language="cpp", entry_point="softmax.py::Fast", flags=("-fno-fast-math",))
    sources = [
        SourceFile(path="softmax.py", content=file.content.replace("ModelNew", "Fast"))
        if file.path == "model_new.py"
        else file
        for file in wrote.sources
    ]
    theirs = wrote.model_copy(update={"spec": spec, "sources": tuple(sources)})
    parent = failed(1, evaluation=evaluation(), solution=theirs, critique=Critique(kind="optimize"))
    old, new = "        float sum = 0;\n", "        float sum = 0.0f;\n"
    model.answers.append(f"EDIT: kernel.cpp\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE")
    made = coder.code(task(parent), PLAN, parent).solution
    assert made.spec == spec
    assert {file.path for file in made.sources} == {file.path for file in theirs.sources}


def test_what_is_kept_is_what_beats_eager(judge: LLMJudge, coder: LLMCoder, model: Scripted) -> None:
    """Also if torch.compile is faster still."""
    wrote = solution(coder, model)

    def kept(eager: float, compiled: float) -> Shown | None:
        speeds = {
            n: nouns.performance(s, 0.01).speedup["eager"]
            for n, s in (("eager", eager), ("compile", compiled))
        }
        baselines = {"eager": 2e-3, "compile": 2e-3 * compiled / eager}
        measured = nouns.performance(baseline_s=baselines, speedup=speeds)
        past = evaluation(evidence=Evidence.VERIFIED, performance=measured)
        return best_verified(task(failed(1, evaluation=past, solution=wrote)))

    assert kept(0.9, 2.0) is None
    shown = kept(1.3, 0.9)
    assert shown is not None
    assert shown.speedup == pytest.approx(0.9)

"""The contracts of the agents, as tests that every implementation inherits.

class TestMyCoder(CoderContract):
    @pytest.fixture
    def coder(self) -> Coder: ...
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from agentforge.agents import (
    Author,
    Coder,
    Hardware,
    Judge,
    ModelContext,
    ModelPlanner,
    Past,
    Planner,
    Task,
)
from agentforge.schema import (
    Bottleneck,
    BuildSpec,
    CallSite,
    CannotCode,
    Context,
    Definition,
    Diagnostic,
    DType,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Performance,
    Plan,
    Profile,
    Solution,
    SourceFile,
    Strategy,
    TensorInput,
    Workload,
)

REFERENCE = """
import torch


class Model(torch.nn.Module):
    def forward(self, {arguments}):
        {body}


def get_inputs():
    raise NotImplementedError("the workload says what they are")


def get_init_inputs():
    return []
"""

STRATEGY = Strategy(
    id="fuse",
    title="Fuse",
    summary="One pass.",
    template="cpp/program.cpp.j2",
    parameters={"tile": (1024, 512), "schedule": ("static", "dynamic")},
    prior_log_speedup=0.1,
)
"""A strategy that the playbook can carry out."""


def make_task(
    body: str = "return (x * 2).relu()",
    *inputs: TensorInput,
    strategies: tuple[Strategy, ...] = (STRATEGY,),
    past: tuple[Past, ...] = (),
) -> Task:
    """A task whose definition has the one-line forward `body`; without inputs, one of 8x16 floats."""
    specs = inputs or (TensorInput(name="x", shape=(8, 16), dtype=DType.FLOAT32),)
    definition = Definition(
        name="task",
        op_type="pointwise",
        reference=REFERENCE.format(arguments=", ".join(s.name for s in specs), body=body),
    )
    bottleneck = Bottleneck(
        definition=definition,
        workloads=(Workload(name="w", inputs=specs),),
        call_sites=(
            CallSite(
                name="site", nodes=("mul",), operators=("aten.mul",), time_s=1e-3, bytes=1e6, sol_s=1e-4
            ),
        ),
        time_s=1e-3,
        share=0.25,
        sol_s=1e-4,
        bound="memory",
        gain_s=5e-4,
        speedup_limit=1.3,
    )
    hardware = Hardware("cpu", "x86-64", 4, 2e10, 1e11, (1 << 15, 1 << 19, 1 << 25))
    return Task(bottleneck, hardware, Context(op_type="pointwise"), strategies, past=past)


def make_model_context(*names: str) -> ModelContext:
    """A profile with one region for each name, each a quarter of the time."""
    regions = []
    for number, name in enumerate(names):
        b = make_task(f"return (x * {number + 2}).relu()").bottleneck
        site = b.call_sites[0].model_copy(update={"name": f"site/{name}"})
        named = b.definition.model_copy(update={"name": name})
        regions.append(b.model_copy(update={"definition": named, "call_sites": (site,)}))
    profile = Profile(
        target="0" * 16,
        device="cpu",
        architecture="x86-64",
        total_s=4e-3,
        traces=3,
        attributed=1.0,
        call_sites=tuple(s for r in regions for s in r.call_sites),
        bottlenecks=tuple(regions),
    )
    return ModelContext(profile, make_task().hardware, {r.definition.hash: 0.5 for r in regions})


def make_evaluation(
    task: Task,
    status: EvaluationStatus = EvaluationStatus.PASSED,
    *,
    speedup: float = 1.5,
    sol_s: float | None = 1e-4,
    reasons: tuple[str, ...] = (),
    diagnostics: tuple[Diagnostic, ...] = (),
) -> Evaluation:
    """An evaluation of that status; one that passed has `speedup` over both baselines."""
    interval = Interval(point=speedup, low=speedup, high=speedup)
    performance = Performance(
        latency_s=1e-3 / speedup,
        baseline_s={"eager": 1e-3, "compile": 1e-3},
        speedup={"eager": interval, "compile": interval},
        control=Interval(point=1, low=0.99, high=1.01),
        blocks=8,
        processes=1,
        sol_s=sol_s,
    )
    return Evaluation(
        definition=task.bottleneck.definition.hash,
        solution="0" * 16,
        workloads=tuple(w.hash for w in task.bottleneck.workloads),
        level=Level.QUICK,
        status=status,
        evidence=Evidence.UNVERIFIED,
        reasons=reasons,
        diagnostics=diagnostics,
        performance=performance if status is EvaluationStatus.PASSED else None,
        environment=Environment(device="cpu", architecture="x86-64", toolchain={}),
        timestamp=datetime.now(UTC),
    )


def make_solution(task: Task, **parameters: int | float | str | bool) -> Solution:
    """A solution by the playbook that does nothing."""
    return Solution(
        name="solution",
        definition=task.bottleneck.definition.hash,
        author="playbook",
        spec=BuildSpec(language="cpp"),
        sources=(SourceFile(path="model_new.py", content=f"# {sorted(parameters.items())}"),),
        parameters=parameters,
    )


def cited_values(task: Task, evaluation: Evaluation | None = None) -> set[float]:
    """Every number that an agent may cite."""
    b = task.bottleneck
    values = {b.share, b.time_s, b.sol_s, task.hardware.bandwidth}
    values.add(sum(s.bytes for s in b.call_sites) / b.time_s)
    for past in task.past:
        if past.evaluation is not None:
            values |= cited_values(make_task(), past.evaluation)
    if evaluation is not None and evaluation.performance is not None:
        p = evaluation.performance
        values |= {p.latency_s, p.sol_s or 0.0, *(i.point for i in p.speedup.values())}
    if evaluation is not None and evaluation.correctness is not None:
        values |= {evaluation.correctness.max_relative_error, evaluation.correctness.tolerance}
    return values


class ModelPlannerContract:
    """Contract of `ModelPlanner.plan_model`; needs a fixture `model_planner`."""

    def test_names_each_region_once(self, model_planner: ModelPlanner) -> None:
        plan = model_planner.plan_model(make_model_context("first", "second", "third"))
        assert sorted(region.name for region in plan.regions) == ["first", "second", "third"]
        assert plan.expected_speedup >= 1

    def test_nothing_to_plan_is_a_plan(self, model_planner: ModelPlanner) -> None:
        assert model_planner.plan_model(make_model_context()).regions == ()


class AuthorContract:
    """Contract of `Author.write`; needs a fixture `author`."""

    def test_writes_a_reference_in_the_convention(self, author: Author) -> None:
        source, usage = author.write("add one to a tensor", make_task().hardware)
        namespace: dict[str, Any] = {}
        exec(compile(source, "reference.py", "exec", dont_inherit=True), namespace)
        inputs = namespace["get_inputs"]()
        assert inputs
        namespace["Model"](*namespace["get_init_inputs"]())(*inputs)
        assert usage.dollars is None or usage.dollars >= 0

    def test_an_objection_is_taken(self, author: Author) -> None:
        first, _ = author.write("add one to a tensor", make_task().hardware)
        again, _ = author.write(
            "add one to a tensor", make_task().hardware, first, "the inputs are too small"
        )
        assert "class Model" in again


class PlannerContract:
    """Contract of `Planner.plan`."""

    ends: ClassVar[bool] = True
    """False for a planner that always has another idea, as a language model may."""

    def test_plans_something_first(self, planner: Planner) -> None:
        plan = planner.plan(make_task(), None)
        assert plan is not None
        assert plan.expected_speedup > 0
        assert plan.language in make_task().languages

    def test_cites_what_was_measured(self, planner: Planner) -> None:
        task = make_task()
        plan = planner.plan(task, None)
        assert plan is not None
        assert plan.evidence
        assert {c.value for c in plan.evidence} <= cited_values(task)

    def test_never_proposes_the_same_twice_and_ends(self, planner: Planner) -> None:
        if not self.ends:
            pytest.skip("this planner always has another idea")
        past: tuple[Past, ...] = ()
        seen: list[tuple[str, dict[str, int | float | str | bool]]] = []
        for number in range(60):
            task = make_task(past=past)
            plan = planner.plan(task, None)
            if plan is None:
                break
            assert (plan.strategy, plan.parameters) not in seen
            seen.append((plan.strategy, plan.parameters))
            solution = make_solution(task, **plan.parameters)
            past += (Past(str(number), None, plan, solution, make_evaluation(task), None),)
        else:
            raise AssertionError("the planner never ends")


class CoderContract:
    """Contract of `Coder.code`."""

    def plan(self) -> Plan:
        """A plan that the coder can carry out; its parameters have `tile`."""
        return Plan(strategy=STRATEGY.id, template=STRATEGY.template, parameters={"tile": 512})

    def impossible(self) -> tuple[Task, Plan]:
        """A task and a plan that the coder must refuse: by default a forward that branches on data."""
        return make_task("return x if x.sum() > 0 else -x"), self.plan()

    def test_writes_a_solution_of_the_definition(self, coder: Coder) -> None:
        task = make_task()
        draft = coder.code(task, self.plan(), None)
        assert draft.solution.definition == task.bottleneck.definition.hash
        assert draft.solution.spec.language in task.languages
        assert "class ModelNew" in draft.solution.source(draft.solution.entry_file)

    def test_the_parameters_are_recorded(self, coder: Coder) -> None:
        draft = coder.code(make_task(), self.plan(), None)
        assert draft.solution.parameters["tile"] == 512

    def test_says_why_it_cannot(self, coder: Coder) -> None:
        task, plan = self.impossible()
        with pytest.raises(CannotCode) as caught:
            coder.code(task, plan, None)
        assert str(caught.value)


class JudgeContract:
    """Contract of `Judge.judge`."""

    def _plan(self) -> Plan:
        return Plan(strategy=STRATEGY.id, template=STRATEGY.template, parameters={"tile": 1024})

    def test_every_status_gets_an_answer(self, judge: Judge) -> None:
        task = make_task()
        for status in EvaluationStatus:
            evaluation = make_evaluation(task, status)
            critique = judge.judge(task, self._plan(), make_solution(task), evaluation)
            if status is EvaluationStatus.PASSED:
                assert critique.kind in ("optimize", "accept", "abandon")
            else:
                assert critique.kind in ("repair", "abandon")
                assert critique.cause

    def test_cites_what_was_measured(self, judge: Judge) -> None:
        task = make_task()
        evaluation = make_evaluation(task, speedup=2.0)
        critique = judge.judge(task, self._plan(), make_solution(task), evaluation)
        assert {c.value for c in critique.evidence} <= cited_values(task, evaluation)

    def test_accepts_at_the_speed_of_light(self, judge: Judge) -> None:
        task = make_task()
        evaluation = make_evaluation(task, speedup=2.0, sol_s=0.49e-3)
        critique = judge.judge(task, self._plan(), make_solution(task), evaluation)
        assert critique.kind == "accept"

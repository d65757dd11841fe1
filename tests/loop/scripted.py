"""Scripted agents and a simulated referee: the loop is tested without a compiler, a clock or a model.

A solution's only content is the speed it will be measured at, so that a test says what happens by
what its planner proposes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agentforge.agents import CannotCode, Draft, Past, Task
from agentforge.schema import (
    Bottleneck,
    BuildSpec,
    CallSite,
    Context,
    Critique,
    Definition,
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
    Usage,
    Workload,
)

DEVICE = "null device"


def definition(name: str) -> Definition:
    return Definition(name=name, op_type="pointwise", reference=f"# {name}\n")


def bottleneck(name: str, *, time_s: float = 1.0, sol_s: float = 0.1, **changes: Any) -> Bottleneck:
    site = CallSite(name=name, nodes=("add",), operators=("aten.add.Tensor",), time_s=time_s, sol_s=sol_s)
    fields = {
        "definition": definition(name),
        "workloads": (Workload(name="w"),),
        "call_sites": (site,),
        "time_s": time_s,
        "share": 0.5,
        "sol_s": sol_s,
        "bound": "memory",
        "gain_s": time_s - sol_s,
        "speedup_limit": 2.0,
    }
    return Bottleneck(**{**fields, **changes})


def profile(*bottlenecks: Bottleneck) -> Profile:
    return Profile(
        target="target",
        device=DEVICE,
        architecture="null",
        total_s=sum(b.time_s for b in bottlenecks) or 1.0,
        traces=3,
        attributed=1.0,
        call_sites=tuple(site for b in bottlenecks for site in b.call_sites),
        bottlenecks=bottlenecks,
    )


@dataclass
class ScriptedPlanner:
    """Proposes the next entry of a list for each bottleneck; its `speed` is what will be measured."""

    script: Mapping[str, Sequence[dict[str, Any] | Exception]]
    name: str = "scripted"
    calls: list[tuple[str, str | None]] = field(default_factory=list)

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        own = task.bottleneck.definition.name
        self.calls.append((own, parent.id if parent else None))
        entries = self.script.get(own, ())
        index = len(task.past)
        if index >= len(entries):
            return None
        entry = entries[index]
        if isinstance(entry, Exception):
            raise entry
        return Plan(
            strategy=entry.get("strategy", f"strategy-{index}"),
            parameters={k: v for k, v in entry.items() if k != "dollars"},
            usage=Usage(dollars=entry.get("dollars", 0.0)),
        )


class ScriptedCoder:
    """Writes the plan's parameters down as the solution; `cannot` and `explode` fail."""

    name = "scripted"

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        if "cannot" in plan.parameters:
            raise CannotCode(str(plan.parameters["cannot"]))
        if "explode" in plan.parameters:
            raise RuntimeError(str(plan.parameters["explode"]))
        text = json.dumps(plan.parameters, sort_keys=True)
        source = SourceFile(path="model_new.py", content=f"# {text}\nclass ModelNew: ...\n")
        return Draft(
            Solution(
                name=plan.strategy,
                definition=task.bottleneck.definition.hash,
                author="scripted",
                spec=BuildSpec(language="python"),
                sources=(source,),
            )
        )


class ScriptedJudge:
    """Repairs failures, optimizes successes."""

    name = "scripted"

    def __init__(self) -> None:
        self.told: list[tuple[tuple[int, str, float], ...]] = []

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        if "judge" in plan.parameters:
            raise ValueError(str(plan.parameters["judge"]))
        self.told.append(tuple((x.number, x.text, x.speedup) for x in task.lessons))
        lesson = str(plan.parameters.get("lesson", ""))
        refutes = tuple(int(number) for number in str(plan.parameters.get("refutes", "")).split())
        kind = "optimize" if evaluation.passed else "repair"
        return Critique(kind=kind, lesson=lesson, refutes=refutes)


@dataclass
class SimulatedReferee:
    """Measures a solution at the speed that is written in it."""

    evaluations: list[tuple[str, Level]] = field(default_factory=list)
    before: Callable[[Solution, Level], None] = lambda solution, level: None

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level,
        sol_s: float | None = None,
    ) -> Evaluation:
        self.before(solution, level)
        said = json.loads(re.findall(r"# (.*)", solution.source("model_new.py"))[0])
        self.evaluations.append((solution.hash, level))
        status = EvaluationStatus(said.get("status", "PASSED"))
        speed = float(said.get("full", said["speed"]) if level is Level.FULL else said["speed"])
        passed = status is EvaluationStatus.PASSED
        return Evaluation(
            definition=definition.hash,
            solution=solution.hash,
            workloads=tuple(w.hash for w in workloads),
            level=level,
            status=status,
            evidence=Evidence.VERIFIED if passed and level is Level.FULL else Evidence.UNVERIFIED,
            performance=_performance(speed, float(said.get("compile", 1.0))) if passed else None,
            environment=Environment(device=DEVICE, architecture="null", toolchain={}),
            timestamp=datetime.now(UTC),
        )


def _performance(speed: float, compiled: float) -> Performance:
    def about(value: float) -> Interval:
        return Interval(point=value, low=value * 0.99, high=value * 1.01)

    return Performance(
        latency_s=1.0 / speed,
        baseline_s={"eager": 1.0, "compile": 1.0 / compiled},
        speedup={"eager": about(speed), "compile": about(speed / compiled)},
        control=about(1.0),
        blocks=8,
        processes=3,
    )


@dataclass
class NullKnowledge:
    """A knowledge base that knows nothing and remembers what it was told."""

    recorded: list[tuple[str, bool, bool]] = field(default_factory=list)
    success: Mapping[str, float] = field(default_factory=dict)
    lessons: list[tuple[str, str]] = field(default_factory=list)

    def retrieve(self, context: Context, languages: Sequence[str], device: str) -> tuple[Strategy, ...]:
        return ()

    def success_probability(self, context: Context, languages: Sequence[str], device: str) -> float:
        return self.success.get(context.shape_class, 0.5)

    def record(
        self,
        strategy_id: str,
        context: Context,
        solution: Solution,
        evaluation: Evaluation,
        parameters: Mapping[str, int | float | str | bool],
        run: str,
    ) -> str | None:
        self.recorded.append((strategy_id, evaluation.passed, evaluation.verified))
        return None

    def learn(self, strategy_id: str, context: Context, evaluation: Evaluation, text: str, **_: Any) -> None:
        assert evaluation.verified
        self.lessons.append((strategy_id, text))


def context_for(bottleneck: Bottleneck) -> Context:
    return Context(op_type="pointwise", shape_class=bottleneck.definition.name)

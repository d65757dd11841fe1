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

from agentforge.agents import Draft, Past, Task
from agentforge.knowledge import KnowledgeBase
from agentforge.referee import EvaluationRequest, OnStage
from agentforge.schema import (
    Advice,
    Bottleneck,
    BuildSpec,
    CallSite,
    CannotCode,
    Context,
    Critique,
    Definition,
    Diagnostic,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Metric,
    Performance,
    Plan,
    Precedent,
    Profile,
    ReasonCode,
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
    site = CallSite(name=name, nodes=(name,), operators=("aten.add.Tensor",), time_s=time_s, sol_s=sol_s)
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
    """Proposes the next entry of a list for each bottleneck; its `speed` is what will be measured. An entry
    that is `fresh` is proposed from the definition alone."""

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
        if "fresh" in entry and parent is not None:
            return None
        return Plan(
            strategy=entry.get("strategy", f"strategy-{index}"),
            parameters={k: v for k, v in entry.items() if k not in ("dollars", "uses")},
            uses=entry.get("uses", ()),
            usage=Usage(dollars=entry.get("dollars", 0.0)),
        )


def written(bottleneck: Bottleneck, said: Mapping[str, Any]) -> Solution:
    """A solution that the simulated referee measures as `said`."""
    text = json.dumps(said, sort_keys=True)
    source = SourceFile(path="model_new.py", content=f"# {text}\nclass ModelNew: ...\n")
    return Solution(
        name="scripted",
        definition=bottleneck.definition.hash,
        author="scripted",
        spec=BuildSpec(language="python"),
        sources=(source,),
    )


class ScriptedCoder:
    """Writes the plan's parameters down as the solution; `cannot` and `explode` fail."""

    name = "scripted"

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        if "cannot" in plan.parameters:
            raise CannotCode(str(plan.parameters["cannot"]))
        if "explode" in plan.parameters:
            raise RuntimeError(str(plan.parameters["explode"]))
        return Draft(written(task.bottleneck, plan.parameters))


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
        if "accept" in plan.parameters:
            return Critique(kind="accept", closes=True, cause=str(plan.parameters["accept"]))
        kind = "optimize" if evaluation.passed else "repair"
        return Critique(kind=kind, lesson=lesson, refutes=refutes)


@dataclass
class SimulatedReferee:
    """Measures a solution at the speed that is written in it; its first `noisy` full evaluations are not
    verified because the machine is busy."""

    evaluations: list[tuple[str, Level]] = field(default_factory=list)
    before: Callable[[Solution, Level], None] = lambda solution, level: None
    deadlines: list[float | None] = field(default_factory=list)
    speed: float | None = None
    """Measured from now on, in place of the speed in the solution."""
    status: EvaluationStatus | None = None
    """Given from now on, in place of the status in the solution."""
    quick_compile: bool = True
    """Level `quick` measures torch.compile too."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        solution, level = request.solution, request.level
        self.deadlines.append(request.deadline)
        self.before(solution, level)
        scripted = re.findall(r"^(?:# |SAID = )(\{.*\})", solution.source("model_new.py"), re.MULTILINE)
        said = json.loads(scripted[0]) if scripted else {"speed": 1.0}  # else the reference itself
        self.evaluations.append((solution.hash, level))
        status = self.status or EvaluationStatus(said.get("status", "PASSED"))
        speed = float(said.get("full", said["speed"]) if level is Level.FULL else said["speed"])
        speed = self.speed or speed
        passed = status is EvaluationStatus.PASSED
        measured = self.evaluations.count((solution.hash, Level.FULL))
        untimed = passed and (level is Level.SMOKE or bool(said.get("untimed")))
        noisy = passed and level is Level.FULL and measured <= int(said.get("noisy", 0))
        steady = passed and level is Level.FULL and not noisy
        doubt = {ReasonCode.NOISY_CONTROL: "one baseline in two processes differs"} if noisy else {}
        doubt = {ReasonCode.UNTIMED: "no GPU is here"} if untimed else doubt
        timed = performance(
            speed, float(said.get("compile", 1.0)), float(said.get("spread", 0.01)) if noisy else 0.01
        )
        if level is Level.QUICK and not self.quick_compile:
            del timed.baseline_s["compile"], timed.speedup["compile"]
        return Evaluation(
            definition=request.definition.hash,
            solution=solution.hash,
            workloads=tuple(w.hash for w in request.workloads),
            level=level,
            status=status,
            evidence=Evidence.VERIFIED if steady else Evidence.UNVERIFIED,
            reasons=tuple(doubt.values()),
            codes=tuple(doubt),
            performance=timed if passed and not untimed else None,
            metrics=(Metric(name="loop_vector_bits", value=said["vector_bits"]),)
            if "vector_bits" in said
            else (),
            diagnostics=(Diagnostic(message=said["error"]),) if "error" in said else (),
            environment=Environment(device=DEVICE, architecture="null", toolchain={}),
            timestamp=datetime.now(UTC),
        )

    def machine_code(self, solution: Solution) -> str:
        return "no loops"

    def machine_code_hash(self, solution: Solution) -> str:
        """`code` in the solution, if it is there."""
        found = re.search(r'"code": "(\w+)"', solution.source("model_new.py"))
        return found[1] if found else ""


def performance(speed: float, compiled: float, spread: float) -> Performance:
    def about(value: float) -> Interval:
        return Interval(point=value, low=value * (1 - spread), high=value * (1 + spread))

    return Performance(
        latency_s=1.0 / speed,
        baseline_s={"eager": 1.0, "compile": 1.0 / compiled},
        speedup={"eager": about(speed), "compile": about(speed / compiled)},
        control=about(1.0),
        blocks=8,
        processes=3,
    )


@dataclass
class NullKnowledge(KnowledgeBase):
    """A knowledge base that knows nothing and remembers what it was told."""

    recorded: list[tuple[str, bool, bool]] = field(default_factory=list)
    success: Mapping[str, float] = field(default_factory=dict)
    lessons: list[tuple[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Strategies that were to be built upon."""
    parents: list[str | None] = field(default_factory=list)
    """Strategies that recorded attempts were built on."""

    def retrieve(
        self, context: Context, languages: Sequence[str], device: str, *, after: str = ""
    ) -> tuple[Strategy, ...]:
        self.asked.append(after)
        return ()

    def expected_gains(self, context: Context, languages: Sequence[str], device: str) -> dict[str, float]:
        return {}

    @property
    def advice(self) -> tuple[Advice, ...]:
        return ()

    def precedents(
        self, definition: str, context: Context, language: str, before: datetime
    ) -> tuple[Precedent, ...]:
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
        *,
        parent: tuple[str, Evaluation] | None = None,
    ) -> str | None:
        self.recorded.append((strategy_id, evaluation.passed, evaluation.verified))
        self.parents.append(parent[0] if parent else None)
        return None

    def learn(self, strategy_id: str, context: Context, evaluation: Evaluation, text: str, **_: Any) -> None:
        assert evaluation.verified
        self.lessons.append((strategy_id, text))


def context_for(bottleneck: Bottleneck) -> Context:
    return Context(op_type="pointwise", shape_class=bottleneck.definition.name)

"""Small nouns to keep in a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from agentforge.schema import (
    Arm,
    Bottleneck,
    Budget,
    BuildSpec,
    CallSite,
    Campaign,
    Context,
    Definition,
    DType,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Performance,
    Profile,
    Run,
    RunStatus,
    Solution,
    SourceFile,
    SuiteProblem,
    Target,
    TensorInput,
    UnknownEvent,
    Workload,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def run(identifier: str = "20260102-0304-llama-7f3a", **changes: Any) -> Run:
    fields: dict[str, Any] = {
        "target": "t" * 16,
        "name": "llama",
        "origin": "llama.py",
        "device": "null",
        "status": RunStatus.CREATED,
        "budget": Budget(minutes=5),
        "created": NOW,
        "updated": NOW,
    }
    return Run(id=identifier, **{**fields, **changes})


def campaign(problems: int = 3, **changes: object) -> tuple[Campaign, list[SuiteProblem]]:
    """A campaign of two arms, and its problems."""
    listed = [SuiteProblem(id=f"p{n}", target=f"p{n}.py", source="x = 1") for n in range(problems)]
    made = Campaign(
        name="night",
        suite="folder:/x",
        problems=problems,
        problems_hash="abc",
        arms=(Arm(name="base", agent="playbook"), Arm(name="llm", agent="openai:m")),
        budget=Budget(minutes=1),
        limit_s=60,
        version="1",
        created=datetime(2026, 1, 2, tzinfo=UTC),
    )
    return made.model_copy(update=changes), listed


def event(kind: str, data: dict[str, Any] | None = None) -> UnknownEvent:
    return UnknownEvent(kind=kind, data=data or {})


def definition(name: str = "norm", reference: str = "class Model: ...") -> Definition:
    return Definition(name=name, op_type="norm", reference=reference)


def workload(rows: int = 64, columns: int = 32) -> Workload:
    x = TensorInput(name="x", shape=(rows, columns), dtype=DType.FLOAT32)
    return Workload(name=f"{rows}x{columns}", inputs=(x,))


def solution(text: str = "pass", **changes: Any) -> Solution:
    fields: dict[str, Any] = {
        "name": "try",
        "definition": definition().hash,
        "author": "playbook",
        "spec": BuildSpec(language="cpp"),
        "sources": (SourceFile(path="model_new.py", content=text),),
    }
    return Solution(**{**fields, **changes})


def performance(over_eager: float = 2.0, spread: float = 0.1, **changes: Any) -> Performance:
    """A speed with an interval of `spread` to either side."""
    about = Interval(point=over_eager, low=over_eager * (1 - spread), high=over_eager * (1 + spread))
    fields: dict[str, Any] = {
        "latency_s": 1.0,
        "baseline_s": {"eager": over_eager},
        "speedup": {"eager": about},
        "control": Interval(point=1.0, low=0.98, high=1.02),
        "blocks": 24,
        "processes": 3,
    }
    return Performance(**{**fields, **changes})


def evaluation(
    solved: Solution | None = None,
    *,
    speedup: float | None = 2.0,
    status: EvaluationStatus = EvaluationStatus.PASSED,
    evidence: Evidence | None = None,
    after_s: float = 0.0,
    **changes: Any,
) -> Evaluation:
    """Verified if it was measured and nothing else is said."""
    measured = None
    if status is EvaluationStatus.PASSED and speedup is not None:
        measured = performance(speedup, baseline_s={"eager": speedup, "compile": speedup * 2})
        measured.speedup["compile"] = Interval(point=speedup * 2, low=speedup, high=speedup * 3)
    fields: dict[str, Any] = {
        "definition": definition().hash,
        "solution": (solved or solution()).hash,
        "workloads": (workload().hash,),
        "level": Level.FULL,
        "status": status,
        "performance": measured,
        "environment": Environment(device="null device", architecture="null", toolchain={"g++": "12.2"}),
        "timestamp": NOW + timedelta(seconds=after_s),
        **changes,
    }
    if evidence is None:
        evidence = Evidence.VERIFIED if fields["performance"] else Evidence.UNVERIFIED
    return Evaluation(evidence=evidence, **fields)


def context(**changes: Any) -> Context:
    fields = {
        "op_type": "norm",
        "shape_class": "dram/many-rows",
        "dtype": "float32",
        "architecture": "null",
        "toolchain": "g++-12",
        "bound": "memory",
    }
    return Context(**{**fields, **changes})


def bottleneck(rows: int = 64, columns: int = 32, nbytes: float = 0.0) -> Bottleneck:
    tensor = TensorInput(name="x", shape=(rows, columns), dtype=DType.FLOAT32)
    site = CallSite(
        name="norm/0",
        nodes=("rsqrt",),
        operators=("aten.rsqrt.default",),
        inputs=(tensor,),
        outputs=(tensor,),
        time_s=1e-3,
        bytes=nbytes,
    )
    return Bottleneck(
        definition=definition(),
        workloads=(workload(rows, columns),),
        call_sites=(site,),
        time_s=1e-3,
        share=0.5,
        sol_s=1e-4,
        bound="memory",
        gain_s=9e-4,
        speedup_limit=1.8,
    )


def profile() -> Profile:
    hot = bottleneck()
    return Profile(
        target="t" * 16,
        device="null device",
        architecture="null",
        total_s=2e-3,
        traces=3,
        attributed=0.99,
        call_sites=hot.call_sites,
        bottlenecks=(hot,),
    )


def target() -> Target:
    whole = Definition(name="llama", op_type="model", reference="class Model: ...")
    return Target(name="llama", origin="llama.py", definition=whole, workloads=(workload(),))

"""A run in which every text that a candidate, a model or a user wrote tries to leave its place."""

from __future__ import annotations

from agentforge.schema import (
    Attempt,
    BuildSpec,
    Citation,
    Classification,
    Critique,
    Definition,
    Diagnostic,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Finding,
    Interval,
    KernelUse,
    Level,
    Metric,
    ModelPlan,
    Plan,
    Profile,
    Reason,
    ResourceUsage,
    SearchSummary,
    Solution,
    SourceFile,
)
from agentforge.store import Store
from tests.loop.conftest import make_run
from tests.loop.scripted import bottleneck, profile
from tests.store import nouns

EVIL = (
    "</span></code></pre></details></style></div><script>alert(1)</script><img src=x onerror=alert(2)>"
    "<a href='javascript:alert(3)'>x</a>'\"&lt;{{ 7 * 7 }}${alert(4)}\u202etxt\x1b[2J\u2028"
)
NEVER_SEEN = ("\u202e", "\x1b", "\u2028")


def fill(store: Store) -> None:
    """Put the run `run` into a store."""
    run = make_run().model_copy(
        update={"name": EVIL, "origin": EVIL, "device": EVIL, "error": EVIL, "artifact": EVIL}
    )
    definition = Definition(name=EVIL, op_type=EVIL, reference=EVIL)
    found = profile(bottleneck("b").model_copy(update={"definition": definition}))
    store.create_run(run)
    store.save_profile("run", Profile.model_validate({**found.model_dump(), "notes": (EVIL,)}))
    plan = ModelPlan(regions=(), author=EVIL, diagnosis=EVIL)
    store.save_record("run", plan)
    store.save_record("run", SearchSummary(reason=EVIL))
    right = _evaluation(definition, EvaluationStatus.PASSED)
    wrong = _evaluation(definition, EvaluationStatus.COMPILE_ERROR)
    first = _attempt(store, definition, 1, right, EVIL)
    second = _attempt(store, definition, 2, wrong, f"{EVIL}\n{EVIL}")
    store.save_attempt(first)
    store.save_attempt(second.model_copy(update={"parent": first.id}))
    store.save_attempt(first.model_copy(update={
        "id": "run/3", "number": 3, "solution": None, "evaluation": None, "error": EVIL, "parent": None,
    }))  # fmt: skip


def _attempt(
    store: Store, definition: Definition, number: int, evaluation: Evaluation, source: str
) -> Attempt:
    citation = Citation(metric=EVIL, value=1.0)
    solution = Solution(
        name=EVIL,
        definition=definition.hash,
        author=EVIL,
        spec=BuildSpec(language=EVIL, entry_point="model_new.py::ModelNew"),
        sources=(SourceFile(path="model_new.py", content=source), SourceFile(path=EVIL, content=source)),
    )
    return Attempt(
        id=f"run/{number}",
        run="run",
        bottleneck=definition.hash,
        number=number,
        plan=Plan(
            strategy=EVIL,
            diagnosis=EVIL,
            evidence=(citation,),
            steps=(EVIL,),
            risks=(EVIL,),
            parameters={EVIL: EVIL},
            author=EVIL,
        ),
        critique=Critique(
            kind="repair",
            error_class=EVIL,
            cause=EVIL,
            change=EVIL,
            lesson=EVIL,
            evidence=(citation,),
            author=EVIL,
        ),
        solution=store.save_solution(solution),
        evaluation=store.save_evaluation(evaluation.model_copy(update={"solution": solution.hash}), "run"),
    )


def _evaluation(definition: Definition, status: EvaluationStatus) -> Evaluation:
    interval = Interval(point=2.0, low=1.9, high=2.1)
    reason = Reason(metric=EVIL, value=1.0, relation="below", threshold=2.0, unit=EVIL)
    finding = Finding(
        source="ncu-line", title=EVIL, message=EVIL, kernel=EVIL, file="model_new.py", line=1, share=0.5
    )
    rates = {
        "achieved_bandwidth": 1e9,
        "achieved_flops": 1e9,
        "bandwidth_ceiling": 1e11,
        "flops_ceiling": 1e12,
    }
    measured = nouns.performance(
        baseline_s={"eager": 1.0, EVIL: 1.0}, speedup={"eager": interval, EVIL: interval}
    )
    return nouns.evaluation(
        definition=definition.hash,
        level=Level.QUICK,
        status=status,
        evidence=Evidence.UNVERIFIED,
        reasons=(EVIL, EVIL),
        diagnostics=(Diagnostic(message=EVIL, file=EVIL, line=1),),
        performance=measured if status is EvaluationStatus.PASSED else None,
        kernels=(KernelUse(name=EVIL, own=True, calls=1),),
        metrics=(
            Metric(name=EVIL, value=1.0, unit=EVIL, source=EVIL, kernel=EVIL),
            *(Metric(name=name, value=value, source="roofline") for name, value in rates.items()),
        ),
        classification=Classification(bound="memory", reasons=(reason,), kernel=EVIL, source=EVIL),
        findings=(finding, finding.model_copy(update={"file": EVIL, "source": "compiler"})),
        resources=(ResourceUsage(kernel=EVIL, target=EVIL, registers=1),),
        environment=Environment(device=EVIL, architecture=EVIL, toolchain={}),
        log=EVIL,
    )

"""The nouns of AgentForge: frozen pydantic models that import no torch.

The field docstrings are the schema; `Model.model_json_schema()` shows them.
"""

from ._base import FrozenModel, NonEmptyString, content_hash
from .call import LLMCall
from .definition import Definition, DType, TolerancePolicy, WorkPolicy
from .errors import (
    AgentForgeError,
    HarnessError,
    MachineError,
    StoreError,
    TargetError,
    UsageError,
)
from .evaluation import (
    Correctness,
    Diagnostic,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    KernelUse,
    Level,
    Metric,
    Performance,
    StageResult,
    merged_metrics,
)
from .feedback import Bound, Classification, Finding, Reason
from .resources import ResourceUsage
from .search import (
    Attempt,
    AttemptStatus,
    Budget,
    Citation,
    Critique,
    Event,
    ModelPlan,
    Plan,
    RegionPlan,
    Run,
    RunStatus,
    Usage,
)
from .solution import BuildSpec, Solution, SourceFile
from .strategy import Context, Lesson, Outcome, Strategy, StrategyRecord
from .target import Bottleneck, CallSite, Profile, Target
from .workload import Distribution, InputSpec, ScalarInput, TensorInput, Workload

__all__ = [
    "AgentForgeError",
    "Attempt",
    "AttemptStatus",
    "Bottleneck",
    "Bound",
    "Budget",
    "BuildSpec",
    "CallSite",
    "Citation",
    "Classification",
    "Context",
    "Correctness",
    "Critique",
    "DType",
    "Definition",
    "Diagnostic",
    "Distribution",
    "Environment",
    "Evaluation",
    "EvaluationStatus",
    "Event",
    "Evidence",
    "Finding",
    "FrozenModel",
    "HarnessError",
    "InputSpec",
    "Interval",
    "KernelUse",
    "LLMCall",
    "Lesson",
    "Level",
    "MachineError",
    "Metric",
    "ModelPlan",
    "NonEmptyString",
    "Outcome",
    "Performance",
    "Plan",
    "Profile",
    "Reason",
    "RegionPlan",
    "ResourceUsage",
    "Run",
    "RunStatus",
    "ScalarInput",
    "Solution",
    "SourceFile",
    "StageResult",
    "StoreError",
    "Strategy",
    "StrategyRecord",
    "Target",
    "TargetError",
    "TensorInput",
    "TolerancePolicy",
    "Usage",
    "UsageError",
    "WorkPolicy",
    "Workload",
    "content_hash",
    "merged_metrics",
]

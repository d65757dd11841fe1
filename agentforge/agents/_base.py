"""The contract of the agents. They only return data; the supervisor decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentforge.registry import Registry
from agentforge.schema import (
    Bottleneck,
    Context,
    Critique,
    Evaluation,
    ModelPlan,
    Plan,
    Profile,
    Solution,
    Strategy,
    Usage,
)


@dataclass(frozen=True)
class Hardware:
    """What the agents may know of the machine."""

    device: str
    """Readable name."""
    architecture: str
    threads: int
    bandwidth: float
    """Measured copy bandwidth, bytes/s (read + written)."""
    peak_flops: float
    """Measured fp32 rate, FLOP/s."""
    cache_bytes: tuple[int, ...] = ()
    """Data caches, L1 first."""


@dataclass(frozen=True)
class Past:
    """An earlier attempt at this bottleneck, in this run."""

    id: str
    parent: str | None
    plan: Plan | None
    solution: Solution | None
    evaluation: Evaluation | None
    critique: Critique | None
    error: str = ""


@dataclass(frozen=True)
class Learned:
    """What an attempt of this run taught, and nothing measured since contradicts."""

    number: int
    """Of the attempt."""
    region: str
    """Name of its definition."""
    strategy: str
    expected_speedup: float
    speedup: float
    """Measured, over the best baseline, as was expected."""
    verified: bool
    text: str


@dataclass(frozen=True)
class Task:
    """Everything an agent is shown of the problem."""

    bottleneck: Bottleneck
    hardware: Hardware
    context: Context
    """Key of the knowledge base's records."""
    strategies: tuple[Strategy, ...]
    """Applicable strategies with their records in this context, best expected first."""
    languages: tuple[str, ...] = ("cpp",)
    past: tuple[Past, ...] = field(default=())
    """Attempts so far, oldest first; the one that is being made is among them once it is planned."""
    attempt: str = ""
    """Identifier of the attempt that is being made."""
    lessons: tuple[Learned, ...] = ()
    """What this run taught so far, at all bottlenecks, oldest first."""


@dataclass(frozen=True)
class Whole:
    """Everything that is known of a model before any of its regions is planned."""

    profile: Profile
    hardware: Hardware
    success: Mapping[str, float]
    """The knowledge base's probability that an attempt gains, by hash of the region's definition."""


@dataclass(frozen=True)
class Draft:
    """What a coder returns."""

    solution: Solution
    usage: Usage = field(default_factory=Usage)


class ModelPlanner(Protocol):
    """Plans across a model's regions. Thread-safe."""

    name: str

    def plan_model(self, whole: Whole) -> ModelPlan:
        """What to fuse, in which order, and what to leave; names each region of the profile once."""
        ...


class Planner(Protocol):
    """Proposes what to try next. Thread-safe."""

    name: str

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        """The next plan, building on `parent` where one is given; None when nothing is left to try."""
        ...


class Coder(Protocol):
    """Writes a solution for a plan. Thread-safe."""

    name: str

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        """Write a full solution. With a `parent` whose critique is a repair, mend it.

        Raises:
            CannotCode: the plan cannot be carried out for this definition; the message says why.
        """
        ...


class Judge(Protocol):
    """Reads an evaluation. Thread-safe."""

    name: str

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        """What to do next with this solution; cites measured values."""
        ...


class Author(Protocol):
    """Writes down what a user asks for in words. Thread-safe."""

    name: str

    def write(
        self, intent: str, hardware: Hardware, earlier: str = "", objection: str = ""
    ) -> tuple[str, Usage]:
        """A reference in KernelBench's convention, and what it cost.

        Args:
            intent: what to compute.
            hardware: what it will be computed on.
            earlier: the reference that was written before.
            objection: why that one cannot be used.
        """
        ...


class CannotCode(Exception):
    """A plan that this coder cannot carry out: data for the loop, not an infrastructure failure."""


_PLAYBOOK = "agentforge.agents.playbook"

model_planners: Registry[ModelPlanner] = Registry(
    "model_planners", {"playbook": f"{_PLAYBOOK}.model:PlaybookModelPlanner"}
)
planners: Registry[Planner] = Registry("planners", {"playbook": f"{_PLAYBOOK}.planner:PlaybookPlanner"})
coders: Registry[Coder] = Registry("coders", {"playbook": f"{_PLAYBOOK}.coder:PlaybookCoder"})
judges: Registry[Judge] = Registry("judges", {"playbook": f"{_PLAYBOOK}.judge:PlaybookJudge"})

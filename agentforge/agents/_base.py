"""Protocols of the agents. Agents only return data; the supervisor decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from agentforge.registry import Registry
from agentforge.schema import (
    Advice,
    Attempt,
    BestBaseline,
    Bottleneck,
    CardKind,
    Context,
    Critique,
    Evaluation,
    EvaluationStatus,
    Level,
    ModelPlan,
    Plan,
    Precedent,
    Profile,
    Solution,
    Strategy,
    Trial,
    Usage,
)


@dataclass(frozen=True)
class Hardware:
    """What agents know of the machine."""

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
    cores: int = 0
    """Physical cores that the threads run on; 0 if unknown."""
    vector_bits: int = 0
    """Width of a CPU's vector registers; 0 if unknown."""

    @property
    def parallel(self) -> str:
        """What works side by side: `16 threads`, or `132 multiprocessors` of a GPU."""
        return f"{self.threads} {'multiprocessors' if self.architecture.startswith('sm_') else 'threads'}"


CODER_FAILED = "the coder failed"
"""So begins the error of an attempt for which nothing was written although its plan was not refused, for
example after a failed call of a model."""

PLANNER_FAILED = "the planner failed"
"""So begins the error of an attempt for which nothing was planned."""


@dataclass(frozen=True)
class Past:
    """An earlier attempt at this bottleneck in this run."""

    id: str
    parent: str | None
    plan: Plan | None
    solution: Solution | None
    evaluation: Evaluation | None
    critique: Critique | None
    error: str = ""
    trials: tuple[Trial, ...] = ()
    """Points of its parameters that the tuner measured."""


def call_failed(attempt: Attempt | Past) -> bool:
    """Whether its planner or its coder failed, so that it used up neither a repair nor a judge's change."""
    return not attempt.solution and attempt.error.startswith((CODER_FAILED, PLANNER_FAILED))


def cheated(past: Past) -> bool:
    """True if the referee's status is CHEATING."""
    return past.evaluation is not None and past.evaluation.status is EvaluationStatus.CHEATING


def honest(past: Sequence[Past]) -> tuple[Past, ...]:
    """The attempts, oldest first, without those with the status CHEATING and what builds on them, however far
    back."""
    cheats = set[str | None]()
    for one in past:
        if cheated(one) or one.parent in cheats:
            cheats.add(one.id)
    return tuple(one for one in past if one.id not in cheats)


@dataclass(frozen=True)
class ShownLesson:
    """A lesson of this run that no later measurement contradicts."""

    number: int
    """Identifier of the attempt."""
    region: str
    """Name of the definition."""
    strategy: str
    expected_speedup: float
    speedup: float
    """Measured speedup over the best baseline; so is the expected one."""
    verified: bool
    text: str
    credit: float = 0.0
    """Sum of what the attempts gained in reward whose plans rest on it; below 0 for a loss."""
    used: int = 0
    """Number of these attempts."""
    finding: bool = False
    """It is what a compiler, an emulator or a sanitizer said of a failure, and no judge's."""


@dataclass(frozen=True)
class Aim:
    """What the machine code of the next attempt shall be (`search/cells.py`)."""

    levels: tuple[tuple[str, int, int], ...]
    """Dimension, its level in the attempt that is built upon, and the level that is wanted."""
    moves: tuple[tuple[str, int, float, int], ...] = ()
    """What moves brought in this run: dimension, direction (1 or -1), mean factor of speed, number."""


Check = Callable[[Solution, Level], Evaluation | None]
"""Evaluates a solution up to its first failure: at `smoke` on one input, at `quick` on more, with a brief
timing; None if the budget does not allow it."""


Advise = Callable[[Collection[CardKind], Evaluation | None, str], tuple[Advice, ...]]
"""Chooses cards of some kinds for an evaluation (None before the first) and a text."""


@dataclass(frozen=True)
class Task:
    """A bottleneck and all that an agent is shown about it."""

    bottleneck: Bottleneck
    hardware: Hardware
    context: Context
    """Key of the knowledge base's records."""
    strategies: tuple[Strategy, ...]
    """Applicable strategies with their records in this context, highest expected speedup first."""
    languages: tuple[str, ...] = ("cpp",)
    past: tuple[Past, ...] = field(default=())
    """Attempts so far, oldest first, including the current one once it is planned."""
    attempt: str = ""
    """Identifier of the current attempt."""
    lessons: tuple[ShownLesson, ...] = ()
    """Lessons of this run from all bottlenecks, oldest first."""
    advise: Advise | None = field(default=None, compare=False)
    """Chooses cards of the knowledge base that are no techniques; None if there are none."""
    served: set[str] = field(default_factory=set, compare=False)
    """Identifiers of the cards that the agent's model is shown; the agent adds them, and they are counted."""
    check: Check | None = field(default=None, compare=False)
    """For coders: judges a solution before it becomes the attempt's; None if that is not wanted."""
    measure: Check | None = field(default=None, compare=False)
    """For coders: judges a solution that is nobody's attempt, for comparison."""
    aim: Aim | None = None
    """What the search policy asks for; None if for nothing."""
    tunable: bool = False
    """For coders: `@tune` comments are followed."""
    drafts: int = 1
    """For coders: drafts that a language model writes for the plan."""
    coder: str = ""
    """Model that the bandit drew for the current attempt; empty without a bandit."""
    directive: str = ""
    """Fragment of the coder's prompt that was drawn for the current attempt; empty without any."""
    precedents: Callable[[str], tuple[Precedent, ...]] | None = field(default=None, compare=False)
    """For coders: verified solutions in a language, from earlier runs, of this problem or of the most similar
    one; None if they are not wanted."""
    contrast_tokens: int = 0
    """Most tokens of such solutions in one prompt."""
    machine_code: Callable[[Solution], str] | None = field(default=None, compare=False)
    """For coders: machine code of a solution's hot loops, as text; None if it cannot be read."""
    twin: Callable[[Solution], str] | None = field(default=None, compare=False)
    """For coders: why a solution is no new one, by its machine code; empty if it is."""
    exclusive: AbstractContextManager[Any] | None = field(default=None, compare=False)
    """Held while something is built or measured; a tool that loads the machine enters it."""

    @cached_property
    def best_baseline(self) -> BestBaseline:
        """Over which the attempts' speedups are shown and compared."""
        return BestBaseline.of(past.evaluation for past in self.past)


@dataclass(frozen=True)
class ModelContext:
    """All that is known of a model before any of its regions is planned."""

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
    """Plans across the regions of a model. Thread-safe."""

    name: str

    def plan_model(self, whole: ModelContext) -> ModelPlan:
        """Which regions to fuse, in which order, and which to leave. Names each region of the profile
        once."""
        ...


class NothingLeft(Exception):
    """A planner has nothing left to propose for a bottleneck, whatever the parent."""


class Planner(Protocol):
    """Proposes what to try next. Thread-safe."""

    name: str

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        """The next plan, building on `parent` if one is given; None if nothing is left to try with it.

        Raises:
            NothingLeft: nothing is left with any parent, so the search leaves the bottleneck.
        """
        ...


class Coder(Protocol):
    """Writes a solution for a plan. Thread-safe."""

    name: str

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        """Write a full solution. If the critique of `parent` is a repair, carry it out.

        Raises:
            CannotCode: the plan cannot be carried out for this definition.
        """
        ...


class Judge(Protocol):
    """Reads an evaluation. Thread-safe."""

    name: str

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        """What to do next with this solution; cites measured values."""
        ...


class Author(Protocol):
    """Writes a PyTorch reference for a computation described in words. Thread-safe."""

    name: str

    def write(
        self, intent: str, hardware: Hardware, earlier: str = "", objection: str = "", *, attempt: str = ""
    ) -> tuple[str, Usage]:
        """A reference in KernelBench's convention, and the usage of the calls.

        Args:
            earlier: the previous reference, if it was rejected.
            objection: why it was rejected.
            attempt: equal calls of another attempt get answers of their own.
        """
        ...


class Editor(Protocol):
    """Edits fragments of the coder's prompt. Thread-safe."""

    name: str

    def edit(self, text: str, others: Collection[str], examples: Sequence[tuple[Past, float]]) -> str:
        """Another fragment, of at most `MOST_DIRECTIVE` characters.

        Args:
            text: the fragment to edit; empty to write a first one.
            others: fragments that exist.
            examples: attempts that were written with it, with what each gained in reward, best first.
        """
        ...


AgentOptions = Mapping[str, Mapping[str, Any]]
"""Options by agent, as in the setting `search.agent_options`."""

_PLAYBOOK = "agentforge.agents.playbook"

model_planners: Registry[ModelPlanner] = Registry(
    "model_planners", {"playbook": f"{_PLAYBOOK}.model_planner:PlaybookModelPlanner"}
)
planners: Registry[Planner] = Registry("planners", {"playbook": f"{_PLAYBOOK}.planner:PlaybookPlanner"})
coders: Registry[Coder] = Registry("coders", {"playbook": f"{_PLAYBOOK}.coder:PlaybookCoder"})
authors: Registry[Author] = Registry("authors", {})
"""Authors of plug-ins; a language model is an author without being registered."""
judges: Registry[Judge] = Registry("judges", {"playbook": f"{_PLAYBOOK}.judge:PlaybookJudge"})

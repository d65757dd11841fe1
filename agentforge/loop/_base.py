"""What the loop is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from agentforge.agents import Author, Coder, Editor, Judge, ModelPlanner, Planner, model_planners
from agentforge.schema import Bottleneck, Context, Evaluation, Event, Profile, Solution

OnEvent = Callable[[Event], None]
"""Called with each event after it was stored; views read nothing else."""


@dataclass(frozen=True)
class Agents:
    """Who proposes in a run."""

    planner: Planner
    coder: Coder
    judge: Judge
    model_planner: ModelPlanner = field(default_factory=lambda: model_planners.create("playbook"))
    """Says which regions are begun in which order, and which are left."""
    author: Author | None = None
    """Writes the reference of a run that begins with words."""
    editor: Editor | None = None
    """Edits fragments of the coder's prompt; None if none are used."""


class PendingAttempt(TypedDict):
    """An attempt that is being made, as checkpoints hold it: identifiers only."""

    attempt: str
    bottleneck: str
    """Hash of the definition."""
    parent: str | None
    """Attempt that it builds on, as the policy chose it."""
    target: NotRequired[tuple[int, ...]]
    """Cell of machine code that the policy asks for; empty if for none."""
    coder: NotRequired[str]
    """Model that the bandit drew; empty without a bandit."""
    directive: NotRequired[str]
    """Fragment of the coder's prompt that was drawn; empty without any."""
    round: int
    """Number of the first attempt that is made at the same time."""


@dataclass(frozen=True)
class SearchedBottleneck:
    """A bottleneck with what does not change while it is searched."""

    bottleneck: Bottleneck
    context: Context
    """Under which the knowledge base keeps its results."""
    prior: float
    """The knowledge base's probability, 0 to 1, before the run, that an attempt gains."""
    strategies: tuple[tuple[str, float], ...] = ()
    """Applicable strategies with the expected gain in log speedup of each before the run, best first."""
    skip_reason: str = ""
    """Why the plan for the whole model leaves it as it is; empty if it does not."""


@dataclass(frozen=True)
class Win:
    """The fastest verified solution of a bottleneck."""

    bottleneck: Bottleneck
    attempt: str
    solution: Solution
    evaluation: Evaluation
    """At level `full`, `verified`."""


@dataclass(frozen=True)
class SearchResult:
    """What a search ended with; all of it is in the store too."""

    profile: Profile
    """With the regions that the plan merged."""
    wins: tuple[Win, ...]
    """In the profile's order of bottlenecks; none for one that nothing beat eager on."""
    attempts: int
    reason: str
    """Why it stopped, for a person: the budget that ran out, or that nothing is worth another attempt."""
    out_of_budget: bool
    """True if `resume` with a larger budget would continue."""

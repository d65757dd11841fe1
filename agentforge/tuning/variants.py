"""What can be tuned in an attempt, and the solution of each point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentforge.agents import Task, coders
from agentforge.languages.tune import BadTune, tunables, with_values
from agentforge.schema import CannotCode, Plan, Solution

from .study import Space, Value

PLAYBOOK = "playbook"


@dataclass(frozen=True)
class Variants:
    """The points of one attempt."""

    space: Space
    """Parameters with at least two values; empty if nothing can be tuned."""
    start: Mapping[str, Value]
    """The point of the attempt as it was written."""
    write: Callable[[Mapping[str, Value]], Solution | None]
    """The solution of a point; None if there is none."""


def variants_of(task: Task, plan: Plan, solution: Solution) -> Variants:
    """Parameters of the card if the playbook wrote the solution, else its `@tune` comments."""
    if solution.author == PLAYBOOK:
        return _of_card(task, plan, solution)
    try:
        found = tunables(solution)
    except BadTune:
        found = ()
    space = {one.name: one.values for one in found}
    start = {one.name: one.default for one in found}
    return Variants(space, start, lambda point: with_values(solution, {k: int(v) for k, v in point.items()}))


def _of_card(task: Task, plan: Plan, solution: Solution) -> Variants:
    card = next((s for s in task.strategies if s.id == plan.strategy and s.template), None)
    own = {**plan.parameters, **solution.parameters}
    space: dict[str, tuple[Value, ...]] = {}
    for name, values in card.parameters.items() if card else ():
        known = dict.fromkeys((*values, own.get(name, values[0])) if values else ())
        if len(known) > 1:
            space[name] = tuple(known)
    coder = coders.create(PLAYBOOK)

    def write(point: Mapping[str, Value]) -> Solution | None:
        other = plan.model_copy(update={"parameters": {**own, **point}})
        try:
            return coder.code(task, other, None).solution
        except CannotCode:
            return None

    return Variants(space, {name: own.get(name, values[0]) for name, values in space.items()}, write)

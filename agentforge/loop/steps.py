"""The stations of the graph: each takes a round of attempts one step further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict

from agentforge.search import Choice, Node, SearchPolicy, Tree

from .standing import FINISHED, FIRST_COST_S, PRIOR_WEIGHT
from .supervisor import Child, Supervisor


def union(before: list[str], more: list[str]) -> list[str]:
    """Both without repetition: attempts of a round may close bottlenecks side by side."""
    return list(dict.fromkeys([*before, *more]))


class State(TypedDict, total=False):
    """What the graph's checkpoints hold: identifiers only."""

    round: list[Child]
    """Attempts that are being made, in the order of their numbers."""
    planless: Annotated[list[str], union]
    """Bottlenecks for which the planner has nothing left, or that cannot be judged."""
    reason: str
    """Why the search is over; empty while it goes on."""


@dataclass(frozen=True)
class Steps:
    """The stations, in the order of the graph."""

    supervisor: Supervisor
    policy: SearchPolicy
    width: int = 1
    """Most attempts that are made at a time."""

    def select(self, state: State) -> State:
        """Go on with unfinished attempts, or choose bottlenecks and parents for new ones."""
        attempts = self.supervisor.journal.attempts()
        unfinished = [a for a in attempts if a.status not in FINISHED]
        if unfinished:
            first = unfinished[0].number
            return {"round": [Child(attempt=a.id, bottleneck=a.bottleneck, parent=a.parent, round=first)
                              for a in unfinished], "reason": ""}  # fmt: skip
        if reason := self.supervisor.out_of_budget(new_attempts=0):
            return {"round": [], "reason": reason}
        children = self._choose(self.trees(state.get("planless", [])))
        reason = "" if children else "nothing left is worth another attempt"
        return {"round": children, "reason": reason}

    def plan(self, state: State) -> State:
        """Plan attempts of one bottleneck in turn, each in sight of the plans before it."""
        for child in state["round"]:
            if not self._may_go_on():
                break
            if not self.supervisor.plan(child):
                return {"planless": [child["bottleneck"]]}
        return {}

    def code(self, state: State) -> State:
        """Write and compile; attempts side by side."""
        for child in state["round"]:
            if self._may_go_on():
                self.supervisor.code(child)
            if self.width > 1:
                self.supervisor.build(child)
        return {}

    def evaluate(self, state: State) -> State:
        """Measure one after the other: nothing else runs on the device meanwhile."""
        refused = []
        for child in state.get("round", []):
            if self._may_go_on() and not self.supervisor.evaluate(child):
                refused.append(child["bottleneck"])
        return {"planless": refused}

    def judge(self, state: State) -> State:
        """Ask the judge; attempts side by side. What was measured is judged, budget or not."""
        for child in state["round"]:
            self.supervisor.judge(child)
        return {}

    def record(self, state: State) -> State:
        """Promote and remember, in the order of the attempts' numbers."""
        for child in state.get("round", []):
            self.supervisor.record(child)
        return {}

    def out_of_budget(self) -> bool:
        """Whether no further step may be taken."""
        return not self._may_go_on()

    def _may_go_on(self) -> bool:
        return not self.supervisor.out_of_budget()

    def _choose(self, trees: list[Tree]) -> list[Child]:
        """As many children as may be made at a time, each chosen as if those before it were under way."""
        journal = self.supervisor.journal
        number = first = max((a.number for a in journal.attempts()), default=0) + 1
        children: list[Child] = []
        while len(children) < self.width and not self.supervisor.out_of_budget(new_attempts=len(children)):
            choice = self.policy.select(trees)
            if choice is None:
                break
            child = Child(
                attempt=journal.attempt_id(number),
                bottleneck=choice.bottleneck,
                parent=choice.parent,
                round=first,
            )
            children.append(child)
            trees = [_with(tree, choice, child["attempt"]) for tree in trees]
            number += 1
        return children

    def trees(self, planless: Sequence[str]) -> list[Tree]:
        """What the search policy sees of all bottlenecks, in the order in which they shall be begun."""
        journal, settings = self.supervisor.journal, self.supervisor.settings
        attempts = journal.attempts()
        costs = [a.usage.seconds for a in attempts if a.usage.seconds > 0]
        cost_s = sum(costs) / len(costs) if costs else FIRST_COST_S
        last = attempts[-1].bottleneck if attempts else None
        return [
            self.supervisor.standing(name).tree(
                settings,
                prior=problem.prior,
                cost_s=cost_s,
                planless=name in planless or bool(problem.left),
                warm=name == last,
            )
            for name, problem in self.supervisor.problems.items()
        ]


def _with(tree: Tree, choice: Choice, attempt: str) -> Tree:
    """The tree with a chosen attempt under way in it."""
    if tree.bottleneck != choice.bottleneck:
        return tree
    nodes = tuple(
        replace(node, children=node.children + 1) if node.id == choice.parent else node for node in tree.nodes
    )
    begun = Node(attempt, choice.parent, False, False, None, "", 0)
    seen = PRIOR_WEIGHT + len(tree.nodes)  # counted as one without a gain, until more is known
    return replace(tree, nodes=(*nodes, begun), success=tree.success * seen / (seen + 1))

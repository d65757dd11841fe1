"""Replay a search policy on a recorded landscape, on a simulated clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from agentforge.agents.playbook.judge import MUCH_SLOWER
from agentforge.loop.bottleneck_state import WORTH_VERIFYING
from agentforge.schema import EvaluationStatus
from agentforge.search import Node, Tree, TreePolicy
from agentforge.search.reward import BASELINE, BROKEN, FAILED, speed_reward
from search.landscape import Verdict
from search.proposers import Proposer, Space, chance_of

FULL_S = 15.0
"""Assumed seconds of a full verdict: landscapes have quick ones."""


@dataclass
class Search:
    """One search by one policy; call `run`."""

    space: Space
    policy: TreePolicy
    proposer: Proposer
    seed: int
    steps: list[tuple[float, float, float]] = field(default_factory=list)
    """After each attempt: seconds, dollars, and the log speedup of the fastest with a full verdict; before
    there is one, the landscape's mean."""

    def __post_init__(self) -> None:
        landscape = self.space.landscape
        self.tree = Tree(
            bottleneck=landscape.definition,
            time_s=landscape.time_s,
            reachable_s=landscape.reachable_s,
            success=0.5,
            cost_s=1.0,
            nodes=(),
            seed=f"{self.seed} {landscape.name} {self.proposer.name}",
            strategies=landscape.strategies,
        )
        self._limit = landscape.time_s / landscape.reachable_s
        self._fastest, self._found = 0.0, -math.inf
        self._seen: set[str] = set()
        self._intended: dict[str, str] = {}

    def run(self, attempts: int) -> list[tuple[float, float, float]]:
        """Search until the policy ends, all solutions were seen, or after this number of attempts."""
        while len(self.steps) < attempts and self._step():
            pass
        return self.steps

    def _step(self) -> bool:
        choice = self.policy.select(self.tree)
        if choice is None:
            return False
        landscape, number = self.space.landscape, len(self.tree.nodes)

        def chance(decision: str) -> Random:
            return chance_of(self.seed, landscape.name, self.proposer.name, number, decision)

        by_id = {node.id: node for node in self.tree.nodes}
        parent = by_id.get(choice.parent or "")
        repairing = parent is not None and not parent.passed
        if parent is not None and repairing:
            solution = self._intended[parent.id]
            failed = chance("repair").random() >= self.proposer.repair
            status = self.proposer.failure(chance("fault"), surely=True) if failed else None
        else:
            solution = self._change(parent, choice.target, chance("change"))
            if not solution:
                parent, solution = None, self._start(by_id, chance("start"))
            status = self.proposer.failure(chance("fault"))
        if not solution:
            return False
        verdicts = landscape.verdicts[solution]
        drawn = chance("verdict").choice(verdicts)
        self._intended[str(number)] = solution
        full_s = FULL_S if status is None and self._promising(drawn.speedup) else 0.0
        node = self._judged(
            number, parent, solution, status or drawn.status, drawn, own_fault=status is not None
        )
        node = replace(node, target=choice.target)
        self._spend(drawn, max(v.build_s for v in verdicts) + full_s, status)
        nodes = list(self.tree.nodes)
        if parent is not None:
            nodes[int(parent.id)] = replace(parent, children=parent.children + 1)
        self.tree = replace(self.tree, nodes=(*nodes, node))
        return True

    def _change(self, parent: Node | None, target: tuple[int, ...], chance: Random) -> str:
        if parent is None:
            return ""
        if target:
            near = self.space.landscape.verdicts
            hits = [
                s for _, s in self.space.changes(parent.solution, self._seen) if near[s][0].cell == target
            ]
            if hits and chance.random() < self.proposer.insight:
                return chance.choice(hits)
        return self.space.change(self.proposer, parent.solution, self._seen, chance)

    def _start(self, by_id: Mapping[str, Node], chance: Random) -> str:
        begun = {node.strategy for node in by_id.values()}
        return self.space.start(self.proposer, self._seen, begun, chance)

    def _judged(
        self, number: int, parent: Node | None, solution: str, status: EvaluationStatus, drawn: Verdict,
        *, own_fault: bool,
    ) -> Node:  # fmt: skip
        """The attempt as a policy sees it. The judge follows the playbook's rules; it wants a repair of what
        the proposer did wrong, and gives up a point that fails in the recording."""
        passed = status is EvaluationStatus.PASSED
        speedup = drawn.speedup if passed else None
        if self._promising(speedup):
            gain = self.space.landscape.gains[solution]
            speedup, self._found = math.exp(gain), max(self._found, gain)
        verdict, reward = "repair" if own_fault else "abandon", FAILED.get(status, BROKEN)
        if not own_fault:
            self._seen.add(solution)
        if passed:
            reward = speed_reward(speedup, self._limit) if speedup is not None else BASELINE
            left = self.space.changes(solution, self._seen)
            verdict = "optimize" if left and speedup is not None else "accept"
            if speedup is not None and speedup < MUCH_SLOWER * self._fastest:
                verdict = "abandon"
            self._fastest = max(self._fastest, speedup or 0.0)
        return Node(
            id=str(number),
            parent=parent.id if parent else None,
            passed=passed,
            finished=True,
            speedup=speedup,
            verdict=verdict,
            children=0,
            reward=reward,
            strategy=self.space.strategy(solution),
            solution="" if own_fault else solution,
            cell=drawn.cell if passed else (),
        )

    def _promising(self, speedup: float | None) -> bool:
        """Whether it looks enough faster than the fastest before it for a full verdict; the estimate from all
        verdicts serves as that. In the loop a baseline is the first to beat; here none is."""
        return speedup is not None and speedup > WORTH_VERIFYING * math.exp(self._found)

    def _spend(self, drawn: Verdict, build_s: float, failed: EvaluationStatus | None) -> None:
        """A verdict costs what it cost when it was recorded, with the build; a compile error only the build,
        and another failure of the proposer as much as the verdict."""
        judged = 0.0 if failed is EvaluationStatus.COMPILE_ERROR else drawn.seconds - drawn.build_s
        seconds, dollars = self.steps[-1][:2] if self.steps else (0.0, 0.0)
        self.steps.append(
            (
                seconds + self.proposer.seconds + build_s + judged,
                dollars + self.proposer.dollars,
                self._found if self._found > -math.inf else self.space.landscape.mean,
            )
        )


def random_search(gains: list[float], most: int) -> list[float]:
    """The calculated expectation of the best of 1, 2, ... `most` solutions drawn without replacement.

    Willemsen et al.'s measure for tuners. It knows neither noise nor failures.
    """
    ordered, total = sorted(gains), len(gains)
    found = []
    for drawn in range(1, most + 1):
        n = min(drawn, total)
        weights = [math.comb(i, n - 1) for i in range(total)]
        found.append(sum(g * w for g, w in zip(ordered, weights, strict=True)) / math.comb(total, n))
    return found

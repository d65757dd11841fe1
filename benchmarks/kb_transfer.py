"""Measure whether experience transfers: evaluations to the best kernel, with experience and without.

    python benchmarks/kb_transfer.py                      # writes benchmarks/results/kb_transfer.json
    python benchmarks/kb_transfer.py --landscapes a.jsonl.gz b.jsonl.gz --out mine.json
    python benchmarks/kb_transfer.py --table              # write the table into docs/transfer.md

Each recorded landscape (`search/record.py`) is searched by the search policy. The knowledge base ranks the
strategies, learns from each verdict as in a run, and begins with one of these:

- `cold`: the cards alone.
- `warm`: what cold searches of other landscapes left, 20 evaluations each.
- `permuted`: the same, but in each landscape the results are assigned to its tries at random.
- `elsewhere`: the same, as if it were from the next architecture; with `--other FILE`, what searches of
  another machine's landscapes left.
- `poisoned`: the cards, and the claims of all bundles of `kb_poison/` about this very context.

The other landscapes are, for `new shapes`, all but this one (one of the same operator is among them); for
`new operators`, those of other operators (one of the same class is among them); for `new families`, those of
other operator classes. A ratio is the median over landscapes of evaluations divided by those of the cold
search, with a bootstrap interval over landscapes and seeds. A search that does not get there counts one more
evaluation than the most, or than there are solutions. It is there at 95 % of the way from the mean of the
recorded solutions to the best, or one standard error below the best. The same seed means the same noise for
all arms. The agreement of an arm is the rank correlation between what it expects of the solutions before the
search and what was recorded, without a policy and without noise. `poisoned` has none of its own, because
claims reorder the ranks after the first and change no expectation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import spearmanr

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _provenance import provenance  # noqa: E402
from search.lab import ENOUGH, LANDSCAPES, LEAST_GAIN  # noqa: E402
from search.landscape import SHAPES, Landscape, Point, Value, Verdict, read, run  # noqa: E402
from search.proposers import Proposer, Space  # noqa: E402
from search.replay import Search  # noqa: E402

from agentforge.agents.playbook.facts import Parameters, changes, start  # noqa: E402
from agentforge.knowledge import Bundle, KnowledgeBase, import_knowledge, read_bundle  # noqa: E402
from agentforge.knowledge.ranking.similarity import similarity  # noqa: E402
from agentforge.resources import resource  # noqa: E402
from agentforge.schema import (  # noqa: E402
    BuildSpec,
    Context,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Outcome,
    Performance,
    Solution,
    SourceFile,
    Strategy,
)
from agentforge.search import Node, TreePolicy, policies  # noqa: E402
from agentforge.store import Store  # noqa: E402
from tools.generated import GeneratedPart  # noqa: E402

RESULTS = HERE / "results" / "kb_transfer.json"
TABLE = GeneratedPart("docs/transfer.md", "transfer", "benchmarks/kb_transfer.py --table")

MOST, TRAINING = 60, 20
"""Evaluations of a search, and of one that gives experience."""
SEEDS, RESAMPLES = 5, 2000
MOST_BEST = 1 / 3
"""Largest share of solutions that count as the best; with more of them a search has nothing to find."""
PLAYBOOK = Proposer("playbook", 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
"""Chooses by the knowledge base and by the cards' order, and makes no mistakes."""
EXPECTING = ("warm", "permuted", "elsewhere")
"""Arms whose expectations are not those of the cold one."""
ARMS = (*EXPECTING, "poisoned")
ORDERS = ("true order", "cards' first, then true order", "mean of the others", "mean of similar ones")
"""Points by their recorded gain, also after the first attempt of the cards; and by the mean gain of the same
points in the other landscapes, from all their verdicts. None of them follows the policy's parents."""
GOALS = {"new shapes": 1 / 3, "new operators": 1 / 2, "new families": 0.9}
"""Largest ratio of the warm arm."""
MOST_HARM = 0.1
"""Largest share of landscapes on which the warm arm is slower."""
ABOUT = 0.1
"""Largest distance from 1 of a ratio that is about 1."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_ONE = Interval(point=1.0, low=1.0, high=1.0)

Numbers = np.ndarray[Any, np.dtype[np.float64]]
Train = Callable[[Landscape, Landscape], bool]


class Memory:
    """A knowledge base in memory whose outcomes are replaced before each search."""

    def __init__(self, playbook: Path) -> None:
        self.store = Store("sqlite:///:memory:")
        self.base = KnowledgeBase(self.store, (playbook,), clock=lambda: NOW)

    def holding(self, outcomes: Iterable[Outcome], claims: Bundle | None = None) -> KnowledgeBase:
        """The knowledge base with these outcomes, and with these claims of another database."""
        self.store.remove_outcomes([outcome.id for outcome in self.store.outcomes()])
        self.store.record_outcomes(outcomes)
        if claims is not None:
            import_knowledge(self.store, claims)
        return self.base


class InformedSearch(Search):
    """A search whose starts are chosen by a knowledge base, which learns from each verdict.

    Args:
        context: of the landscape.
    """

    def __init__(
        self, space: Space, policy: TreePolicy, seed: int, knowledge: KnowledgeBase, context: Context
    ) -> None:
        super().__init__(space, policy, PLAYBOOK, seed)
        self._asked = asked(context)
        self._knowledge, self._full = knowledge, False
        self._points = {_key(p.strategy, p.parameters): p for p in space.landscape.points if p.solution}
        self._chosen, self._made = Point(strategy="-", refused="-"), list[Point]()
        self._retrieved: tuple[int, tuple[Strategy, ...]] = (-1, ())
        ranked = knowledge.ranked(*self._asked)
        known = tuple((s.id, belief.value) for s, belief in ranked if s.id in space.starts)
        self.tree = replace(self.tree, strategies=known, success=ranked[0][1].p_gain if ranked else 0.0)

    def _start(self, by_id: Mapping[str, Node], chance: Random) -> str:
        """The best strategy that was not begun; then a change of the fastest attempt."""
        begun = {point.strategy for point in self._made}
        for strategy in self._strategies:
            first = next((p for p in self._points.values() if p.strategy == strategy.id), None)
            if first is None or strategy.id in begun:
                continue
            best = self._points.get(_key(strategy.id, start(strategy, self._asked[0], bool(self._made))))
            for point in (best, first):
                if point is not None and point.solution not in self._seen:
                    return self._choose(point)
        timed = [node for node in by_id.values() if node.speedup]
        for node in sorted(timed, key=lambda node: -(node.speedup or 0.0)):
            if changed := self._change(node, (), chance):
                return changed
        left = (point for point in self._points.values() if point.solution not in self._seen)
        return next(map(self._choose, left), "")

    def _change(self, parent: Node | None, target: tuple[int, ...], chance: Random) -> str:
        """The change of a parameter that promises most, as the playbook tunes."""
        if parent is None:
            return ""
        begun = self._made[int(parent.id)]
        for strategy in self._strategies:
            for name, value in changes(strategy, begun.parameters) if strategy.id == begun.strategy else ():
                point = self._points.get(_key(strategy.id, {**begun.parameters, name: value}))
                if point is not None and point.solution not in self._seen:
                    return self._choose(point)
        return ""

    @property
    def _strategies(self) -> tuple[Strategy, ...]:
        """As the knowledge base ranks them now."""
        if self._retrieved[0] != len(self._made):
            self._retrieved = len(self._made), self._knowledge.retrieve(*self._asked)
        return self._retrieved[1]

    def _choose(self, point: Point) -> str:
        self._chosen = point
        return point.solution

    def _promising(self, speedup: float | None) -> bool:
        promising = super()._promising(speedup)
        self._full = promising and (speedup or 0.0) > 1.0  # what no baseline is slower than is not verified
        return promising

    def _judged(
        self, number: int, parent: Node | None, solution: str, status: EvaluationStatus, drawn: Verdict,
        *, own_fault: bool,
    ) -> Node:  # fmt: skip
        node = super()._judged(number, parent, solution, status, drawn, own_fault=own_fault)
        node = replace(node, strategy=self._chosen.strategy)
        self._made.append(self._chosen)
        landscape, context = self.space.landscape, self._asked[0]
        written = Solution(
            name=node.strategy, definition=landscape.definition, author="recorded",
            spec=BuildSpec(language=self._asked[1][0]),
            sources=(SourceFile(path="model_new.py", content=solution),),
        )  # fmt: skip
        speedup = node.speedup
        around = None if speedup is None else Interval(point=speedup, low=speedup, high=speedup)
        evaluation = Evaluation(
            definition=landscape.definition,
            solution=written.hash,
            workloads=(),
            level=Level.FULL if self._full else Level.QUICK,
            status=status,
            evidence=Evidence.VERIFIED if self._full else Evidence.UNVERIFIED,
            performance=None if around is None else Performance(
                latency_s=landscape.time_s / around.point, baseline_s={"best": landscape.time_s},
                speedup={"best": around}, control=_ONE, blocks=1, processes=1,
            ),
            environment=Environment(device="recorded", architecture=context.architecture, toolchain={}),
            timestamp=NOW,
        )  # fmt: skip
        self._knowledge.record(node.strategy, context, written, evaluation, self._chosen.parameters)
        return node


class OrderedSearch(InformedSearch):
    """A search that tries points in a given order, whatever the policy wants to build on.

    Args:
        order: of points, the best first.
        first: begin with what the cards say.
    """

    def __init__(
        self, space: Space, policy: TreePolicy, seed: int, knowledge: KnowledgeBase, context: Context,
        order: Sequence[Point], first: bool,
    ) -> None:  # fmt: skip
        super().__init__(space, policy, seed, knowledge, context)
        self._order, self._first = order, first

    def _start(self, by_id: Mapping[str, Node], chance: Random) -> str:
        if self._first and not self._made:
            return super()._start(by_id, chance)
        left = (point for point in self._order if point.solution not in self._seen)
        return next(map(self._choose, left), "")

    def _change(self, parent: Node | None, target: tuple[int, ...], chance: Random) -> str:
        return self._start({}, chance)


def by_gain(landscape: Landscape) -> list[Point]:
    """The points of a landscape, the fastest first."""
    points = [point for point in landscape.points if point.solution]
    return sorted(points, key=lambda point: -landscape.gains[point.solution])


def by_mean(landscape: Landscape, teachers: Sequence[Landscape], *, alike: bool) -> list[Point]:
    """The points of a landscape by the mean of what they gain over the mean of each other landscape, of all
    recorded verdicts; an unknown point gains 0.

    Args:
        alike: weigh landscapes by the similarity of their contexts.
    """
    total: dict[Any, float] = {}
    for one in teachers:
        weight = similarity(context_of(one), context_of(landscape)) if alike else 1.0
        for point in one.points:
            if point.solution:
                key = _key(point.strategy, point.parameters)
                total[key] = total.get(key, 0.0) + weight * (one.gains[point.solution] - one.mean)
    points = [point for point in landscape.points if point.solution]
    return sorted(points, key=lambda point: -total.get(_key(point.strategy, point.parameters), 0.0))


def _key(strategy: str, parameters: Parameters) -> tuple[str, frozenset[tuple[str, Value]]]:
    return strategy, frozenset(parameters.items())


def evaluations(steps: Sequence[tuple[float, float, float]], enough: float, most: int) -> int:
    """Evaluations until a log speedup of `enough` was found; one more than the most if it was not."""
    found = (number for number, step in enumerate(steps, start=1) if step[2] >= enough)
    return next(found, most + 1)


def context_of(landscape: Landscape) -> Context:
    """The landscape's context, which usable landscapes have."""
    assert landscape.context is not None
    return landscape.context


def operator(landscape: Landscape) -> str:
    """The operator's name, without the shape."""
    return landscape.name.partition("@")[0]


def permuted(outcomes: Sequence[Outcome], chance: Random) -> list[Outcome]:
    """The outcomes of one landscape, each with the strategy and the parameters of one drawn at random."""
    others = chance.sample(outcomes, len(outcomes))
    return [
        own.model_copy(update={"strategy": other.strategy, "parameters": other.parameters})
        for own, other in zip(outcomes, others, strict=True)
    ]


def agreement(landscape: Landscape, base: KnowledgeBase) -> float:
    """Spearman's rank correlation of what a knowledge base expects of the solutions and what was recorded.

    No policy and no verdict's noise is in it. A solution of several points counts with their mean. 0 if the
    same is expected of all.
    """
    expected: dict[str, list[float]] = {}
    known = {s.id: (s, belief.mu) for s, belief in base.ranked(*asked(context_of(landscape)))}
    for point in landscape.points:
        if point.solution and point.strategy in known:
            strategy, best = known[point.strategy]
            gain = best - sum(max(gains) for gains in strategy.expected.values())
            for name, gains in strategy.expected.items():
                value = point.parameters.get(name, strategy.parameters[name][0])
                gain += dict(zip(strategy.parameters[name], gains, strict=True)).get(value, 0.0)
            expected.setdefault(point.solution, []).append(gain)
    means = [fmean(gains) for gains in expected.values()]
    if len({round(mean, 9) for mean in means}) < 2:
        return 0.0
    return float(spearmanr(means, [landscape.gains[s] for s in expected]).statistic)


def asked(context: Context) -> tuple[Context, tuple[str, ...], str]:
    """What a knowledge base is asked for in a context."""
    gpu = context.architecture.startswith("sm_")
    return context, ("triton", "cuda") if gpu else ("cpp",), "cuda" if gpu else "cpu"


def from_next_architecture(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes as if they were from another vector unit, or from another GPU of the vendor."""
    return [o.model_copy(update={"context": _elsewhere(o.context)}) for o in outcomes]


def _elsewhere(context: Context) -> Context:
    name, _, unit = context.architecture.rpartition(" ")
    if unit.startswith("sm_"):
        return context.model_copy(update={"architecture": "sm_80" if unit != "sm_80" else "sm_90"})
    return context.model_copy(update={"architecture": f"{name} {'avx2' if unit != 'avx2' else 'avx512'}"})


def poison(folder: Path, context: Context) -> Bundle:
    """All bundles of a folder, with their outcomes moved to a context."""
    read_ = [read_bundle(path) for path in sorted(folder.glob("*.jsonl"))]
    return Bundle(
        strategies=[s for bundle in read_ for s in bundle.strategies],
        lessons=[lesson for bundle in read_ for lesson in bundle.lessons],
        outcomes=[o.model_copy(update={"context": context}) for bundle in read_ for o in bundle.outcomes],
    )


SPLITS: Mapping[str, tuple[Train, Train]] = {
    "new shapes": (lambda a, b: a.name != b.name, lambda a, b: operator(a) == operator(b)),
    "new operators": (lambda a, b: operator(a) != operator(b), lambda a, b: a.op_type == b.op_type),
    "new families": (lambda a, b: a.op_type != b.op_type, lambda a, b: True),
}
"""Whether the first landscape may teach about the second, and whether one of those that may must be like
this."""


class Trial:
    """All searches of some landscapes.

    Args:
        policy: name of the search policy.
        playbook: folder of cards.
        bundles: folder of poisoned bundles.
        other: landscapes of another machine, for the arm `elsewhere`.
    """

    def __init__(
        self, landscapes: Sequence[Landscape], policy: str, seeds: int, playbook: Path, bundles: Path,
        other: Sequence[Landscape] = (),
    ) -> None:  # fmt: skip
        self.landscapes, self.seeds, self._policy, self._other = landscapes, seeds, policy, other
        self._clean, self._poisoned, self._bundles = Memory(playbook), Memory(playbook), bundles
        self._spaces = {id(one): Space(one) for one in (*landscapes, *other)}
        self._left: dict[tuple[int, int], list[Outcome]] = {}

    def search(self, landscape: Landscape, seed: int, base: KnowledgeBase, most: int = MOST) -> int:
        """Evaluations that one search needs."""
        policy, space = policies.create(self._policy), self._spaces[id(landscape)]
        search = InformedSearch(space, policy, seed, base, context_of(landscape))
        return evaluations(search.run(most), landscape.enough(ENOUGH), min(most, len(landscape.solutions)))

    def ordered(self, landscape: Landscape, order: Sequence[Point], *, first: bool = False) -> list[int]:
        """Evaluations that trying the points in an order needs, by seed."""
        space, found = self._spaces[id(landscape)], []
        for seed in range(self.seeds):
            search = OrderedSearch(
                space, policies.create(self._policy), seed, self._clean.holding(()), context_of(landscape),
                order, first,
            )  # fmt: skip
            most = min(MOST, len(landscape.solutions))
            found.append(evaluations(search.run(MOST), landscape.enough(ENOUGH), most))
        return found

    def reachable(
        self, kept: Sequence[Landscape], teachers: Mapping[str, Sequence[Landscape]], cold: Numbers
    ) -> dict[str, Any]:
        """What orders need that no knowledge base has: see `ORDERS`."""
        orders = {
            ORDERS[0]: [self.ordered(one, by_gain(one)) for one in kept],
            ORDERS[1]: [self.ordered(one, by_gain(one), first=True) for one in kept],
            ORDERS[2]: [self.ordered(one, by_mean(one, teachers[one.name], alike=False)) for one in kept],
            ORDERS[3]: [self.ordered(one, by_mean(one, teachers[one.name], alike=True)) for one in kept],
        }
        return {name: compared(np.array(rows, float), cold) for name, rows in orders.items()}

    def left(self, landscape: Landscape, seed: int) -> list[Outcome]:
        """What a cold search leaves."""
        key = id(landscape), seed
        if key not in self._left:
            self.search(landscape, seed, self._clean.holding(()), TRAINING)
            self._left[key] = list(self._clean.store.outcomes())
        return self._left[key]

    def informed(
        self, arm: str, landscape: Landscape, teachers: Sequence[Landscape], seed: int
    ) -> KnowledgeBase:
        """The knowledge base of an arm."""
        if arm == "poisoned":
            return self._poisoned.holding((), poison(self._bundles, context_of(landscape)))
        taught = {"cold": (), "elsewhere": self._other or teachers}.get(arm, teachers)
        known = [self.left(one, seed) for one in taught]
        if arm == "permuted":
            known = [permuted(x, Random(f"{seed} {i}")) for i, x in enumerate(known)]
        outcomes = [outcome for found in known for outcome in found]
        if arm == "elsewhere" and not self._other:
            outcomes = from_next_architecture(outcomes)
        return self._clean.holding(outcomes)

    def agreements(self, arm: str, kept: Sequence[Landscape], teachers: Mapping[str, Any]) -> float:
        """Mean of `agreement` over landscapes and seeds."""
        found = [
            agreement(one, self.informed(arm, one, teachers[one.name], seed))
            for one in kept
            for seed in range(self.seeds)
        ]
        return round(fmean(found), 3)

    def all_of(self, arm: str, landscape: Landscape, teachers: Sequence[Landscape] = ()) -> list[int]:
        """Evaluations that an arm needs, by seed."""
        return [
            self.search(landscape, seed, self.informed(arm, landscape, teachers, seed))
            for seed in range(self.seeds)
        ]

    def result(self) -> dict[str, Any]:
        """Ratios and goals of all splits and arms."""
        alone = {
            (arm, one.name): self.all_of(arm, one) for one in self.landscapes for arm in ("cold", "poisoned")
        }
        found: dict[str, Any] = {}
        for split, (may_teach, like) in SPLITS.items():
            teachers = {
                one.name: chosen
                for one in self.landscapes
                if (chosen := [t for t in self.landscapes if may_teach(t, one)])
                and any(like(t, one) for t in chosen)
            }
            kept = [one for one in self.landscapes if one.name in teachers]
            if not kept:
                continue
            cold = np.array([alone["cold", one.name] for one in kept], float)
            found[split] = {"landscapes": [one.name for one in kept], "cold": cold.mean(), "arms": {}}
            found[split]["agreement"] = {
                arm: self.agreements(arm, kept, teachers) for arm in ("cold", *EXPECTING)
            }
            for arm in ARMS:
                rows = [
                    alone.get((arm, one.name)) or self.all_of(arm, one, teachers[one.name]) for one in kept
                ]
                found[split]["arms"][arm] = compared(np.array(rows, float), cold)
                print(f"{split}, {arm}: {found[split]['arms'][arm]}", flush=True)
            found[split]["reachable"] = self.reachable(kept, teachers, cold)
        return {"splits": found, "goals": goals(found)}


def compared(arm: Numbers, cold: Numbers) -> dict[str, Any]:
    """An arm against the cold one; evaluations by landscape (rows) and seed (columns).

    `ratio` has the median over landscapes and its 95 % interval, `slower` the share of landscapes on which
    the arm needs more.
    """
    chance, (rows, columns) = np.random.default_rng(0), arm.shape

    def median(at: Numbers, seeds: Numbers) -> float:
        some = np.ix_(at.astype(int), seeds.astype(int))
        return float(np.median(arm[some].mean(axis=1) / cold[some].mean(axis=1)))

    drawn = [
        median(chance.integers(0, rows, rows), chance.integers(0, columns, columns)) for _ in range(RESAMPLES)
    ]
    ratios = arm.mean(axis=1) / cold.mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return {
        "ratio": [round(float(x), 3) for x in (np.median(ratios), low, high)],
        "slower": round(float((ratios > 1).mean()), 3),
        "evaluations": round(float(arm.mean()), 2),
    }


def goals(splits: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each goal with what was measured, and whether it is met."""
    found = []

    def goal(what: str, measured: float, met: bool) -> None:
        found.append({"goal": what, "measured": measured, "met": met})

    for split, one in splits.items():
        arms = {name: (arm["ratio"][0], arm["slower"]) for name, arm in one["arms"].items()}
        ratio, slower = arms["warm"]
        goal(f"{split}: warm at most {GOALS[split]:.2f}", ratio, ratio <= GOALS[split])
        goal(f"{split}: warm is slower on less than {MOST_HARM:.0%}", slower, slower < MOST_HARM)
        for arm in ("permuted", "poisoned"):
            goal(f"{split}: {arm} about 1", arms[arm][0], abs(arms[arm][0] - 1) <= ABOUT)
    return found


def table(result: Mapping[str, Any]) -> str:
    """The comparison, for the page."""
    lines = ["| | landscapes | cold needs | " + " | ".join(ARMS) + " |", "|---" * (3 + len(ARMS)) + "|"]
    for split, one in result["splits"].items():
        cells = [
            "{:.2f} [{:.2f}, {:.2f}], {:.1f}, slower on {:.0%}".format(
                *arm["ratio"], arm["evaluations"], arm["slower"]
            )
            for arm in (one["arms"][name] for name in ARMS)
        ]
        lines.append(f"| {split} | {len(one['landscapes'])} | {one['cold']:.1f} | {' | '.join(cells)} |")
    expecting = ("cold", *EXPECTING)
    lines += ["", "| agreement | " + " | ".join(expecting) + " |", "|---" * (1 + len(expecting)) + "|"]
    for split, one in result["splits"].items():
        cells = [f"{one['agreement'][arm]:.2f}" for arm in expecting]
        lines.append(f"| {split} | {' | '.join(cells)} |")
    lines += ["", "| | " + " | ".join(ORDERS) + " |", "|---" * (1 + len(ORDERS)) + "|"]
    for split, one in result["splits"].items():
        bounds = [one["reachable"][name] for name in ORDERS]
        cells = [
            f"{b['ratio'][0]:.2f}, {b['evaluations']:.1f} evaluations, slower on {b['slower']:.0%}"
            for b in bounds
        ]
        lines.append(f"| {split} | {' | '.join(cells)} |")
    lines += ["", "Goals:", ""]
    lines += [
        f"- {g['goal']}: {'met' if g['met'] else 'not met'} ({g['measured']:.2f})" for g in result["goals"]
    ]
    origin = result["provenance"]
    lines += ["", f"{result['seeds']} seeds. {origin['date'][:10]}, commit {origin['commit']}.", ""]
    return "\n".join(lines)


def usable(landscapes: Iterable[Landscape]) -> list[Landscape]:
    """Complete landscapes with a context and something to find: the best differ from most others, and beat
    the baselines, because that is what the knowledge base expects of strategies."""
    known = (one for one in landscapes if one.complete and one.context and one.best >= LEAST_GAIN)
    return [one for one in known if share_of_best(one) <= MOST_BEST]


def share_of_best(landscape: Landscape) -> float:
    """Share of the solutions that count as found, which is the chance of a draw at random."""
    gains = landscape.gains.values()
    return sum(gain >= landscape.enough(ENOUGH) for gain in gains) / len(gains)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--landscapes", type=Path, nargs="+", default=[LANDSCAPES, SHAPES])
    parser.add_argument("--other", type=Path, help="landscapes of another machine, for the arm `elsewhere`")
    parser.add_argument("--policy", default="best-first", choices=policies.names())
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--table", action="store_true", help="only write the table into docs/transfer.md")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if chosen.table:
        TABLE.write(table(json.loads(chosen.out.read_text())))
        return 0
    files = [path for path in chosen.landscapes if path.is_file()]
    every = [one for path in files for one in read(path).values()]
    other = usable(read(chosen.other).values()) if chosen.other else []
    playbook = resource("knowledge_base", "playbook")
    trial = Trial(usable(every), chosen.policy, chosen.seeds, playbook, HERE / "kb_poison", other)
    found = trial.result()
    if not found["splits"]:
        few = f"{len(trial.landscapes)} of {len(every)} landscapes are usable, which is not enough"
        print(f"{few}: record more with search/record.py, also with --shapes")
        return 2
    result = {
        "provenance": provenance(),
        "landscapes_sha256": {path.name: sha256(path.read_bytes()).hexdigest() for path in files},
        "policy": chosen.policy,
        "seeds": chosen.seeds,
        "left_out": sorted({one.name for one in every} - {one.name for one in trial.landscapes}),
        **found,
    }
    chosen.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))

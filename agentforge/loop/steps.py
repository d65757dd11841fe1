"""The stations of the graph: each takes a round of attempts one step further."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, TypedDict

from agentforge.agents import BanditCoder, Pull, choose
from agentforge.agents.directives import Use, draw_directive, fittest, is_due, names
from agentforge.llm import CallFailed, CannotAfford
from agentforge.schema import (
    Attempt,
    AttemptStatus,
    Directive,
    Directives,
    EvaluationStatus,
    Level,
    Progress,
    TargetError,
    TimeEnded,
)
from agentforge.search import (
    Allocator,
    Choice,
    GainPerCost,
    Node,
    Offer,
    Tree,
    TreePolicy,
    draw_by,
    next_choice,
)

from ._base import PendingAttempt
from .bottleneck_state import (
    FINISHED,
    FIRST_COST_S,
    LAST_REMEASUREMENTS,
    PRIOR_WEIGHT,
    REMEASUREMENTS,
    costs_of,
    gain_over_eager,
)
from .supervisor import Supervisor

EXAMPLES = 2
"""Best attempts with a directive, and worst ones, that are shown to the model that edits it."""


def union(before: list[str], more: list[str]) -> list[str]:
    """Both without repetition: attempts of a round may close bottlenecks side by side."""
    return list(dict.fromkeys([*before, *more]))


class State(TypedDict, total=False):
    """What the graph's checkpoints hold: identifiers only."""

    round: list[PendingAttempt]
    """Attempts that are being made, in the order of their numbers."""
    planless: Annotated[list[str], union]
    """Bottlenecks for which the planner has nothing left, or that cannot be judged."""
    reason: str
    """Why the search is over; empty while it goes on."""


@dataclass(frozen=True)
class Steps:
    """The stations, in the order of the graph."""

    supervisor: Supervisor
    policy: TreePolicy
    width: int = 1
    """Most attempts that are made at a time."""
    allocator: Allocator = field(default_factory=GainPerCost)

    def select(self, state: State) -> State:
        """Go on with unfinished attempts, or choose bottlenecks and parents for new ones."""
        attempts = self.supervisor.run_log.attempts()
        unfinished = [a for a in attempts if a.status not in FINISHED]
        if self.supervisor.out_of_budget():  # what was measured is judged and recorded in any case
            unfinished = [a for a in unfinished if a.status is AttemptStatus.EVALUATED]
        if unfinished:
            first = unfinished[0].number
            pending = [
                PendingAttempt(
                    attempt=a.id, bottleneck=a.bottleneck, parent=a.parent, target=a.target, coder=a.coder,
                    directive=a.directive, round=first,
                )
                for a in unfinished
            ]  # fmt: skip
            return {"round": pending, "reason": ""}
        if reason := self.supervisor.out_of_budget(new_attempts=0):
            return {"round": [], "reason": reason}
        planless = state.get("planless", [])
        self._settle(planless)
        self._evolve()
        children = self._choose(self.trees(planless))
        if not children and remeasure_all(self.supervisor):
            children = self._choose(self.trees(planless))  # a gain may open a bottleneck again
        reason = "" if children else "nothing left is worth another attempt"
        return {"round": children, "reason": reason}

    def plan(self, state: State) -> State:
        """Plan attempts of one bottleneck in turn, each in sight of the plans before it."""
        for child in state["round"]:
            if self.supervisor.out_of_budget():
                break
            if not self.supervisor.plan(child):
                return {"planless": [child["bottleneck"]]}
        return {}

    def code(self, state: State) -> State:
        """Write and compile; attempts side by side."""
        for child in state["round"]:
            if not self.supervisor.out_of_budget():
                self.supervisor.code(child)
            if self.width > 1 and not self.supervisor.out_of_budget():
                self.supervisor.build(child)
        return {}

    def evaluate(self, state: State) -> State:
        """Measure one after the other: nothing else runs on the device meanwhile."""
        refused = []
        for child in state.get("round", []):
            if not self.supervisor.out_of_budget() and not self.supervisor.evaluate(child):
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

    def _settle(self, planless: Sequence[str]) -> None:
        """Before a bottleneck stays closed, measure again what was not verified on a busy machine."""
        for name in self.supervisor.bottlenecks:
            state = self.supervisor.bottleneck_state(name)
            closing = name in planless or state.closed(self.supervisor.settings, contenders=True)
            if closing and state.contenders(1):
                remeasure(self.supervisor, name)
                self.supervisor.close_if_finished(name)

    def _choose(self, trees: list[Tree]) -> list[PendingAttempt]:
        """As many children as may be made at a time, each chosen as if those before it were under way."""
        run_log = self.supervisor.run_log
        number = first = max((a.number for a in run_log.attempts()), default=0) + 1
        children: list[PendingAttempt] = []
        while len(children) < self.width and not self.supervisor.out_of_budget(new_attempts=len(children)):
            choice = next_choice(trees, self.allocator, self.policy)
            if choice is None:
                break
            child = PendingAttempt(
                attempt=run_log.attempt_id(number),
                bottleneck=choice.bottleneck,
                parent=choice.parent,
                target=choice.target,
                coder=self._drawn(number, children),
                directive="" if _repairs(trees, choice) else self._directive(number, children),
                round=first,
            )
            children.append(child)
            trees = [_with(tree, choice, child["attempt"]) for tree in trees]
            number += 1
        return children

    def _drawn(self, number: int, children: Sequence[PendingAttempt]) -> str:
        """The model that the bandit draws for an attempt, `children` being under way; empty without one."""
        supervisor, coder = self.supervisor, self.supervisor.agents.coder
        if not isinstance(coder, BanditCoder):
            return ""
        run_log, dollars = supervisor.run_log, supervisor.run_log.coder_dollars()
        states = supervisor.bottleneck_states().values()
        made = sorted((pull for state in states for pull in state.pulls(dollars)), key=lambda pull: pull[0])
        begun = [Pull(child.get("coder", ""), None) for child in children]
        random = draw_by(run_log.run.id, "bandit", str(number))
        return choose(
            coder.arms, [*(pull for _, pull in made), *begun], random, supervisor.settings.cost_weight
        )

    def _uses(self) -> list[tuple[Attempt, Use]]:
        """The run's attempts for which a directive was drawn, with what they gained, by their numbers."""
        states = self.supervisor.bottleneck_states().values()
        return sorted((use for state in states for use in state.uses()), key=lambda use: use[0].number)

    def _directive(self, number: int, children: Sequence[PendingAttempt]) -> str:
        """The directive that is drawn for an attempt, `children` being under way; empty if none are used."""
        run_log, most = self.supervisor.run_log, self.supervisor.settings.directives
        if not most or self.supervisor.agents.editor is None:
            return ""
        begun = [Use(name, None) for child in children if (name := child.get("directive", ""))]
        random = draw_by(run_log.run.id, "directive", str(number))
        known = names((run_log.record(Directives) or Directives()).written)
        return draw_directive(known, [*(use for _, use in self._uses()), *begun], random, most)

    def _evolve(self) -> None:
        """Have the fittest directive edited if it is time; what no model can write is an empty one."""
        run_log, editor = self.supervisor.run_log, self.supervisor.agents.editor
        if editor is None:
            return
        written, made = (run_log.record(Directives) or Directives()).written, self._uses()
        judged = [x for x in made if x[1].gain is not None]
        if not judged or not is_due(written, [use for _, use in made]):
            return
        parent, text = fittest(names(written), [use for _, use in judged]), ""
        own = sorted((x for x in judged if x[1].directive == parent), key=lambda x: -(x[1].gain or 0.0))
        shown = own if len(own) <= 2 * EXAMPLES else [*own[:EXAMPLES], *own[-EXAMPLES:]]
        past = {p.id: p for name in self.supervisor.bottlenecks for p in run_log.past(name)}
        texts = {one.id: one.text for one in written}
        with suppress(CallFailed, CannotAfford):
            text = editor.edit(
                texts.get(parent, ""), texts.values(), [(past[a.id], use.gain or 0.0) for a, use in shown]
            )
        one = Directive(id=f"d{len(written) + 1}", parent=parent, text=text, author=editor.name)
        run_log.keep(Directives(written=(*written, one)))
        said = f"changes the coder's prompt for later attempts: {one.id}" if text else "gave no usable text"
        run_log.event(Progress(text=f"{editor.name} {said}"))

    def trees(self, planless: Sequence[str]) -> list[Tree]:
        """What the search policy sees of all bottlenecks, in the order in which they shall be begun."""
        run_log, settings = self.supervisor.run_log, self.supervisor.settings
        attempts = run_log.attempts()
        costs = costs_of(attempts, {a.id: e for a in attempts if (e := run_log.evaluation(a))})
        cost_s = sum(costs) / len(costs) if costs else FIRST_COST_S
        last = attempts[-1].bottleneck if attempts else None
        states = self.supervisor.bottleneck_states()
        return [
            states[name].tree(
                settings,
                prior=searched.prior,
                strategies=searched.strategies,
                seed=run_log.run.id,
                vector_bits=self.supervisor.hardware.vector_bits,
                cost_s=cost_s,
                planless=name in planless or bool(searched.skip_reason),
                warm=name == last,
            )
            for name, searched in self.supervisor.bottlenecks.items()
        ]


def _repairs(trees: Sequence[Tree], choice: Choice) -> bool:
    """Whether a choice repairs a failure."""
    return any(Offer(tree, choice).repair for tree in trees if tree.bottleneck == choice.bottleneck)


def _with(tree: Tree, choice: Choice, attempt: str) -> Tree:
    """The tree with a chosen attempt under way in it."""
    if tree.bottleneck != choice.bottleneck:
        return tree
    nodes = tuple(
        replace(node, children=node.children + 1) if node.id == choice.parent else node for node in tree.nodes
    )
    begun = Node(attempt, choice.parent, False, False, None, "", 0, target=choice.target)
    seen = PRIOR_WEIGHT + len(tree.nodes)  # counted as one without a gain, until more is known
    return replace(tree, nodes=(*nodes, begun), success=tree.success * seen / (seen + 1))


def remeasure(supervisor: Supervisor, bottleneck: str, *, most: int = 1) -> bool:
    """Measure a bottleneck's contenders again while minutes are left, the fastest first; True if one was
    promoted."""
    meter, promoted = supervisor.meter, False
    while not (meter.out_of_minutes or meter.out_of_time):
        found = supervisor.bottleneck_state(bottleneck).contenders(most)
        if not found:
            break
        promoted |= _measure(supervisor, found[0])
    return promoted


def remeasure_all(supervisor: Supervisor) -> bool:
    """Measure all contenders again in turns before the search ends; True if one was promoted.

    It goes on while one contends and minutes are left: a busy machine may become quiet. If they are used up,
    only the one that may save most time is measured, because proving a result comes on top of them.
    """
    meter = supervisor.meter
    if meter.out_of_minutes:
        fastest = _fastest_contender(supervisor)
        return fastest is not None and not meter.out_of_time and _measure(supervisor, fastest)
    turns = range(1, LAST_REMEASUREMENTS + 1) if meter.budget.minutes is not None else [REMEASUREMENTS]
    for turn in turns:
        promoted = [remeasure(supervisor, name, most=turn) for name in supervisor.bottlenecks]
        if any(promoted) or meter.out_of_minutes or meter.out_of_time:
            return any(promoted)
    return False


def _fastest_contender(supervisor: Supervisor) -> Attempt | None:
    """The contender of all bottlenecks that saves most time, as far as is known."""
    saved: dict[float, Attempt] = {}
    for state in supervisor.bottleneck_states().values():
        for attempt in state.contenders()[:1]:
            gain = gain_over_eager(state.evaluations[attempt.id]) or 1.0
            saved[state.time_s - state.bottleneck.time_s / gain] = attempt
    return saved[max(saved)] if saved else None


def _measure(supervisor: Supervisor, attempt: Attempt) -> bool:
    """One more full evaluation of an attempt, in the place of the earlier one; True if it was promoted."""
    run_log, meter = supervisor.run_log, supervisor.meter
    name = supervisor.bottlenecks[attempt.bottleneck].bottleneck.definition.name
    run_log.event(Progress(text=f"measuring attempt {attempt.number} of {name} again: the machine was busy"))
    attempt = attempt.model_copy(update={"remeasured": attempt.remeasured + 1})
    try:
        identifier, evaluation = supervisor.referee.evaluate(
            attempt, Level.FULL, again=True, deadline=meter.end(first=meter.out_of_minutes)
        )
    except TimeEnded:
        supervisor.referee.time_ended(attempt)
        return False
    except TargetError:  # the reference is no longer judged; the earlier result stays
        run_log.put(attempt.model_copy(update={"remeasured": LAST_REMEASUREMENTS}))
        return False
    if evaluation.status is EvaluationStatus.HARNESS_ERROR:  # it says nothing: the earlier result stays
        run_log.put(attempt)
        return False
    # until it is recorded, it is not done: a kill here must lose neither promotion nor outcome
    measured = {"evaluation": identifier, "status": AttemptStatus.EVALUATED}
    attempt = run_log.put(attempt.model_copy(update=measured))
    supervisor.remember(attempt)
    run_log.put(attempt.model_copy(update={"status": AttemptStatus.DONE}))
    incumbent = supervisor.bottleneck_state(attempt.bottleneck).incumbent
    return incumbent is not None and incumbent[0].id == attempt.id

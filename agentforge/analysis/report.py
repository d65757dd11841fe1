"""The report of a run, built from the store alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import get_args

from agentforge.agents.directives import PLAIN
from agentforge.llm import CallTotal, coder_dollars, totals
from agentforge.loop.bottleneck_state import FINISHED, BottleneckState, gain_over_eager
from agentforge.schema import (
    Attempt,
    AttemptEvaluated,
    AttemptStatus,
    Bottleneck,
    Directive,
    Directives,
    Evaluation,
    FrozenModel,
    Interval,
    ModelPlan,
    MoveKind,
    Precision,
    Profile,
    ProfileDone,
    Run,
    RunResumed,
    SearchSummary,
    StitchResult,
    baseline_name,
    obstacle,
)
from agentforge.store import Promotion, Store

_UNTIL_VERDICT = ("run.resumed", "profile.done", "attempt.evaluated")
"""Kinds of the events that `first_verdict_s` reads."""


class RegionReport(FrozenModel):
    """What became of one bottleneck."""

    name: str
    """Of its definition."""
    definition: str
    """Hash."""
    op_type: str
    call_sites: int
    share: float
    """Of the target's eager time, 0 to 1."""
    share_now: float | None = None
    """Of the target's time with all verified solutions in place, by Amdahl's law; None if there are none."""
    time_s: float
    """Eager seconds of all its call sites in one forward."""
    sol_s: float
    """Speed-of-light seconds of all its call sites."""
    bound: str
    place: int | None = None
    """In the order of the plan for the whole model, from 1; None if the plan skips it."""
    attempts: int
    failed: int
    """Attempts that brought no correct solution."""
    solution: str | None = None
    """Hash of the fastest verified one."""
    strategy: str = ""
    author: str = ""
    evaluation: str | None = None
    """Identifier of its evaluation."""
    speedup: dict[str, Interval] = {}
    """Of the region alone, by baseline."""
    calls: int | None = None
    """Calls of its kernels seen in the end-to-end run; None if it was not integrated."""
    outcome: str = ""
    """`integrated`, or why the region keeps what it had."""


class ModelReport(FrozenModel):
    """A model that a bandit drew to write attempts."""

    model: str
    """As the user typed it."""
    attempts: int
    passed: int
    """Attempts whose solution was right."""
    reward: float | None
    """Mean reward of its finished attempts, 0 to 1; None before one is finished."""
    dollars: float | None
    """Of its calls as coder; None if the price is unknown."""


class DirectiveReport(Directive):
    """A fragment of the coder's prompt, and what became of the attempts that it was drawn for."""

    attempts: int
    """Finished ones, without repairs."""
    gain: float | None
    """Mean of the judged ones' rewards less their parents', or a baseline's; None before one is judged."""


class Report(FrozenModel):
    """A run, its numbers and their evidence."""

    run: Run
    profile: Profile | None = None
    plan: ModelPlan | None = None
    """Which regions shall be made faster, in which order; None before it was made."""
    regions: tuple[RegionReport, ...] = ()
    """In the profile's order."""
    end_to_end: Evaluation | None = None
    """The stitched model against the original one; None if it stays eager, or before that."""
    proven: bool = False
    """The end-to-end evaluation is verified, and every kernel in it was seen to run."""
    mode: str = ""
    """`kernels` or `kernels+graph`, each also with `+streams`, `kernels+packed`, `kernels+compile`, `compile`
    or `eager`: what the artifact runs; `kernel` if one solution was written out."""
    summary: str = ""
    """Why the artifact is what it is."""
    moves: tuple[MoveKind, ...] = ()
    """Moves on the whole model that the artifact contains."""
    tokens_per_second: dict[str, dict[str, float]] = {}
    """Of a generation, for `prefill` and `decode`: by baseline, and of the `artifact`."""
    models: tuple[ModelReport, ...] = ()
    """Models that the coder's bandit drew, in the order of their first attempt."""
    directives: tuple[DirectiveReport, ...] = ()
    """Fragments of the coder's prompt that were drawn, with the empty one, `plain`."""
    attempts: int = 0
    seconds: float = 0.0
    """Wall time over all sessions."""
    first_verdict_s: float | None = None
    """Seconds from the profile to the first verdict on an attempt; None before one. See `first_verdict_s`."""
    dollars: float = 0.0
    """Of all calls, also of those that failed; or what agents without a ledger report, if that is more."""
    llm: tuple[CallTotal, ...] = ()
    """Calls of language models, by role and model."""
    stopped: str = ""
    """Why the search ended."""
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """One sentence: what was reached, with its evidence."""
        if self.end_to_end is None or self.end_to_end.performance is None:
            return self.summary or "Not finished: nothing was proven end to end yet."
        eager = self.end_to_end.performance.speedup.get("eager")
        if not (self.proven and self.end_to_end.verified) or eager is None:
            reasons = "; ".join(self.end_to_end.reasons) or self.end_to_end.status.value
            return f"The optimized model is not verified: {reasons}."
        kind, _, way = self.mode.partition("+")
        if kind == "compile":
            return f"Verified: {baseline_name(way or kind)} is kept, {eager} over eager."
        speedups = self.end_to_end.performance.speedup.items()
        said = ", ".join(f"{interval} over {baseline_name(name)}" for name, interval in speedups)
        return f"Verified: {said}; {self.summary}." if _lowered(self.mode) else f"Verified: {said}."


def _lowered(mode: str) -> str:
    """The lower precision of an artifact's products: `bf16`, `int8` or empty."""
    return next((way for way in mode.split("+") if way in get_args(Precision)), "")


def build_report(store: Store, run_id: str) -> Report:
    """Read a run's report from the store; a run that goes on has what there is so far.

    Raises:
        UsageError: no such run.
    """
    run, profile = store.get_run(run_id), store.get_profile(run_id)
    promotions = store.promotions(run.id)  # before the attempts: a run that goes on adds both
    attempts = store.attempts(run.id)
    stitched, searched = store.get_record(run.id, StitchResult), store.get_record(run.id, SearchSummary)
    bottlenecks = profile.bottlenecks if profile else ()
    final = store.get_evaluation(stitched.evaluation) if stitched and stitched.evaluation else None
    plan, states = store.get_record(run.id, ModelPlan), _states(store, profile, attempts)
    now, calls = _shares_now(store, promotions, profile), store.calls(run.id)
    return Report(
        run=run,
        profile=profile,
        plan=plan,
        regions=tuple(
            _region(store, promotions, b, attempts, stitched, plan).model_copy(
                update={"share_now": now.get(b.definition.hash)}
            )
            for b in bottlenecks
        ),
        end_to_end=final,
        proven=stitched is not None and stitched.proven,
        mode=stitched.mode if stitched else "",
        summary=stitched.summary if stitched else "",
        moves=stitched.moves if stitched else (),
        tokens_per_second=stitched.tokens_per_second if stitched else {},
        models=_models(store, run, states, attempts),
        directives=_directives(store, run, states),
        attempts=len(attempts),
        seconds=run.seconds_used,
        first_verdict_s=first_verdict_s(store, run.id),
        dollars=max(sum(c.dollars or 0.0 for c in calls), sum(a.usage.dollars or 0.0 for a in attempts)),
        llm=tuple(totals(calls)),
        stopped=searched.reason if searched else "",
        notes=(
            *(profile.notes if profile else ()),
            *(stitched.notes if stitched else ()),
            *_reused(store, attempts, final),
        ),
    )


def first_verdict_s(store: Store, run_id: str) -> float | None:
    """Seconds from a run's profile to its first verdict on an attempt, in the session that got it.

    Verdicts that the database had already do not count. None if there is no other yet.
    """
    profiled: datetime | None = None
    for event in store.events(run_id, _UNTIL_VERDICT):
        if isinstance(event, RunResumed):
            profiled = None
        elif isinstance(event, ProfileDone):
            profiled = profiled or event.time  # a plan that merges regions tells it again
        elif isinstance(event, AttemptEvaluated) and not event.reused and profiled:
            return (event.time - profiled).total_seconds()
    return None


def _shares_now(store: Store, promotions: Sequence[Promotion], profile: Profile | None) -> dict[str, float]:
    """Share of each bottleneck with the promoted solutions in place; empty if there are none."""
    speedups = {
        p.bottleneck: gain
        for p in promotions
        if (gain := gain_over_eager(store.get_evaluation(p.evaluation)))
    }
    if profile is None or not speedups:
        return {}
    return {b.definition.hash: b.share for b in profile.with_solutions(speedups).bottlenecks}


def _reused(store: Store, attempts: tuple[Attempt, ...], final: Evaluation | None) -> Iterator[str]:
    """What was not measured in this run."""
    judged = [(f"attempt {a.number}", store.get_evaluation(a.evaluation)) for a in attempts if a.evaluation]
    for name, evaluation in [*judged, *([("the whole model", final)] if final else [])]:
        if evaluation.reused:
            yield f"{name} was not measured in this run: its verdict is {evaluation.reused}"


def _states(
    store: Store, profile: Profile | None, attempts: tuple[Attempt, ...]
) -> tuple[BottleneckState, ...]:
    """The bottlenecks with attempts, if something was drawn for these."""
    if profile is None or not any(a.coder or a.directive for a in attempts):
        return ()
    evaluations = {a.id: store.get_evaluation(a.evaluation) for a in attempts if a.evaluation}
    known = [(b, b.definition.hash) for b in (*profile.bottlenecks, *profile.merges)]
    tried = [(b, tuple(a for a in attempts if a.bottleneck == name)) for b, name in known]
    return tuple(BottleneckState(b, own, evaluations) for b, own in tried if own)


def _directives(store: Store, run: Run, states: tuple[BottleneckState, ...]) -> tuple[DirectiveReport, ...]:
    gains: dict[str, list[float | None]] = defaultdict(list)
    for use in (use for state in states for _, use in state.uses()):
        gains[use.directive].append(use.gain)
    if not gains:
        return ()
    record = store.get_record(run.id, Directives) or Directives()
    known = (Directive(id=PLAIN, parent="", text=""), *(one for one in record.written if one.text))
    return tuple(_directive(one, gains[one.id]) for one in known)


def _directive(directive: Directive, gains: Sequence[float | None]) -> DirectiveReport:
    judged = [gain for gain in gains if gain is not None]
    return DirectiveReport(**dict(directive), attempts=len(gains), gain=fmean(judged) if judged else None)


def _models(
    store: Store, run: Run, states: tuple[BottleneckState, ...], attempts: tuple[Attempt, ...]
) -> tuple[ModelReport, ...]:
    drawn = [a for a in attempts if a.coder and a.plan]
    if not drawn or not states:
        return ()
    evaluations = {name: e for state in states for name, e in state.evaluations.items()}
    rewards = {name: reward for state in states for name, reward in state.rewards.items()}
    dollars = coder_dollars(store.calls(run.id, role="coder"))
    return tuple(
        _model(name, [a for a in drawn if a.coder == name], evaluations, rewards, dollars)
        for name in dict.fromkeys(a.coder for a in drawn)
    )


def _model(
    name: str,
    own: list[Attempt],
    evaluations: Mapping[str, Evaluation],
    rewards: Mapping[str, float],
    dollars: Mapping[str, float | None],
) -> ModelReport:
    finished = [rewards[a.id] for a in own if a.status in FINISHED and a.id in rewards]
    paid = [dollars.get(a.id, 0.0) for a in own]
    known = [d for d in paid if d is not None]
    return ModelReport(
        model=name,
        attempts=len(own),
        passed=sum(a.id in evaluations and evaluations[a.id].passed for a in own),
        reward=fmean(finished) if finished else None,
        dollars=sum(known) if len(known) == len(paid) else None,
    )


def _region(
    store: Store,
    promotions: Sequence[Promotion],
    bottleneck: Bottleneck,
    attempts: tuple[Attempt, ...],
    stitched: StitchResult | None,
    plan: ModelPlan | None,
) -> RegionReport:
    name = bottleneck.definition.hash
    own = [a for a in attempts if a.bottleneck == name]
    bare = RegionReport(
        name=bottleneck.definition.name,
        definition=name,
        op_type=bottleneck.definition.op_type,
        call_sites=len(bottleneck.call_sites),
        share=bottleneck.share,
        time_s=bottleneck.time_s,
        sol_s=bottleneck.sol_s,
        bound=bottleneck.bound,
        place=_place(name, plan),
        attempts=len(own),
        failed=sum(_failed(store, a) for a in own),
        outcome=_kept(bottleneck, own, plan, stitched),
    )
    promotion = next((p for p in promotions if p.bottleneck == name), None)
    if promotion is None:
        return bare
    winner = next((a for a in own if a.evaluation == promotion.evaluation), None)
    evaluation = store.get_evaluation(promotion.evaluation)
    calls = stitched.calls.get(name) if stitched else None
    return bare.model_copy(
        update={
            "solution": promotion.solution,
            "strategy": winner.plan.strategy if winner and winner.plan else "",
            "author": store.get_solution(promotion.solution).author,
            "evaluation": promotion.evaluation,
            "speedup": evaluation.speedup,
            "calls": calls,
            "outcome": _outcome(calls, stitched),
        }
    )


def _failed(store: Store, attempt: Attempt) -> bool:
    if attempt.status is AttemptStatus.FAILED:
        return True
    return attempt.evaluation is not None and not store.get_evaluation(attempt.evaluation).passed


def _outcome(calls: int | None, stitched: StitchResult | None) -> str:
    if stitched is None:
        return "verified alone; not integrated yet"
    if stitched.mode == "kernel":
        return "written out"
    if calls is not None:
        return "integrated"
    return "verified alone; the artifact does without it"


def _place(definition: str, plan: ModelPlan | None) -> int | None:
    chosen = [r.bottleneck for r in plan.regions if r.fuse] if plan else []
    return chosen.index(definition) + 1 if definition in chosen else None


def _kept(
    bottleneck: Bottleneck, attempts: list[Attempt], plan: ModelPlan | None, stitched: StitchResult | None
) -> str:
    if stitched is not None and bottleneck.definition.hash in stitched.packed:
        lowered = _lowered(stitched.mode)
        return f"oneDNN with packed weights{' in ' if lowered else ''}{lowered}"
    if not bottleneck.optimizable:
        return f"kept: {obstacle(bottleneck.definition.op_type)}"
    planned = {region.bottleneck: region for region in plan.regions} if plan else {}
    region = planned.get(bottleneck.definition.hash)
    if region is not None and not region.fuse and not attempts:
        return f"kept: skipped by the plan: {region.why}"
    return "kept: nothing was verified faster than eager" if attempts else "kept: not tried"

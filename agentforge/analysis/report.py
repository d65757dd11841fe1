"""The report of a run: built from the store alone, rendered as JSON and Markdown."""

from __future__ import annotations

from agentforge.schema import (
    Attempt,
    AttemptStatus,
    Bottleneck,
    Evaluation,
    FrozenModel,
    Interval,
    Profile,
    Run,
)
from agentforge.store import Store


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
    time_s: float
    """Eager seconds of all its call sites in one forward."""
    sol_s: float
    """Speed-of-light seconds of all its call sites."""
    bound: str
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
    """Calls of its kernels seen in the end-to-end run; None where it was not put in."""
    outcome: str = ""
    """`put in`, or why the region keeps what it had."""


class Report(FrozenModel):
    """A run, its numbers and their evidence."""

    run: Run
    profile: Profile | None = None
    regions: tuple[RegionReport, ...] = ()
    """In the profile's order."""
    end_to_end: Evaluation | None = None
    """The stitched model against the original one; None where none was made."""
    attempts: int = 0
    seconds: float = 0.0
    """Wall time over all sessions."""
    dollars: float = 0.0
    stopped: str = ""
    """Why the search ended."""
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """One sentence: what was reached, with its evidence."""
        if self.end_to_end is None or self.end_to_end.performance is None:
            return "No kernel was put in: the model stays as it was."
        eager = self.end_to_end.performance.speedup.get("eager")
        if not self.end_to_end.verified or eager is None:
            reasons = "; ".join(self.end_to_end.reasons) or self.end_to_end.status.value
            return f"The optimized model is not verified: {reasons}."
        others = "".join(
            f", {_interval(value)} over {name}"
            for name, value in self.end_to_end.performance.speedup.items()
            if name != "eager"
        )
        return f"Verified: {_interval(eager)} over eager{others}."


def build_report(store: Store, run_id: str) -> Report:
    """Read a run's report from the store; a run that goes on has what there is so far.

    Raises:
        UsageError: no such run.
    """
    run, profile = store.get_run(run_id), store.get_profile(run_id)
    attempts = store.attempts(run.id)
    events = {event.kind: dict(event.data) for event in store.events(run.id)}
    stitched = events.get("stitch.done", {})
    evaluation = stitched.get("evaluation")
    bottlenecks = profile.bottlenecks if profile else ()
    return Report(
        run=run,
        profile=profile,
        regions=tuple(_region(store, run, b, attempts, stitched) for b in bottlenecks),
        end_to_end=store.get_evaluation(str(evaluation)) if evaluation else None,
        attempts=len(attempts),
        seconds=run.seconds_used,
        dollars=sum(a.usage.dollars or 0.0 for a in attempts),
        stopped=str(events.get("search.done", {}).get("reason", "")),
        notes=(*(profile.notes if profile else ()), *map(str, _list(stitched.get("notes")))),
    )


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _dict(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _region(
    store: Store,
    run: Run,
    bottleneck: Bottleneck,
    attempts: tuple[Attempt, ...],
    stitched: dict[str, object],
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
        attempts=len(own),
        failed=sum(_failed(store, a) for a in own),
        outcome=_kept(bottleneck, own),
    )
    promotion = next((p for p in store.promotions(run.id) if p.bottleneck == name), None)
    if promotion is None:
        return bare
    winner = next(a for a in own if a.evaluation == promotion.evaluation)
    evaluation = store.get_evaluation(promotion.evaluation)
    calls = _dict(stitched.get("calls")).get(name)
    kept = _dict(stitched.get("kept")).get(name)
    return bare.model_copy(
        update={
            "solution": promotion.solution,
            "strategy": winner.plan.strategy if winner.plan else "",
            "author": store.get_solution(promotion.solution).author,
            "evaluation": promotion.evaluation,
            "speedup": evaluation.performance.speedup if evaluation.performance else {},
            "calls": calls,
            "outcome": str(kept) if kept else ("put in" if calls is not None else "not put in yet"),
        }
    )


def _failed(store: Store, attempt: Attempt) -> bool:
    if attempt.status is AttemptStatus.FAILED:
        return True
    return attempt.evaluation is not None and not store.get_evaluation(attempt.evaluation).passed


def _kept(bottleneck: Bottleneck, attempts: list[Attempt]) -> str:
    if not bottleneck.optimizable:
        return "kept: the vendor's library"
    return "kept: nothing was verified faster than eager" if attempts else "kept: not tried"


def _interval(value: Interval) -> str:
    return f"{value.point:.2f}x [{value.low:.2f}, {value.high:.2f}]"


def markdown(report: Report) -> str:
    """The report for people, in Markdown."""
    run = report.run
    lines = [
        f"# {run.name}: made by AgentForge",
        "",
        report.headline,
        "",
        f"Run `{run.id}` on {run.device}; target `{run.origin}`; {report.attempts} attempts in "
        f"{report.seconds:.0f} s. Intervals are 95%.",
        "",
    ]
    if report.end_to_end is not None and report.end_to_end.performance is not None:
        lines += _end_to_end(report.end_to_end)
    lines += [
        "## Regions",
        "",
        "| region | operators | share | eager time | alone, over eager | over compile | calls | outcome |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(region) for region in report.regions),
        "",
    ]
    if report.notes:
        lines += ["## Notes", "", *(f"- {note}" for note in report.notes), ""]
    return "\n".join(lines)


def _end_to_end(evaluation: Evaluation) -> list[str]:
    performance = evaluation.performance
    assert performance is not None
    rows = [
        f"| {name} | {seconds * 1e3:.3f} ms | {performance.latency_s * 1e3:.3f} ms | "
        f"{_interval(performance.speedup[name])} |"
        for name, seconds in performance.baseline_s.items()
    ]
    environment = evaluation.environment
    versions = ", ".join(f"{k} {v}" for k, v in environment.toolchain.items())
    return [
        "## End to end",
        "",
        "| against | before | after | speedup |",
        "|---|---|---|---|",
        *rows,
        "",
        f"Evidence: {evaluation.evidence.value}; {performance.processes} fresh processes, "
        f"{performance.blocks} blocks, control A/A' {_interval(performance.control)}. "
        f"{environment.device}, {environment.architecture}; {versions}.",
        *(f"- {reason}" for reason in evaluation.reasons),
        "",
    ]


def _row(region: RegionReport) -> str:
    eager, best = region.speedup.get("eager"), region.speedup.get("compile")
    cells = (
        f"`{region.name}`",
        region.op_type,
        f"{region.share:.1%}",
        f"{region.time_s * 1e3:.3f} ms",
        _interval(eager) if eager else "",
        _interval(best) if best else "",
        "" if region.calls is None else str(region.calls),
        region.outcome,
    )
    return f"| {' | '.join(cells)} |"

"""The report of a campaign, built from the store alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentforge.schema import (
    Campaign,
    CampaignItem,
    FrozenModel,
    Interval,
    ItemState,
    NativeVerdict,
    Run,
    StitchResult,
    SuiteProblem,
    UsageError,
)
from agentforge.store import Store
from agentforge.store.campaigns import Result, Spending

from .native.ranking import Ranked, ranking
from .published import ALL, Beside, differences, our_value, published
from .scores import ProblemScore, Scores, has_kernels, result_speedup, summary, timed, together

BEST = "best"
"""Name of the fastest baseline of each problem."""

REMOVED = "its run was removed"
"""Why an item that is done has no result."""

THRESHOLDS = (0.0, 1.0, 2.0)
"""The p of fast_p."""


class ItemReport(FrozenModel):
    """The result of one problem with one arm."""

    problem: str
    group: str
    arm: str
    state: ItemState
    definition: str = ""
    """The definition that it is one workload of, if there are several."""
    workloads: int = 1
    """Workloads that its verdict is on."""
    reason: str = ""
    """Why there is no result, why the baseline is kept, or why a later visit has no result."""
    run: str | None = None
    mode: str = ""
    """What the artifact runs: see `Report.mode`."""
    correct: bool = False
    """The artifact has kernels, and passed every check of correctness."""
    verified: bool = False
    """It is correct, and its speedups are verified."""
    reused: str = ""
    """The evaluation of an earlier run that the result is; empty if it was measured for this one."""
    codes: tuple[str, ...] = ()
    """Hashes of the code that judged its result; several if other code went on with its run. Empty if it has
    no result, or an old one."""
    weak: bool = False
    """The problem's inputs and tolerance accept wrong answers, so nothing can be verified."""
    speedup: dict[str, Interval] = {}
    """Of the artifact, by baseline; empty if it is eager. With several workloads, their geometric mean."""
    workload_speedup: dict[str, dict[str, Interval]] = {}
    """The same of each of several workloads, by its name."""
    workload_s: dict[str, float] = {}
    """Seconds a call of each of several workloads."""
    best_baseline: str = ""
    latency_s: float | None = None
    sol_s: float | None = None
    """Speed-of-light seconds of one forward; None if they are not known."""
    device: str = ""
    visits: int = 1
    """Times that its runs may spend the campaign's budget: more than once after `extend`."""
    seconds: float = 0.0
    """Wall time of all tries that have ended."""
    device_seconds: float = 0.0
    """Wall time of all verdicts: builds, checks and timing. Of all runs, as the next two: also of those that
    were given up."""
    tokens: int = 0
    dollars: float | None = 0.0
    """Of the calls whose cost is known; None if there are others alone."""
    unpriced_calls: int = 0
    """These others: the model's price is unknown, or there is no answer, or not yet."""
    ended: float | None = None
    """When its last try ended, in seconds since 1970; None before that, and of an imported item."""
    native: NativeVerdict | None = None
    """Of a verified solution, what the task's own checker says; None if it was not asked."""

    @property
    def task(self) -> str:
        """The definition, or the problem if it has no others."""
        return self.definition or self.problem

    def seconds_by_workload(self) -> dict[str, float]:
        """Seconds a call of what was judged, by the name that a problem of it alone has."""
        several = {f"{self.problem}/{name}": seconds for name, seconds in self.workload_s.items()}
        return several or ({self.problem: self.latency_s} if self.latency_s else {})

    @property
    def checker(self) -> str:
        """`accepted`, `refused` or `no verdict`; empty if it was not asked."""
        if self.native is None:
            return ""
        return {True: "accepted", False: "refused", None: "no verdict"}[self.native.accepted]


class ArmReport(FrozenModel):
    """All problems of one arm, or those of one group."""

    arm: str
    group: str = ""
    """Empty for all groups together."""
    problems: int
    over: int
    """Items that no worker takes any more; the others count as failures in all scores."""
    failed: int
    """Items that are failed or quarantined."""
    unsupported: int
    """Items that cannot run here; they count as failures in all scores."""
    correct: int
    verified: int
    weak: int
    scores: dict[str, Scores]
    """By baseline: `eager`, and `best` for the fastest baseline of each problem. Workloads of one definition
    count together as one problem: see `together`."""
    seconds: float
    device_seconds: float
    tokens: int
    dollars: float | None
    """As in `ItemReport`, and so is the next one."""
    unpriced_calls: int = 0

    def per_verified(self, total: float | None) -> float | None:
        """A cost for each verified result; None if there is none or the cost is unknown."""
        return total / self.verified if self.verified and total is not None else None


class DefinitionReport(FrozenModel):
    """All workloads of one definition with one arm."""

    definition: str
    arm: str
    workloads: int
    over: int
    verified: int
    speedup: dict[str, float]
    """Geometric mean over all workloads, by baseline; one without a solution keeps its baseline."""


class CampaignReport(FrozenModel):
    """A campaign's figures with what they rest on."""

    campaign: Campaign
    finished: bool
    devices: tuple[str, ...]
    arms: tuple[ArmReport, ...]
    """For each arm: all problems, then each group if there are several."""
    definitions: tuple[DefinitionReport, ...] = ()
    """Those with several workloads."""
    ranking: tuple[Ranked, ...] = ()
    """Of tasks that say how they rank."""
    items: tuple[ItemReport, ...]
    against: tuple[Beside, ...] = ()
    """Published figures beside those of each arm."""

    def of_arm(self, arm: str) -> dict[str, ItemReport]:
        """Results of one arm by problem."""
        return {item.problem: item for item in self.items if item.arm == arm}


def build_report(store: Store, name: str) -> CampaignReport:
    """Read a campaign's report; one that goes on has what there is so far.

    Raises:
        UsageError: there is no such campaign.
    """
    campaign = store.get_campaign(name)
    problems = {problem.id: problem for problem in store.campaign_problems(name)}
    rows = store.campaign_items(name)  # before their results: some may end meanwhile
    results, spent = store.campaign_results(name), store.item_spending(name)
    measured = store.campaign_device_seconds(name)
    ended = {one.item: one.ended for one in store.campaign_tries(name)}  # the last try of each
    items = tuple(
        _item(
            store,
            item,
            problems[item.problem],
            results.get(item.result_run or item.run or ""),
            spent.get(item.id, Spending()),
            device_s=measured.get(item.id, 0.0),
            ended=ended.get(item.id),
        )
        for item in rows
    )
    found_groups = dict.fromkeys(problem.group for problem in problems.values())
    groups = [group for group in found_groups if group and len(found_groups) > 1]
    arms = tuple(
        _arm(arm.name, group, [i for i in items if i.arm == arm.name and group in ("", i.group)])
        for arm in campaign.arms
        for group in ("", *groups)
    )
    return CampaignReport(
        campaign=campaign,
        finished=all(item.state.over for item in items),
        devices=tuple(dict.fromkeys(item.device for item in items if item.device)),
        arms=arms,
        definitions=tuple(_definitions(items)),
        ranking=tuple(
            ranking(
                problems.values(),
                [arm.name for arm in campaign.arms],
                {(n, i.arm): s for i in items if i.verified for n, s in i.seconds_by_workload().items()},
            )
        ),
        items=items,
    )


def beside(report: CampaignReport, names: Sequence[str]) -> CampaignReport:
    """The report with published figures beside its own.

    Raises:
        UsageError: a name is not known.
    """
    of_group = {(arm.arm, arm.group or ALL): arm for arm in report.arms}
    groups = {item.group for item in report.items}
    if len(groups) == 1:  # then the arm's line for all problems is that of its group
        of_group |= {(arm.arm, group): arm for arm in report.arms for group in groups}
    found = []
    for figure in (figure for name in names for figure in published(name)):
        for group, theirs in figure.values.items():
            for arm in report.campaign.arms:
                own = of_group.get((arm.name, group))
                differs = differences(
                    figure,
                    group,
                    suite=report.campaign.suite.partition(":")[0],
                    problems=own.problems if own else 0,
                    devices=report.devices,
                    finished=report.finished,
                )
                ours = our_value(own.scores, figure) if own else None
                found.append(
                    Beside(
                        figure=figure, group=group, theirs=theirs, arm=arm.name, ours=ours, differs=differs
                    )
                )
    return report.model_copy(update={"against": tuple(found)})


def score(item: ItemReport, baseline: str) -> ProblemScore:
    """One result against `eager` or `BEST`; an artifact that is a baseline is no solution."""
    kept = item.speedup.get(baseline)
    return timed(
        item.latency_s if item.verified else None,
        item.speedup.get(item.best_baseline if baseline == BEST else baseline),
        problem=item.problem,
        sol_s=item.sol_s,
        kept=max(1.0, kept.point) if kept and item.mode.startswith("compile") else 1.0,
    )


def by_definition(items: Iterable[ItemReport]) -> dict[tuple[str, str], list[ItemReport]]:
    """Items of each arm and definition; a problem with one workload is its own."""
    found: dict[tuple[str, str], list[ItemReport]] = {}
    for item in items:
        found.setdefault((item.arm, item.task), []).append(item)
    return found


def definition_score(items: Sequence[ItemReport], baseline: str) -> ProblemScore:
    """The workloads of one definition with one arm, as one score."""
    return together([score(item, baseline) for item in items], items[0].task)


def run_of(store: Store, identifier: str | None) -> Run | None:
    """A run of an item; None if there is none, or a user removed it."""
    try:
        return store.get_run(identifier) if identifier else None
    except UsageError:
        return None


def run_speedup(store: Store, run: str | None) -> float:
    """Speedup of a run's result over the fastest baseline; 0 if it is not verified, or there is none."""
    stitched = store.get_record(run, StitchResult) if run else None
    evaluation = store.get_evaluation(stitched.evaluation) if stitched and stitched.evaluation else None
    return result_speedup(stitched, evaluation)


def _item(
    store: Store,
    item: CampaignItem,
    problem: SuiteProblem,
    result: Result | None,
    spent: Spending,
    *,
    device_s: float,
    ended: float | None,
) -> ItemReport:
    """The item's result, and what all its runs cost, those that were given up too."""
    bare = ItemReport(
        problem=item.problem,
        group=problem.group,
        arm=item.arm,
        state=item.state,
        definition=problem.definition,
        workloads=len(problem.workloads) or 1,
        reason=item.reason,
        run=item.result_run or item.run,
        visits=item.visits,
        seconds=item.seconds,
        device_seconds=device_s,
        tokens=spent.tokens,
        dollars=_known(spent.dollars, spent.unknown),
        unpriced_calls=spent.unknown,
        ended=ended,
    )
    if bare.run and result is None:
        return bare.model_copy(update={"run": None, "reason": item.reason or REMOVED})
    if result is None or result.stitched is None or item.result_run is None:
        return bare
    run, stitched, evaluation = result.run, result.stitched, result.evaluation
    own = has_kernels(stitched)
    performance = evaluation.performance if evaluation else None
    each = performance.workload_s if performance else {}
    verified = own and stitched.proven and evaluation is not None and evaluation.verified
    native = result.native if verified else None
    models = (e.definition == run.target or e.definition == store.definition_of(run) for e in result.weak)
    return bare.model_copy(
        update={
            "reason": (item.reason if item.state.over else "") or ("" if own else stitched.summary),
            "mode": stitched.mode,
            "correct": own and evaluation is not None and evaluation.passed,
            "verified": verified,
            "native": native if native and native.evaluation == stitched.evaluation else None,
            "reused": evaluation.reused if evaluation else "",
            "codes": result.judged.codes if result.judged else (),
            "weak": any(models),
            "speedup": performance.speedup if performance else {},
            "workloads": max(bare.workloads, len(each)),
            "workload_speedup": performance.workload_speedup if performance else {},
            "workload_s": {name: seconds["candidate"] for name, seconds in each.items()},
            "best_baseline": performance.best_baseline if performance else "",
            "latency_s": performance.latency_s if performance else None,
            "sol_s": (performance and performance.sol_s) or stitched.sol_s,
            "device": run.device,
        }
    )


def _arm(arm: str, group: str, items: Sequence[ItemReport]) -> ArmReport:
    unpriced = sum(item.unpriced_calls for item in items)
    return ArmReport(
        arm=arm,
        group=group,
        problems=len(items),
        over=sum(item.state.over for item in items),
        failed=sum(item.state in (ItemState.FAILED, ItemState.QUARANTINED) for item in items),
        unsupported=sum(item.state is ItemState.UNSUPPORTED for item in items),
        correct=sum(item.correct for item in items),
        verified=sum(item.verified for item in items),
        weak=sum(item.weak for item in items),
        scores={
            baseline: summary(
                [definition_score(rows, baseline) for rows in by_definition(items).values()], THRESHOLDS
            )
            for baseline in ("eager", BEST)
        },
        seconds=sum(item.seconds for item in items),
        device_seconds=sum(item.device_seconds for item in items),
        tokens=sum(item.tokens for item in items),
        dollars=_known(sum(item.dollars or 0.0 for item in items), unpriced),
        unpriced_calls=unpriced,
    )


def _definitions(items: Iterable[ItemReport]) -> Iterator[DefinitionReport]:
    for (arm, name), rows in by_definition(items).items():
        if not rows[0].definition and rows[0].workloads == 1:
            continue
        scores = {b: definition_score(rows, b) for b in ("eager", BEST)}
        yield DefinitionReport(
            definition=name,
            arm=arm,
            workloads=sum(item.workloads for item in rows),
            over=sum(item.workloads for item in rows if item.state.over),
            verified=sum(item.workloads for item in rows if item.verified),
            speedup={b: found.speedup or found.kept for b, found in scores.items()},
        )


def _known(dollars: float, unpriced: int) -> float | None:
    """Dollars of the calls whose cost is known; None if there are others alone."""
    return dollars if dollars or not unpriced else None

"""A campaign's report as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentforge.markdown import table
from agentforge.schema import Interval, ItemState, baseline_name
from agentforge.visible import visible

from .published import Beside
from .report import BEST, THRESHOLDS, ArmReport, CampaignReport, ItemReport
from .scores import Scores, own_kernels

KNOWLEDGE = "what the database had before the campaign, and what each arm found itself"
"""What the runs of a campaign with several arms may know."""
_AGAINST = {"eager": "eager", BEST: "the best baseline"}


def markdown(report: CampaignReport) -> str:
    """The report for a person: scores, then each problem, then what failed."""
    return "\n".join(_markdown(report)) + "\n"


def _markdown(report: CampaignReport) -> Iterator[str]:
    yield f"# Campaign {visible(report.campaign.name)}\n"
    for line in conditions(report):
        yield f"- {visible(line)}"
    for section in sections(report):
        yield f"\n## {section.title}\n"
        yield from table(section.head, section.rows)
        if section.note:
            yield f"\n{section.note}"


def conditions(report: CampaignReport) -> Iterator[str]:
    """What the figures rest on, in lines without markup."""
    campaign = report.campaign
    over = sum(item.state.over for item in report.items)
    yield f"Suite: {campaign.suite}, {campaign.problems} problems ({campaign.problems_hash})"
    yield f"Arms: {', '.join(f'{arm.name} ({arm.agent})' for arm in campaign.arms)}"
    if len(campaign.arms) > 1:
        yield f"Knowledge: {KNOWLEDGE}"
    limits = campaign.budget.model_dump(exclude_none=True).items()
    budget = ", ".join(f"{value:g} {name}" for name, value in limits) or "none"
    more = sum(item.visits > 1 for item in report.items)
    yield f"Budget of a run: {budget}" + (f"; {more} runs have it more than once" if more else "")
    yield f"Measured by AgentForge {campaign.version} on {', '.join(report.devices) or 'no device yet'}"
    yield f"{over} of {len(report.items)} runs are over" + ("" if report.finished else ": not finished")


class Section(NamedTuple):
    """A table of the report."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""


def sections(report: CampaignReport) -> Iterator[Section]:
    """The report's tables, in order."""
    yield Section("Results", _COUNTS, [_counts(arm) for arm in report.arms])
    for baseline, said in _AGAINST.items():
        scores = [_scores(arm, arm.scores[baseline]) for arm in report.arms]
        note = f"{_unmeasured(report)}{_MEANINGS}" if baseline == BEST else ""
        yield Section(f"Speed against {said}", _SCORES, scores, note)
    costs = [_costs(arm) for arm in report.arms]
    yield Section("Cost of a verified solution", _COSTS, costs, _DEVICE_SECONDS)
    if judged := Counter(" and ".join(i.codes) or "not recorded" for i in report.items if i.mode):
        yield Section("The code that judged", _CODES, judged.most_common(), _JUDGED)
    if report.definitions:
        rows = [
            (d.definition, d.arm, d.workloads, d.verified, *(f"{d.speedup[b]:.3f}" for b in _AGAINST))
            for d in report.definitions
        ]
        yield Section("Definitions with several workloads", _DEFINITIONS, rows, _TOGETHER)
    if several := [item for item in report.items if item.workload_speedup]:
        each = [
            (i.problem, name, i.arm, _result(i), over.get("eager", ""), over.get(i.best_baseline, ""))
            for i in several
            for name, over in i.workload_speedup.items()
        ]
        yield Section("Workloads of one verdict", _WORKLOADS, each)
    if report.ranking:
        rows = [
            (r.task, r.ranking_by, r.place or "-", r.arm, _number(r.seconds and r.seconds * 1e3, ".4g"))
            for r in report.ranking
        ]
        yield Section("Ranking by the tasks' own figure", _RANKING, rows, _RANKED)
    if asked := [(item, item.native) for item in report.items if item.native]:
        others = [
            (item.problem, item.arm, f"{item.checker}: {said.message}")
            for item, said in asked
            if not said.accepted
        ]
        right, wrong = (sum(said.accepted is what for _, said in asked) for what in (True, False))
        note = (
            f"Verified solutions by {asked[0][1].criterion}: {right} right, {wrong} wrong, of {len(asked)}. "
        )
        yield Section("The suite's own check does not agree", _REASONS, others, note + _CHECKERS)
    if report.against:
        yield Section("Published figures", _PUBLISHED, [published_row(one) for one in report.against])
    yield Section("Problems", _PROBLEMS, [_row(item) for item in report.items])
    if taken := [(i.problem, i.arm, i.reused) for i in report.items if i.reused]:
        yield Section("Not measured again", ("problem", "arm", "the verdict is"), taken)
    later = [i for i in report.items if i.mode and i.state.over and i.state is not ItemState.DONE]
    kept = [i for i in report.items if i.mode and not own_kernels(i.mode) and i not in later]
    for title, items in (
        ("Weak tasks: wrong answers pass, so nothing can be verified", [i for i in report.items if i.weak]),
        ("Without a result", [i for i in report.items if i.state.over and not i.mode]),
        ("The baseline is kept", kept),
        ("A later visit has no result; the earlier one counts", later),
    ):
        if items:
            yield Section(title, _REASONS, [(i.problem, i.arm, i.reason or i.mode) for i in items])


_COUNTS = (
    "arm", "group", "problems", "over", "verified", "correct", "failed", "unsupported", "weak tasks",
    "seconds", "dollars",
)  # fmt: skip
_COSTS = ("arm", "group", "seconds", "device-seconds", "tokens", "dollars")
_DEVICE_SECONDS = "Device-seconds are the wall time of verdicts: builds, checks and timing."
_CODES = ("code", "items")
_JUDGED = (
    "A code is a hash of the parts of AgentForge that decide a verdict. Two codes may check or time "
    "differently, also within one version."
)
_DEFINITIONS = ("definition", "arm", "workloads", "verified", "geomean over eager", "over the best baseline")
_WORKLOADS = ("problem", "workload", "arm", "result", "over eager", "over the best baseline")
_PUBLISHED = ("published by", "figure", "group", "theirs", "arm", "ours", "what differs", "source")
_PROBLEMS = ("problem", "arm", "result", "over eager", "over the best baseline", "visits", "seconds")
_REASONS = ("problem", "arm", "reason")
_RANKING = ("task", "ranked by", "place", "arm", "ms a call")
_RANKED = (
    "`last` is the time of the last benchmark, `mean` and `geom` are the means of all. The times are our "
    "medians; GPU MODE takes means. An arm needs a verified solution of each benchmark that counts."
)
_CHECKERS = "Our verdict stays as it is: it comes from other inputs and another tolerance."
_MEANINGS = (
    "fast_p is the share of all problems with a verified solution that is more than p times as fast. "
    '"Low end" counts the low end of the 95 % interval. "Passed" means verified solutions only. "Kept" '
    "means all problems, and one without a solution keeps its baseline. The SOL score is the mean over the "
    "problems whose speed of light is known; one without a solution counts as 0."
)
_TOGETHER = (
    "The mean is geometric, over all workloads; one without a verified solution keeps its baseline. fast_p "
    "and the means above count such a definition once, and as solved if all its workloads are."
)
_SCORES = (
    "arm",
    "group",
    *(f"fast_{p:g}" for p in THRESHOLDS),
    *(f"fast_{p:g}, low end" for p in THRESHOLDS[1:]),
    "geomean, passed",
    "median, passed",
    "geomean, kept",
    "median, kept",
    "SOL score (problems)",
)


def _unmeasured(report: CampaignReport) -> str:
    """Says beside how many results only eager was measured, so that it is their best baseline."""
    measured = [item for item in report.items if item.speedup]
    eager = sum(item.speedup.keys() == {"eager"} for item in measured)
    if not eager:
        return ""
    return (
        f"Beside {eager} of {len(measured)} measured results torch.compile was not measured: their best "
        "baseline is eager. "
    )


def _counts(a: ArmReport) -> tuple[object, ...]:
    counts = (a.problems, a.over, a.verified, a.correct, a.failed, a.unsupported, a.weak)
    return (*_which(a), *counts, f"{a.seconds:.0f}", _money(a.dollars, a.unpriced_calls))


def _costs(a: ArmReport) -> tuple[object, ...]:
    return (
        *_which(a),
        _number(a.per_verified(a.seconds), ".0f"),
        _number(a.per_verified(a.device_seconds), ".0f"),
        _number(a.per_verified(a.tokens), ".0f"),
        _money(a.per_verified(a.dollars), a.unpriced_calls) if a.verified else "-",
    )


def _scores(arm: ArmReport, scores: Scores) -> tuple[object, ...]:
    return (
        *_which(arm),
        *(f"{scores.fast[f'{p:g}']:.1%}" for p in THRESHOLDS),
        *(f"{scores.fast_low[f'{p:g}']:.1%}" for p in THRESHOLDS[1:]),
        *(_number(value, ".3f") for value in (scores.geometric_mean_speedup, scores.median_speedup)),
        *(_number(value, ".3f") for value in (scores.geometric_mean_kept, scores.median_kept)),
        "-" if scores.sol_score is None else f"{scores.sol_score:.3f} ({scores.sol_known})",
    )


def published_row(beside: Beside) -> tuple[str, ...]:
    """A published value and ours, as text."""
    figure = beside.figure
    form = ".1%" if figure.metric.startswith("fast_") else ".2f"
    return (
        figure.who,
        f"{figure.metric} over {baseline_name(figure.baseline)}",
        beside.group,
        format(beside.theirs, form),
        beside.arm,
        _number(beside.ours, form),
        "; ".join(beside.differs),
        figure.source,
    )


def _which(arm: ArmReport) -> tuple[str, str]:
    return arm.arm, arm.group or "all"


def _result(item: ItemReport) -> str:
    return "verified" if item.verified else "not verified" if item.correct else item.mode or item.state


def _row(item: ItemReport) -> tuple[object, ...]:
    over_best = item.speedup.get(item.best_baseline)
    return (
        item.problem,
        item.arm,
        _result(item),
        item.speedup.get("eager", ""),
        over_best or "",
        item.visits,
        f"{item.seconds:.0f}",
    )


COLUMNS = (
    "problem", "group", "definition", "arm", "state", "mode", "correct", "verified", "weak", "best_baseline",
    "latency_s", "sol_s", "device", "visits", "seconds", "device_seconds", "tokens", "dollars",
    "unpriced_calls", "run", "reason", "reused", "workloads",
)  # fmt: skip
"""Columns of the CSV, before those of the speedups."""


def as_csv(report: CampaignReport) -> str:
    """One line for each problem and arm."""
    text = io.StringIO()
    rows = csv.writer(text)
    baselines = list(dict.fromkeys(name for item in report.items for name in item.speedup))
    ends = ("point", "low", "high")
    rows.writerow([*COLUMNS, "checker", *(f"speedup_{name}_{end}" for name in baselines for end in ends)])
    for item in report.items:
        fields = item.model_dump(mode="json")
        found: list[Interval | None] = [item.speedup.get(name) for name in baselines]
        rows.writerow(
            [_cell(fields[name]) for name in COLUMNS]
            + [item.checker]
            + [getattr(interval, end) if interval else "" for interval in found for end in ends]
        )
    return text.getvalue()


def _cell(value: object) -> object:
    """A field as a terminal and a spreadsheet show it: a text that begins like a formula would be one."""
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(("=", "+", "-", "@")) else visible(value)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _money(value: float | None, unpriced: int) -> str:
    return "unknown" if value is None else f"{'at least ' if unpriced else ''}{value:.4f}"

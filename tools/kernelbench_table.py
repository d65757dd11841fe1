"""Write the scores of the campaign over KernelBench into docs/campaigns.md, from its exported state.

python tools/kernelbench_table.py            # write the tables
python tools/kernelbench_table.py --check    # fail if the tables in the file are not current

The state, benchmarks/results/kernelbench_cpu.jsonl.gz, is written by `agentforge campaign export NAME
benchmarks/results/kernelbench_cpu.jsonl.gz --format state`; docs/campaigns.md says how it is continued.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from agentforge.campaigns.exports.state import read_state  # noqa: E402
from agentforge.campaigns.exports.state_import import import_state  # noqa: E402
from agentforge.campaigns.report import BEST, ArmReport, CampaignReport, ItemReport, build_report  # noqa: E402
from agentforge.schema import ItemState, SearchSummary, StitchResult, baseline_name  # noqa: E402
from agentforge.store import Store  # noqa: E402
from tools.generated import ROOT, GeneratedPart  # noqa: E402

TABLE = GeneratedPart("docs/campaigns.md", "kernelbench", "tools/kernelbench_table.py")
STATE = ROOT / "benchmarks" / "results" / "kernelbench_cpu.jsonl.gz"
WORST = 10
"""Losses that are listed."""
_HEAD = (
    "level",
    "problems",
    "ended",
    "verified",
    "fast_1 over eager",
    "fast_1 over the fastest baseline",
    "geometric mean over eager, verified",
    "median wall time",
)
_NUMBER = re.compile(r"\d+(\.\d+)?")
"""What differs between two reasons of one kind."""


def content(state: Path = STATE) -> str:
    """The tables in Markdown."""
    if not state.exists():
        return "Not measured yet.\n"
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/state.db") as store:
        report = build_report(store, import_state(store, read_state(state), None).name)
        parts = _head(report), _levels(report), _losses(report.items, store), _reasons(report.items)
        return "\n".join(line for part in parts for line in part) + "\n"


def _head(report: CampaignReport) -> Iterator[str]:
    campaign, over = report.campaign, sum(item.state.over for item in report.items)
    devices = ", ".join(report.devices) or "no device"
    silent = [i.problem for i in report.items if i.state.over and not (i.verified or i.weak or i.reason)]
    slower = [i.problem for i in report.items if i.verified and i.speedup["eager"].point < 1]
    yield (
        f"{over} of {len(report.items)} problems have ended; without a verdict or a reason: "
        f"{', '.join(silent) or 'none'}; kept and slower than eager: {', '.join(slower) or 'none'}. "
        f"On {devices}, {campaign.budget.minutes} minutes of search for each problem, begun on "
        f"{campaign.created:%Y-%m-%d}."
    )
    yield ""


def _levels(report: CampaignReport) -> Iterator[str]:
    yield _line(_HEAD)
    yield _line(["---"] * len(_HEAD))
    several = len(report.campaign.arms) > 1
    for arm in sorted(report.arms, key=lambda arm: (arm.arm, not arm.group)):
        name = f"{arm.group or 'all'} ({arm.arm})" if several else arm.group or "all"
        yield _line([name, *_row(arm, report.items)])
    yield ""


def _row(arm: ArmReport, items: Iterable[ItemReport]) -> list[str]:
    own = [i for i in items if i.arm == arm.arm and arm.group in ("", i.group)]
    seconds = [i.seconds for i in own if i.state.over]
    eager, best = arm.scores["eager"], arm.scores[BEST]
    mean = eager.geometric_mean_speedup
    return [
        f"{arm.problems}",
        f"{arm.over}",
        f"{arm.verified}",
        f"{eager.fast['1']:.1%} (interval above: {eager.fast_low['1']:.1%})",
        f"{best.fast['1']:.1%} (interval above: {best.fast_low['1']:.1%})",
        f"{mean:.2f}x" if mean else "",
        f"{statistics.median(seconds):.0f} s" if seconds else "",
    ]


def _losses(items: Sequence[ItemReport], store: Store) -> Iterator[str]:
    """The solutions that are slowest beside the fastest baseline, then those problems that have none."""
    found = sorted(((_over_best(item), item) for item in items if item.verified), key=lambda pair: pair[0])
    lost = [(over, item) for over, item in found if over < 1][:WORST]
    if not lost:
        return
    yield "The verified solutions that are slower than the fastest baseline, the slowest first:"
    yield ""
    yield _line(["problem", "over the fastest baseline", "over eager", "known causes"])
    yield _line(["---"] * 4)
    for over, item in lost:
        eager = item.speedup["eager"]
        known = "; ".join(_known(item, store))
        yield _line(
            [item.problem, f"{over:.2f}x", f"{eager.point:.2f}x [{eager.low:.2f}, {eager.high:.2f}]", known]
        )
    yield ""


def _known(item: ItemReport, store: Store) -> Iterator[str]:
    """What the state says of a verified solution that is slower than the fastest baseline."""
    yield f"{baseline_name(item.best_baseline)} is faster"
    run = item.run or ""
    if stitched := store.get_record(run, StitchResult):
        yield f"regions with own kernels: {len(stitched.chosen)}"
    if search := store.get_record(run, SearchSummary):
        yield f"attempts: {search.attempts}, then {search.reason}"
    if item.latency_s and item.sol_s:
        yield f"it takes {item.latency_s / item.sol_s:.1f} times as long as at the speed of light"


def _over_best(item: ItemReport) -> float:
    return min(interval.point for interval in item.speedup.values())


def _reasons(items: Sequence[ItemReport]) -> Iterator[str]:
    """Problems without a verified solution, by the kind of reason."""
    kinds: dict[str, list[str]] = {}
    for item in items:
        if item.state.over and not item.verified:
            kinds.setdefault(_kind(item), []).append(item.problem)
    yield "Problems without a verified solution:"
    yield ""
    yield _line(["reason", "problems", "for example"])
    yield _line(["---"] * 3)
    for kind, names in sorted(kinds.items(), key=lambda entry: -len(entry[1])):
        yield _line([kind, f"{len(names)}", ", ".join(names[:3])])


def _kind(item: ItemReport) -> str:
    """The reason without what differs from problem to problem."""
    if item.weak:
        return "its inputs accept wrong answers, so nothing can be verified"
    text = item.reason.partition("; it said last")[0].removeprefix(f"{item.problem.partition('/')[2]}: ")
    kept = item.state is not ItemState.DONE
    return f"{item.state.value}: {_NUMBER.sub('N', text)}" if kept else _NUMBER.sub("N", text)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    raise SystemExit(TABLE.main(content()))

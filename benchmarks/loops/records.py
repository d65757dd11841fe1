"""What `agreement.py` says about one case: both ratios, whether they agree, and why not; tables of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentforge.referee.timing.statistics import (
    CONTROL_SLACK,
    Logs,
    deviation,
    log_ratios,
    speedup,
    undisturbed,
)
from agentforge.referee.timing.timer import GroupTimes
from agentforge.schema import Interval

from .plain_loop import LOOPS, Series, Turn

WITHIN = 0.05
RATIOS = {"ours": "candidate", "compile": "compile", "eager": "control"}
"""Party, and its name in the referee; the ratio is eager / party."""
MOST_OTHERS = 0.25
"""Mean number of other threads that run on a machine that counts as idle."""
_MOST_STEAL, _WIDE = 0.05, 1.6
_MOST_HANDOVER_S = 1e-3
"""A call that takes longer by more than this does so for another reason."""
_DISTURBED_BLOCK = 1.5
_FEW_FAULTS = 64
"""Page faults per call that cost less than 0.02 ms."""


@dataclass
class Group:
    """The plain loop beside one process group of the referee."""

    times: GroupTimes
    series: Series = field(default_factory=dict)
    others: list[int] = field(default_factory=list)
    """Threads of other programs that ran, before each block."""
    steal: list[float] = field(default_factory=list)
    faults: dict[str, list[float]] = field(default_factory=dict)
    """Page faults per timed call, by the referee's name of the party."""
    plain_faults: dict[str, list[float]] = field(default_factory=dict)
    """The same in the rotating loop, one entry per turn."""

    def add(self, block: Mapping[str, Mapping[str, Turn]]) -> None:
        """Append a block of the plain loop."""
        for loop, parties in block.items():
            for party, (seconds, faults) in parties.items():
                self.series.setdefault(loop, {}).setdefault(party, []).append(seconds)
                if loop == LOOPS[0]:
                    self.plain_faults.setdefault(party, []).append(faults)

    def seconds(self, loop: str) -> dict[str, list[float]]:
        """Seconds per call by party, of the blocks that nothing disturbed."""
        kept = undisturbed(self.series[loop], _DISTURBED_BLOCK)
        return {party: [values[i] for i in kept] for party, values in self.series[loop].items()}


def compared(groups: Sequence[Group]) -> dict[str, Any]:
    """The records of one case, and what disturbed it."""
    inside = [g.times.seconds for g in groups]
    loops = {loop: [g.seconds(loop) for g in groups] for loop in LOOPS}
    parties = {party: theirs for party, theirs in RATIOS.items() if all(theirs in g for g in inside)}
    names = {**parties, "eager": "eager"}
    ms = {
        "referee": {p: _ms(inside, name) for p, name in names.items()},
        **{loop: {p: _ms(loops[loop], p) for p in parties} for loop in LOOPS},
    }
    faults = {
        "referee": {p: _faults([g.faults[name] for g in groups]) for p, name in names.items()},
        "rotating": {p: _faults([g.plain_faults[p] for g in groups]) for p in parties},
    }
    handover = {
        loop: statistics.median(ms["referee"][p] - ms[loop][p] for p in parties) / 1e3
        for loop in ("written", "paused")
    }
    controls = {
        "referee": _logs(inside, "control"),
        **{loop: _logs(found, "control") for loop, found in loops.items()},
    }
    records = {}
    for party, theirs in parties.items():
        referee = speedup(_logs(inside, theirs), controls["referee"])
        plain = {
            loop: speedup(_logs(loops[loop], "control" if party == "eager" else party), controls[loop])
            for loop in LOOPS
        }
        records[party] = record(referee, plain, {k: v | {"party": v[party]} for k, v in ms.items()}, handover)
        if not records[party]["agree"] and any(_differ(faults, p) for p in ("eager", party)):
            records[party]["reason"] = "allocator"
    return {
        "disturbed": disturbance(groups, {k: deviation(v) for k, v in controls.items()}),
        "handover_ms": round(handover["written"] * 1e3, 4),
        "after_a_pause_ms": round(handover["paused"] * 1e3, 4),
        "ms": ms,
        "faults": faults,
        "records": records,
    }


def _faults(groups: Sequence[Sequence[float]]) -> float:
    return round(statistics.median(n for group in groups for n in group), 1)


def _differ(faults: Mapping[str, Mapping[str, float]], party: str) -> bool:
    """Whether a party has clearly more page faults in one of the two."""
    one, other = (faults[where][party] for where in ("referee", "rotating"))
    return abs(one - other) > _FEW_FAULTS + 0.1 * max(one, other)


def _logs(groups: Sequence[Mapping[str, Sequence[float]]], party: str) -> list[Logs]:
    return [log_ratios(g["eager"], g[party]) for g in groups]


def _ms(groups: Sequence[Mapping[str, Sequence[float]]], party: str) -> float:
    return round(statistics.median(s for g in groups for s in g[party]) * 1e3, 4)


def record(
    referee: Interval,
    plain: Mapping[str, Interval],
    ms: Mapping[str, Mapping[str, float]],
    handover_s: Mapping[str, float],
) -> dict[str, Any]:
    """Both ratios, whether they agree, and why not.

    Args:
        referee: its ratio.
        plain: the ratios of the plain loops.
        ms: milliseconds of `eager` and `party`, by referee and loop.
        handover_s: time that the referee takes longer for a call than the loops that write their inputs.
    """

    def later(loop: str, than: str = "written") -> Interval:
        """The ratio if each call took the handover longer."""
        add = max(0.0, min(handover_s[than], _MOST_HANDOVER_S)) * 1e3
        factor = (ms[loop]["eager"] + add) / (ms[loop]["party"] + add)
        by = factor * ms[loop]["party"] / ms[loop]["eager"]
        return Interval(point=plain[loop].point * by, low=plain[loop].low * by, high=plain[loop].high * by)

    found = {
        "": plain["rotating"],
        "handover": later("rotating"),
        "cache": plain["written"],
        "cache and handover": later("written"),
        "pause": plain["paused"],
        "pause and handover": later("paused", "paused"),
    }
    reason = next((name for name, ratio in found.items() if agrees(referee, ratio)), "unknown")
    return {
        "referee": _rounded(referee),
        "plain": _rounded(plain["rotating"]),
        "written": _rounded(plain["written"]),
        "paused": _rounded(plain["paused"]),
        "agree": reason == "",
        "reason": reason,
    }


def agrees(one: Interval, other: Interval) -> bool:
    """Whether two ratios differ by at most 5 %, or one lies in the other's interval, if that is narrow."""
    near = abs(math.log(one.point / other.point)) <= math.log(1 + WITHIN)
    inside = any(
        a.low <= b.point <= a.high and a.high / a.low <= _WIDE for a, b in ((one, other), (other, one))
    )
    return near or inside


def _rounded(interval: Interval) -> dict[str, float]:
    return {name: round(value, 4) for name, value in interval.model_dump().items()}


def disturbance(groups: Sequence[Group], deviations: Mapping[str, float]) -> str:
    """What else went on, in words; empty on a quiet machine."""
    found = [
        f"the control of {name} is off by {value - 1:.0%}"
        for name, value in deviations.items()
        if value > 1 + CONTROL_SLACK
    ]
    others = statistics.fmean(n for g in groups for n in g.others)
    if others > MOST_OTHERS:
        found.append(f"{others:.1f} other threads ran")
    steal = max(statistics.fmean([g.times.steal, *g.steal]) for g in groups)
    if steal > _MOST_STEAL:
        found.append(f"{steal:.0%} of the processor time was stolen")
    return "; ".join(found)


def title(name: str, nbytes: int) -> str:
    """Name of a case, such as `softmax 64 KiB`."""
    return f"{name} {_size(nbytes)}"


def _size(nbytes: int) -> str:
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """Counts over all records of undisturbed cases."""
    calm = [case for case in found.values() if not case["disturbed"]]
    records = [record for case in calm for record in case["records"].values()]
    reasons: dict[str, int] = {}
    for entry in records:
        reasons[entry["reason"] or "agree"] = reasons.get(entry["reason"] or "agree", 0) + 1
    return {
        "operators": len({case["operator"] for case in calm}),
        "cases": len(calm),
        "disturbed": len(found) - len(calm),
        "records": len(records),
        "by_reason": reasons,
    }


def table(found: Mapping[str, Any], *, heading: bool = True) -> str:
    """Markdown: a row for each case and party."""
    lines = [
        "| operator | inputs | party | referee | plain loop | agree |",
        "|---|---|---|---|---|---|",
    ][: 2 * heading]
    for case in sorted(found.values(), key=lambda c: (c["bytes"], c["operator"])):
        for party, entry in case["records"].items():
            verdict = "yes" if entry["agree"] else f"no: {entry['reason']}"
            lines.append(
                f"| {case['operator']} | {_size(case['bytes'])} | {party} | {_cell(entry['referee'])} | "
                f"{_cell(entry['plain'])} | {verdict}{' (disturbed)' if case['disturbed'] else ''} |"
            )
    return "\n".join(lines) + "\n"


def _cell(ratio: Mapping[str, float]) -> str:
    return f"{ratio['point']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"

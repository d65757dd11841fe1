"""What an evaluation means for a case of the corpus, and the rates over all of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from corpus import Case
from pydantic import BaseModel
from rich.table import Table

from agentforge.schema import Evaluation, EvaluationStatus, Evidence, Level, ReasonCode


class Outcome(StrEnum):
    """How the referee did on one candidate."""

    CAUGHT = "caught"
    """Hostile, and judged so: suspicious, or a status against it; of the statuses in `CRASHES`, one that its
    file names."""
    CRASHED = "crashed"
    """Hostile, and it crashed although its file does not expect that: the trick itself was not tried."""
    DOUBTED = "doubted"
    """Hostile, without a status against it, and kept from `verified` by a doubt that the referee names."""
    NEUTRALISED = "neutralised"
    """Hostile and verified, but at a truthful speed: the attack had no effect. Not counted as caught."""
    MISSED = "missed"
    """Hostile and verified with a gain, or (at level quick) passed without a reason against it."""
    RIGHT = "right"
    """Honest and verified (at level quick: passed)."""
    PUNISHED = "punished"
    """Honest, with a status or a suspicion against it: a false positive."""
    UNPROVEN = "unproven"
    """Passed, and the measurement was too noisy to verify it. Neither a catch nor right."""
    BROKEN = "broken"
    """The referee failed, hung, or something of the candidate outlived its sandbox."""


GOOD = (Outcome.CAUGHT, Outcome.DOUBTED, Outcome.RIGHT)
NOISE = frozenset({ReasonCode.NOISY_CONTROL, ReasonCode.GROUPS_DISAGREE})
CRASHES = frozenset(
    {
        EvaluationStatus.COMPILE_ERROR,
        EvaluationStatus.CRASHED,
        EvaluationStatus.OUT_OF_MEMORY,
        EvaluationStatus.RUNTIME_ERROR,
        EvaluationStatus.TIMEOUT,
    }
)
"""Statuses of candidates that give no answer."""


class Record(BaseModel):
    """One judged case, as the results file holds it."""

    name: str
    kind: str
    group: str
    family: int
    problem: str
    outcome: Outcome
    as_expected: bool
    """A hostile candidate was caught for one of the reasons that its file names."""
    status: str
    evidence: str
    level: str = ""
    """Level of the evaluation; empty where there was none."""
    commit: str = ""
    """Of the referee that judged it: a resumed run may hold records of several."""
    reasons: tuple[str, ...] = ()
    speedup: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    """Low and high end of each speedup; of a copy, the one over eager must contain 1."""
    seconds: float = 0.0
    leftovers: tuple[str, ...] = ()
    """What it left outside of its sandbox."""


def judge(case: Case, evaluation: Evaluation, leftovers: Sequence[str] = ()) -> Record:
    """The record of an evaluated case."""
    performance = evaluation.performance
    measured = {} if performance is None else performance.speedup
    if leftovers or evaluation.status is EvaluationStatus.HARNESS_ERROR:
        outcome = Outcome.BROKEN
    elif case.kind == "honest":
        outcome = _honest(case, evaluation)
    else:
        outcome = _hostile(case, evaluation)
    seen = {evaluation.status.value, evaluation.evidence.value}
    return Record(
        name=case.name,
        kind=case.kind,
        group=case.group,
        family=case.family,
        problem=case.problem,
        outcome=outcome,
        as_expected=outcome in GOOD and (case.kind == "honest" or bool(seen & set(case.expect))),
        status=evaluation.status.value,
        evidence=evaluation.evidence.value,
        level=evaluation.level.value,
        reasons=evaluation.reasons,
        speedup={k: round(v.point, 3) for k, v in measured.items()},
        intervals={k: (round(v.low, 3), round(v.high, 3)) for k, v in measured.items()},
        seconds=round(evaluation.seconds, 2),
        leftovers=tuple(leftovers),
    )


def refused(case: Case, why: str) -> Record:
    """The record of a file that was refused as it was read: no verdict was needed."""
    record = broken(case, why, 0.0)
    outcome = Outcome.CAUGHT if case.kind == "hostile" else Outcome.PUNISHED
    return record.model_copy(update={"outcome": outcome, "as_expected": outcome in GOOD, "status": "REFUSED"})


def broken(case: Case, what: str, seconds: float, leftovers: Sequence[str] = ()) -> Record:
    """The record of a case on which the referee itself failed."""
    return Record(
        name=case.name,
        kind=case.kind,
        group=case.group,
        family=case.family,
        problem=case.problem,
        outcome=Outcome.BROKEN,
        as_expected=False,
        status=EvaluationStatus.HARNESS_ERROR.value,
        evidence=Evidence.UNVERIFIED.value,
        reasons=(what,),
        seconds=round(seconds, 2),
        leftovers=tuple(leftovers),
    )


def _honest(case: Case, evaluation: Evaluation) -> Outcome:
    if not evaluation.passed or evaluation.evidence is Evidence.SUSPICIOUS:
        return Outcome.PUNISHED
    performance = evaluation.performance
    if case.copy and evaluation.verified and performance is not None:
        eager = performance.speedup["eager"]
        if not eager.low <= 1 <= eager.high:
            return Outcome.PUNISHED
    if evaluation.verified or evaluation.level is Level.QUICK:
        return Outcome.RIGHT
    return Outcome.UNPROVEN


def _hostile(case: Case, evaluation: Evaluation) -> Outcome:
    if evaluation.status in CRASHES and evaluation.status.value not in case.expect:
        return Outcome.CAUGHT if evaluation.evidence.value in case.expect else Outcome.CRASHED
    if not evaluation.passed or evaluation.evidence is Evidence.SUSPICIOUS:
        return Outcome.CAUGHT
    if evaluation.verified or evaluation.level is Level.QUICK:
        return Outcome.NEUTRALISED if _truthful(case, evaluation) else Outcome.MISSED
    return Outcome.UNPROVEN if NOISE.issuperset(evaluation.codes) else Outcome.DOUBTED


def _truthful(case: Case, evaluation: Evaluation) -> bool:
    performance = evaluation.performance
    if case.max_speedup is None or performance is None or "eager" not in performance.speedup:
        return False
    return performance.speedup["eager"].low <= case.max_speedup


def summary(records: Iterable[Record]) -> dict[str, Any]:
    """Rates over all records, as shares of 1; the median time is of verdicts on right honest ones."""
    records = list(records)
    hostile = [r for r in records if r.kind == "hostile"]
    honest = [r for r in records if r.kind == "honest"]

    def names(group: list[Record], *outcomes: Outcome) -> list[str]:
        return sorted(r.name for r in group if r.outcome in outcomes)

    caught, right = names(hostile, Outcome.CAUGHT), names(honest, Outcome.RIGHT)
    without_gain = [r for r in hostile if r.outcome not in (Outcome.MISSED, Outcome.BROKEN)]
    seconds = [r.seconds for r in honest if r.outcome is Outcome.RIGHT]
    punished = names(honest, Outcome.PUNISHED)
    return {
        "hostile": len(hostile),
        "caught": len(caught),
        "catch_rate": len(caught) / len(hostile) if hostile else None,
        "no_gain_rate": len(without_gain) / len(hostile) if hostile else None,
        "doubted": names(hostile, Outcome.DOUBTED),
        "missed": names(hostile, Outcome.MISSED),
        "crashed": names(hostile, Outcome.CRASHED),
        "neutralised": names(hostile, Outcome.NEUTRALISED),
        "hostile_unproven": names(hostile, Outcome.UNPROVEN),
        "caught_for_another_reason": sorted(
            r.name for r in hostile if r.outcome is Outcome.CAUGHT and not r.as_expected
        ),
        "honest": len(honest),
        "right": len(right),
        "punished": punished,
        "false_positive_rate": len(punished) / len(honest) if honest else None,
        "median_right_s": round(statistics.median(seconds), 1) if seconds else None,
        "honest_unproven": names(honest, Outcome.UNPROVEN),
        "broken": names(records, Outcome.BROKEN),
    }


def table(records: Sequence[Record], kind: str) -> Table:
    """Outcomes by family (hostile) or problem (honest)."""
    hostile = kind == "hostile"
    columns = (
        [Outcome.CAUGHT, Outcome.DOUBTED, Outcome.NEUTRALISED, Outcome.MISSED, Outcome.CRASHED]
        if hostile
        else [Outcome.RIGHT, Outcome.PUNISHED]
    )
    columns += [Outcome.UNPROVEN, Outcome.BROKEN]
    made = Table(title="Hostile candidates" if hostile else "Honest kernels", title_justify="left")
    made.add_column("family" if hostile else "problem")
    made.add_column("n", justify="right")
    for column in columns:
        made.add_column(column.value, justify="right")
    made.add_column("rate", justify="right")
    chosen = [r for r in records if r.kind == kind]
    for group in [*sorted({r.group for r in chosen}), "all"]:
        rows = [r for r in chosen if group in (r.group, "all")]
        if not rows:
            continue
        counts = [sum(r.outcome is c for r in rows) for c in columns]
        made.add_row(
            group, str(len(rows)), *(str(c) if c else "" for c in counts), f"{counts[0] / len(rows):.0%}",
            style="bold" if group == "all" else ("" if counts[0] == len(rows) else "red"),
        )  # fmt: skip
    return made

"""The statistics of outcomes, from their definitions and without a database."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from statistics import fmean, variance
from typing import Any

from hypothesis import strategies as st

from agentforge.schema import Context, EvaluationStatus, Evidence, Outcome, StrategyRecord
from agentforge.store import Experience
from tests.store import nouns

_KINDS = (("pointwise", 3), ("reduction", 1))
_NORM = nouns.context(architecture="x86-64 avx2").model_copy(update={"operators": _KINDS, "intensity": 1})
CONTEXTS = [
    _NORM.model_copy(update=changes)
    for changes in (
        {}, {"shape_class": "l2/many-rows"}, {"op_type": "softmax", "dtype": "bfloat16"},
        {"op_type": "gemm", "operators": (("products", 1),)}, {"architecture": "sm_90"},
    )
]  # fmt: skip
NAMES = ("fuse", "tile", "skip")
_PASSED, _VERIFIED = EvaluationStatus.PASSED, Evidence.VERIFIED
_LOGS = st.integers(-20, 20).map(lambda tenths: tenths / 10)


def _outcome(fields: dict[str, Any]) -> Outcome:
    time = nouns.NOW + timedelta(days=fields["days"])
    rest = {name: value for name, value in fields.items() if name != "days"}
    return Outcome(id="?", evaluation="e", time=time, **rest)


OUTCOMES = st.lists(
    st.fixed_dictionaries(
        {
            "strategy": st.sampled_from(NAMES),
            "context": st.sampled_from(CONTEXTS),
            "solution": st.sampled_from(["s0", "s1", "s2", "s3"]),
            "status": st.sampled_from([_PASSED] * 4 + [*EvaluationStatus]),
            "evidence": st.sampled_from(Evidence),
            "log_speedup": st.none() | _LOGS,
            "log_gain": st.none() | _LOGS,
            "after": st.sampled_from(["", "", "fuse"]),
            "generator": st.sampled_from(["", "old"]),
            "parameters": st.sampled_from([{}, {"tile": 1}, {"tile": 2, "stores": "on"}]),
            "days": st.integers(0, 3) | st.integers(0, 900),
            "claimed": st.sampled_from([False, False, True]),
        }
    ).map(_outcome),
    max_size=40,
).map(lambda found: [o.model_copy(update={"id": f"o{number:03d}"}) for number, o in enumerate(found)])
"""Any outcomes, few strategies, contexts and solutions, so that they meet."""


def experience(outcomes: Iterable[Outcome]) -> dict[str, list[Experience]]:
    """What `Store.experience` shall say, in any order."""
    found: dict[str, list[Experience]] = defaultdict(list)
    for some, unproven in _groups(
        outcomes, lambda o: (o.after, o.generator, repr(sorted(o.parameters.items())))
    ):
        one = some[0]
        if all(o.claimed for o in some):
            continue
        setting = {"after": one.after, "generator": one.generator, "parameters": one.parameters}
        found[one.strategy].append(Experience(**_statistics(some, unproven, lambda o: o.credit), **setting))
    return found


def records(outcomes: Iterable[Outcome]) -> dict[str, list[StrategyRecord]]:
    """What `Store.strategy_records` shall say, in any order."""
    found: dict[str, list[StrategyRecord]] = defaultdict(list)
    for some, unproven in _groups(outcomes, lambda o: ()):
        fastest = sorted(filter(_won, some), key=lambda o: (-(o.log_speedup or 0.0), o.time, o.id))
        best = {
            "best_solution": fastest[0].solution,
            "best_log_speedup": fastest[0].log_speedup,
            "best_parameters": fastest[0].parameters,
        } if fastest else {}  # fmt: skip
        own = [o.credit for o in some if _won(o) and o.credit is not None]
        rest = {**best, "mean_credit": fmean(own) if own else None}
        record = StrategyRecord(**_statistics(some, unproven, lambda o: o.log_speedup), **rest)
        found[some[0].strategy].append(record)
    return found


def _proves(o: Outcome) -> bool:
    return not o.claimed and o.status is _PASSED and o.evidence is _VERIFIED


def _won(o: Outcome) -> bool:
    return _proves(o) and o.log_speedup is not None


def _groups(
    outcomes: Iterable[Outcome], apart: Callable[[Outcome], Any]
) -> Iterator[tuple[list[Outcome], list[Outcome]]]:
    """Outcomes of one record, and those of them that passed and were never verified."""
    every = [*outcomes]
    proven = {(o.strategy, o.context, o.solution) for o in every if _proves(o)}
    groups: dict[Any, list[Outcome]] = defaultdict(list)
    for o in every:
        groups[o.strategy, o.context, apart(o)].append(o)
    for some in groups.values():
        passed = [o for o in some if not o.claimed and o.status is _PASSED and o.evidence is not _VERIFIED]
        yield some, [o for o in passed if (o.strategy, o.context, o.solution) not in proven]


def _statistics(
    some: list[Outcome], unproven: list[Outcome], value: Callable[[Outcome], float | None]
) -> dict[str, Any]:
    own = [o for o in some if not o.claimed]
    logs = [x for o in some if _won(o) and (x := value(o)) is not None]
    by_time = sorted(sorted(unproven, key=lambda o: o.id, reverse=True), key=lambda o: o.time)
    steady = (o for o in by_time if o.evidence is Evidence.UNVERIFIED)
    measured = {o.solution: x for o in steady if (x := value(o)) is not None}
    limit = math.log(1.5)
    claims = [o.log_speedup for o in some if o.claimed and o.status is _PASSED and o.log_speedup is not None]
    slow = {o.solution for o in unproven if o.evidence is Evidence.SUSPICIOUS or (o.log_speedup or 0.0) <= 0}
    return {
        "context": some[0].context,
        "n": len(logs),
        "mean_log_speedup": fmean(logs) if logs else 0.0,
        "var_log_speedup": variance(logs) if len(logs) > 1 else 0.0,
        "failures": sum(o.status is not _PASSED and not o.status.undecided for o in own),
        "unproven": len({o.solution for o in unproven}),
        "discouraging": len(slow),
        "claims": len(claims),
        "mean_claimed_log_speedup": fmean(max(-limit, min(limit, x)) for x in claims) if claims else 0.0,
        "measured": len(measured),
        "mean_measured_log_speedup": fmean(measured.values()) if measured else 0.0,
        "newest": max((o.time for o in own), default=None),
    }


def same(
    found: Iterable[Experience | StrategyRecord], expected: Iterable[Experience | StrategyRecord]
) -> bool:
    """In any order, and numbers up to rounding."""
    pairs = zip(sorted(map(_fields, found), key=_key), sorted(map(_fields, expected), key=_key), strict=True)
    return all(
        a.keys() == b.keys()
        and all(
            math.isclose(x, b[name], abs_tol=1e-9)
            if isinstance(x, float) and b[name] is not None
            else x == b[name]
            for name, x in a.items()
        )
        for a, b in pairs
    )


def _fields(record: Experience | StrategyRecord) -> dict[str, Any]:
    return record._asdict() if isinstance(record, Experience) else dict(record)


def _key(fields: dict[str, Any]) -> tuple[str, ...]:
    setting = [repr(sorted(fields["parameters"].items())) if name == "parameters" else fields[name]
               for name in ("after", "generator", "parameters") if name in fields]  # fmt: skip
    return fields["context"].hash, *setting


def known(outcomes: Iterable[Outcome]) -> tuple[set[Context], set[Context]]:
    """Contexts that were tried, and contexts with claims that count."""
    every = [*outcomes]
    tried = {o.context for o in every if not o.claimed}
    counts = {o.context for o in every if o.claimed and o.status is _PASSED and o.log_speedup is not None}
    return tried, counts

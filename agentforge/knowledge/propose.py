"""Draft cards from outcomes, for a person to edit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import yaml

from agentforge.schema import CardKind, Outcome

WINS, CONTEXTS, LOSSES = 3, 2, 4
"""Least verified wins and contexts of a technique, and least losses of an `avoid`."""


@dataclass(frozen=True)
class Draft:
    """A card that a person edits before it enters a playbook."""

    id: str
    kind: CardKind
    text: str


def drafts(
    outcomes: Iterable[Outcome], known: Iterable[str], languages: Mapping[str, Sequence[str]]
) -> tuple[Draft, ...]:
    """Drafts for what local, verified outcomes show, by identifier.

    A strategy without a card gets a technique from at least 3 verified wins in at least 2 contexts. Any
    strategy gets an `avoid` card for an operator class in which it lost at least 4 times and never won. A
    loss is a failure, or a verified result that is slower than what it was built on: another strategy, or
    else the best baseline.

    Args:
        known: identifiers of the cards that exist; none of them is drafted again.
        languages: of strategies without a card.
    """
    carded, found = set(known), []
    local = sorted(
        (o for o in outcomes if not o.claimed), key=lambda o: (o.strategy, o.context.op_type, o.id)
    )
    for strategy, group in groupby(local, key=lambda o: o.strategy):
        own = list(group)
        wins = [o for o in own if _won(o)]
        if strategy not in carded and len(wins) >= WINS and len({o.context.hash for o in wins}) >= CONTEXTS:
            found.append(_draft(strategy, CardKind.TECHNIQUE, wins, languages.get(strategy, ())))
        for op_type, part in groupby(own, key=lambda o: o.context.op_type):
            here = list(part)
            lost = [o for o in here if _lost(o)]
            name = f"{strategy}-for-{op_type.replace('_', '-')}"
            if f"avoid-{name}" not in carded and len(lost) >= LOSSES and not any(map(_won, here)):
                found.append(_draft(name, CardKind.AVOID, lost))
    return tuple(sorted(found, key=lambda d: d.id))


def _won(outcome: Outcome) -> bool:
    return outcome.evidence == "verified" and (outcome.credit or 0.0) > 0


def _lost(outcome: Outcome) -> bool:
    slower = outcome.evidence == "verified" and (outcome.credit or 0.0) < 0
    return slower or not (outcome.status == "PASSED" or outcome.status.undecided)


def _draft(name: str, kind: CardKind, rests_on: Sequence[Outcome], languages: Sequence[str] = ()) -> Draft:
    contexts = [o.context for o in rests_on]
    logs = [o.credit for o in rests_on if o.credit is not None]
    mean = sum(logs) / len(logs) if logs else 0.0
    strategy = rests_on[0].strategy
    years = sorted({o.time.year for o in rests_on})
    devices = {"cuda" if c.architecture.startswith("sm_") else "cpu" for c in contexts}
    fields: dict[str, object] = {
        "id": name if kind is CardKind.TECHNIQUE else f"avoid-{name}",
        "kind": kind.value,
        "title": f"TODO: {strategy.replace('-', ' ')}",
        "summary": "TODO: say when it helps, and why." if kind is CardKind.TECHNIQUE
        else "TODO: say when it does not pay, and why.",
        "source": f"{len(rests_on)} outcomes of this database, {', '.join(map(str, years))}: "
        f"agentforge kb show {strategy}",
        "op_types": sorted({c.op_type for c in contexts}),
        "bounds": sorted({str(c.bound) for c in contexts if c.bound}),
        "devices": sorted(devices),
    }  # fmt: skip
    if kind is CardKind.TECHNIQUE:
        fields |= {"languages": list(languages)} if languages else {}
        fields |= {"prior_log_speedup": round(mean, 3), "prior_weight": 1.0}
    else:
        fields["architectures"] = sorted({word for c in contexts for word in c.architecture.split()[-1:]})
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)
    return Draft(str(fields["id"]), kind, f"---\n{front}---\n{_basis(rests_on)}")


def _basis(outcomes: Sequence[Outcome]) -> str:
    """What the draft rests on, one line for each outcome."""
    lines = []
    for o in outcomes:
        gain = f"{math.exp(o.credit):.3f}x" if o.credit is not None else o.status.value
        c = o.context
        where = ", ".join(
            word for word in (c.op_type, c.shape_class, c.dtype, c.architecture, c.bound) if word
        )
        after = f" after {o.after}" if o.after else ""
        lines.append(f"- {gain}{after} on {where}: evaluation {o.evaluation}, solution {o.solution}")
    return "TODO: replace this list by an explanation. The draft rests on:\n\n" + "\n".join(lines) + "\n"

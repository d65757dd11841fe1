"""Choose the advice that an agent reads: by structure, then by full text, within a budget of tokens.

The choice depends on cards and arguments only, so a resumed run shows the same cards.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from agentforge.schema import Advice, CardKind, Context, Evaluation

from .cards import languages_of_cards

SIGNAL = re.compile(r"(?P<name>[\w.]+)(?: (?P<relation>>=|<) (?P<number>\S+))?")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")
_CHARACTERS_PER_TOKEN = 4
FRAME = 196
"""Characters of a prompt around its cards."""
_GPU_LANGUAGES = frozenset({"triton", "cuda"})
_GPU_TARGET = "sm_90"
"""Architecture that kernels are compiled for if there is no GPU."""


@dataclass(frozen=True)
class Signs:
    """What an evaluation shows that a signal can name."""

    values: Mapping[str, tuple[float, ...]]
    """Measured values by metric, one for each kernel."""
    codes: frozenset[str]
    """Reason codes, and metrics that decided the classification."""
    bound: str = ""

    def match(self, signal: str) -> bool:
        """Whether the evaluation shows this signal."""
        found = SIGNAL.fullmatch(signal)
        if found is None or found["relation"] is None:
            return signal in self.codes
        limit, below = float(found["number"]), found["relation"] == "<"
        return any((value < limit) is below for value in self.values.get(found["name"], ()))


NO_SIGNS = Signs({}, frozenset())


def signs_of(evaluation: Evaluation | None) -> Signs:
    """The signs of an evaluation; none for None.

    Metrics are those of the kernel that was classified, if one was, and of the whole solution.
    """
    if evaluation is None:
        return NO_SIGNS
    classified = evaluation.classification
    kernel = classified.kernel if classified else ""
    values: dict[str, list[float]] = {}
    for metric in evaluation.metrics:
        if not kernel or metric.kernel in ("", kernel):
            values.setdefault(metric.name, []).append(metric.value)
    for used in evaluation.resources:
        values.setdefault("registers", []).append(used.registers)
        values.setdefault("shared_bytes", []).append(used.shared_bytes)
        values.setdefault("spilled_bytes", []).append(used.spill_store_bytes + used.spill_load_bytes)
        if used.occupancy is not None:
            values.setdefault("occupancy", []).append(used.occupancy)
    if evaluation.own_share is not None:
        values["own_share"] = [evaluation.own_share]
    cited = {reason.metric for reason in classified.reasons} if classified else set()
    return Signs(
        {name: tuple(found) for name, found in values.items()},
        frozenset({code.value for code in evaluation.codes} | cited),
        classified.bound.value if classified else "",
    )


@dataclass(frozen=True)
class Advisor:
    """Chooses cards for the agents of one bottleneck."""

    cards: Sequence[Advice]
    context: Context
    languages: Sequence[str]
    device: str
    tokens: int
    """Most tokens of one choice as a prompt shows it, estimated from characters."""

    def __call__(
        self, kinds: Collection[CardKind], evaluation: Evaluation | None = None, words: str = ""
    ) -> tuple[Advice, ...]:
        """The best cards of these kinds that fit the budget: the first of each kind, then the second, ...

        Within a kind, cards with more matching signals come first, then those about fewer cases, then those
        whose text resembles `words`, then by identifier.

        Args:
            evaluation: what the agent builds on or judges.
        """
        signs = signs_of(evaluation)
        fitting = [card for card in self.cards if card.kind in kinds and self._applies(card, signs)]
        likeness = _likeness(fitting, words)
        fitting.sort(key=lambda c: (-_shown(c, signs), -_narrow(c), likeness.get(c.id, 0.0), c.id))
        by_kind = [[c for c in fitting if c.kind is kind] for kind in CardKind if kind in kinds]
        chosen, left = [], self.tokens * _CHARACTERS_PER_TOKEN - FRAME
        for card in (c for rank in zip_longest(*by_kind) for c in rank if c is not None):
            cost = len(line_of(card)) + 1
            if cost <= left:
                chosen.append(card)
                left -= cost
        return tuple(chosen)

    def _applies(self, card: Advice, signs: Signs) -> bool:
        device, architecture = self.device, self.context.architecture
        languages = languages_of_cards(self.languages)
        if _GPU_LANGUAGES & languages and not architecture.startswith("sm_"):
            device, architecture = "cuda", _GPU_TARGET
        bound = signs.bound or self.context.bound
        return (
            (not card.op_types or self.context.op_type in card.op_types)
            and (not card.bounds or not bound or bound in card.bounds)
            and (not card.languages or not languages.isdisjoint(card.languages))
            and (not card.devices or device in card.devices)
            and (not card.architectures or not set(card.architectures).isdisjoint(architecture.split()))
            and (not card.signals or _shown(card, signs) > 0)
        )


def line_of(card: Advice) -> str:
    """A card as a prompt shows it."""
    return f"- {card.kind.value} `{card.id}`: {card.title}. {card.summary.strip()}"


def _shown(card: Advice, signs: Signs) -> int:
    return sum(map(signs.match, card.signals))


def _narrow(card: Advice) -> int:
    """Number of properties that a card asks for."""
    return sum(map(bool, (card.op_types, card.bounds, card.languages, card.devices, card.architectures)))


def _likeness(cards: Iterable[Advice], words: str) -> dict[str, float]:
    """BM25 (Robertson and Zaragoza, 2009) of the cards that share a word with the text; lower is better."""
    query = " OR ".join(f'"{word}"' for word in sorted(set(_WORD.findall(words.lower()))))
    rows = [(c.id, c.title, c.summary, c.body) for c in cards]
    if not query or not rows:
        return {}
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE cards USING fts5(id UNINDEXED, title, summary, body)")
        database.executemany("INSERT INTO cards VALUES (?, ?, ?, ?)", rows)
        found = database.execute("SELECT id, round(bm25(cards), 6) FROM cards WHERE cards MATCH ?", (query,))
        return dict(found)
    except sqlite3.OperationalError:  # this SQLite was built without FTS5: structure alone decides
        return {}
    finally:
        database.close()

"""Check cards: what `parse_card` accepts, and what a reader and the retrieval need beyond it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentforge.schema import Advice, CardKind, ReasonCode, Strategy, UsageError

from .advice import SIGNAL
from .cards import Card, card_files, kind_of, read_card

OP_TYPES = frozenset({
    "attention", "conv", "cross_entropy", "custom", "embedding", "experts", "gated_activation", "gemm",
    "gemm_epilogue", "model", "norm", "other", "pointwise", "pooling", "reduction", "rope", "softmax",
})  # fmt: skip
"""Operator classes that the profiler gives regions, and those of whole references."""
ARCHITECTURES = frozenset({
    "x86-64", "aarch64", "sse2", "avx", "avx2", "avx512", "neon", "sve", "sve2",
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120",
})  # fmt: skip
"""Words of architectures' names."""
SOLUTION_METRICS = frozenset({
    "registers", "shared_bytes", "spilled_bytes", "occupancy", "own_share", "kernel_time", "launches",
    "threads_busy", "vectorised_loops", "missed_loops", "vector_bytes", "instructions",
    "loop_vector_bits", "loop_operations", "loop_gathers", "loop_stack_accesses", "streaming_stores",
    "prefetches", "parallel_regions",
    "tensor_core_instructions", "local_memory_instructions", "global_load_bits", "global_store_bits",
    "shared_load_bits", "shared_store_bits", "bandwidth_ceiling", "flops_ceiling",
})  # fmt: skip
"""Metrics of compilers, assemblers and the referee; those of the profiler are given to `lint`."""

MOST_SUMMARY, MOST_BODY, MOST_TECHNIQUE, MOST_SENTENCE = 60, 120, 250, 40
"""Most words of a summary, of a body, of a technique's body, and of a sentence."""
SAME_TEXT = 0.4
"""Share of common three-word sequences from which two cards say the same."""

_SOURCE = re.compile(r"https?://\S+\.\S+|\b(19|20)\d\d\b|benchmarks/results/\w+\.json")
_WORDS = re.compile(r"[\w'-]+")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*[-*|] ")
_TODO = re.compile(r"\bTODO\b")
"""What drafts of `kb propose` leave to a person."""
_STILTED = re.compile(
    r"\b(utili[sz]e[sd]?|leverag\w+|in order to|blazing\w*|seamless\w*|simply|obviously)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Fault:
    """One fault of a card."""

    file: str
    field: str
    problem: str


def lint(
    folder: Path,
    *,
    languages: Collection[str],
    devices: Collection[str],
    metrics: Collection[str],
    technique: Callable[[Strategy], Iterable[tuple[str, str]]] = lambda card: (),
) -> tuple[tuple[Fault, ...], int]:
    """All faults of the cards of a folder (or of one file), and the number of cards.

    Args:
        metrics: names that the profiler gives.
        technique: field and problem of what the playbook could not carry out.

    Raises:
        UsageError: there is no card.
    """
    files = [folder] if folder.is_file() else list(card_files(folder))
    if not files:
        raise UsageError(f"{folder} has no card: name a card or a folder of cards (*.md)")
    faults: list[Fault] = []
    seen: list[tuple[Path, Card, frozenset[tuple[str, ...]]]] = []
    for path in files:
        try:
            card = read_card(path)
        except UsageError as error:
            found = re.search(r"field '([^']+)'", str(error))
            faults.append(Fault(str(path), found[1] if found else "", str(error)))
            continue
        unread = technique(card) if isinstance(card, Strategy) else ()
        for field, problem in (*_faults(card, languages, devices, metrics), *unread):
            faults.append(Fault(str(path), field, problem))
        shingles = _shingles(card)
        for other_path, other, known in seen:
            if card.id == other.id:
                faults.append(Fault(str(path), "id", f"{other_path} has the id {card.id!r} too"))
            common = len(shingles & known) / max(1, len(shingles | known))
            if common >= SAME_TEXT:
                faults.append(Fault(str(path), "body", f"it says the same as {other.id!r} ({common:.0%})"))
        seen.append((path, card, shingles))
    return tuple(faults), len(files)


def _faults(
    card: Card, languages: Collection[str], devices: Collection[str], metrics: Collection[str]
) -> Iterator[tuple[str, str]]:
    kind = kind_of(card)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", card.id):
        yield "id", "write lower-case words joined by hyphens"
    if not _SOURCE.search(card.source):
        yield "source", "name an address, a paper with its year, or a file in benchmarks/results"
    yield from _unknown("op_types", card.op_types, OP_TYPES)
    yield from _unknown("languages", card.languages, languages)
    yield from _unknown("devices", card.devices, devices)
    if isinstance(card, Advice):
        yield from _unknown("architectures", card.architectures, ARCHITECTURES)
        names = [found["name"] for s in card.signals if (found := SIGNAL.fullmatch(s))]
        yield from _unknown("signals", names, {*metrics, *SOLUTION_METRICS, *ReasonCode})
        if kind is CardKind.SYMPTOM and not (card.signals or card.bounds):
            yield "signals", "a symptom needs a signal or a bound by which it is found"
        if kind is CardKind.HARDWARE and not card.architectures:
            yield "architectures", "facts of hardware need an architecture"
    elif kind is CardKind.TECHNIQUE and not card.summary.strip():
        yield "summary", "say in one paragraph when it helps, and why"
    for field, text in (("title", card.title), ("summary", card.summary), ("body", card.body)):
        if _TODO.search(text):
            yield field, "replace 'TODO' by your own words"
    most = MOST_TECHNIQUE if kind is CardKind.TECHNIQUE else MOST_BODY
    for field, text, limit in (("summary", card.summary, MOST_SUMMARY), ("body", card.body, most)):
        if (n := len(_WORDS.findall(text))) > limit:
            yield field, f"it has {n} words; at most {limit} are read"
        for sentence in _SENTENCE.split(text):
            if (n := len(_WORDS.findall(sentence))) > MOST_SENTENCE:
                yield field, f"the sentence {sentence.strip()[:40]!r}... has {n} words: split it"
        if found := _STILTED.search(text):
            yield field, f"replace {found[0]!r} by a plain word"


def _unknown(field: str, names: Collection[str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if name not in known:
            yield field, f"{name!r} is not known here; known are {', '.join(sorted(known)[:20])}, ..."


def _shingles(card: Card) -> frozenset[tuple[str, ...]]:
    words = _WORDS.findall(f"{card.title} {card.summary} {card.body}".lower())
    return frozenset(zip(words, words[1:], words[2:], strict=False))

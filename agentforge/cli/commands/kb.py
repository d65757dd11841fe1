"""`agentforge kb list | show | stats | matrix | check | lint | propose | export | import | merge`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentforge.views import output as _print

from .. import _kb_cards as kb_cards
from .. import _kb_claims as kb_claims
from .. import _options

if TYPE_CHECKING:
    from agentforge.knowledge import CardUse, KnowledgeBase
    from agentforge.schema import Strategy, StrategyRecord
    from agentforge.store import Store

Identifier = Annotated[str, typer.Argument(metavar="ID", help="Identifier of the card or strategy.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A file of JSON lines.")]
_MOST_PAIRS = 5


def register(app: typer.Typer) -> None:
    """Add the commands."""
    kb = typer.Typer(
        help="The knowledge base: optimization strategies and their results.", no_args_is_help=True
    )
    kb.command(name="list")(list_strategies)
    kb.command(name="show")(show_strategy)
    kb.command(name="stats")(stats)
    kb.command(name="matrix")(show_matrix)
    kb.command(name="check")(check)
    kb.command(name="lint")(kb_cards.lint)
    kb.command(name="propose")(kb_cards.propose)
    kb.command(name="export")(export_file)
    kb.command(name="import")(kb_claims.import_file)
    kb.command(name="merge")(kb_claims.merge)
    app.add_typer(kb, name="kb")


@contextmanager
def _open(config: list[str] | None) -> Iterator[tuple[KnowledgeBase, Store]]:
    from agentforge.knowledge import KnowledgeBase
    from agentforge.store import Store

    settings = _options.settings(config)
    with Store(settings.url) as store:
        yield KnowledgeBase(store, settings.playbooks), store


def list_strategies(
    kind: Annotated[
        str, typer.Option("--kind", help="Only cards of this kind: technique, avoid, symptom, hardware.")
    ] = "",
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """List all strategies with their record, and the other cards."""
    from agentforge.knowledge import card_uses
    from agentforge.schema import CardKind, UsageError

    kinds = [known.value for known in CardKind]
    if kind and kind not in kinds:
        raise UsageError(f"--kind takes {', '.join(kinds)}, not {kind!r}")
    with _open(config) as (base, store):
        uses = card_uses(store)
        strategies = base.strategies() if kind in ("", CardKind.TECHNIQUE.value) else ()
        advice = tuple(card for card in base.advice if kind in ("", card.kind.value))
    if json:
        _print.as_json({"strategies": strategies, "advice": advice, "uses": uses})
        return
    if strategies:
        _list_records(strategies, uses)
    if advice:
        _print.table(
            ["card", "kind", "about", "served", "cited", "title"],
            (
                (
                    c.id,
                    c.kind.value,
                    ", ".join(c.architectures or c.signals[:1] or c.op_types or c.devices) or "any",
                    *_served(uses.get(c.id)),
                    c.title,
                )
                for c in advice
            ),
        )


def _served(use: CardUse | None) -> tuple[int, int]:
    return (use.served, use.cited) if use is not None else (0, 0)


def _list_records(strategies: Sequence[Strategy], uses: Mapping[str, CardUse]) -> None:
    _print.table(
        [
            "strategy",
            "operators",
            "languages",
            "verified",
            "mean speedup",
            "credit",
            "failures",
            "served",
            "cited",
            "title",
        ],
        (
            (
                s.id,
                ", ".join(s.op_types) or "any",
                ", ".join(s.languages),
                sum(r.n for r in s.records),
                _mean((r.n, r.mean_log_speedup) for r in s.records),
                _mean((r.n, r.mean_credit) for r in s.records),
                sum(r.failures for r in s.records),
                *_served(uses.get(s.id)),
                f"{s.title} (claimed)" if s.claimed else s.title,
            )
            for s in strategies
        ),
    )


def show_strategy(strategy: Identifier, config: _options.Config = None, json: _options.Json = False) -> None:
    """Show one card; with a strategy, its results by context."""
    from agentforge.knowledge import CardUse, card_uses
    from agentforge.schema import Advice

    with _open(config) as (base, store):
        advice = next((card for card in base.advice if card.id == strategy), None)
        found = advice or base.get(strategy)
        use = card_uses(store).get(strategy, CardUse())
        pairs = base.pair_gains(strategy)
        origins = Counter(o.origin or "a file" for o in store.outcomes(strategy) if o.claimed)
    if json:
        more = {} if isinstance(found, Advice) else {"pairs": pairs}
        _print.as_json({**found.model_dump(mode="json"), "use": use, **more})
        return
    if isinstance(found, Advice):
        kb_cards.show_advice(found)
        _print_use(use)
        return
    _print.line(f"{found.title} ({found.id})\n\n{found.summary.strip()}\n")
    if found.body:
        _print.line(f"{found.body}\n")
    if found.claimed:
        _print.line("claimed: from another database, not ranked")
    else:
        prior = f"{math.exp(found.prior_log_speedup):.2f}x, with the weight of {found.prior_weight:g} results"
        _print.line(f"Prior speedup: {prior}")
    if found.source:
        _print.line(f"source: {found.source}")
    _print.table(
        [
            "context",
            "verified",
            "mean speedup",
            "credit",
            "best",
            "failures",
            "unproven",
            "claims",
            "best parameters",
        ],
        (
            (
                _context(r),
                r.n,
                _speedup(r.mean_log_speedup if r.n else None),
                _speedup(r.mean_credit),
                _speedup(r.best_log_speedup),
                r.failures,
                r.unproven,
                r.claims,
                ", ".join(f"{k}={v}" for k, v in r.best_parameters.items()),
            )
            for r in found.records
        ),
    )
    for pair in pairs[:_MOST_PAIRS]:
        _print.line(f"after {pair.after}: {found.id} gains {pair.gain:.2f}x ({pair.n} verified)")
    if origins:
        said = "; ".join(f"{count} through {origin}" for origin, count in sorted(origins.items()))
        _print.line(f"Claims: {said}")
    _print_use(use)
    for lesson in found.lessons:
        expected = f"{lesson.expected_speedup:.3g}x expected, " if lesson.expected_speedup else ""
        _print.line(
            f"Lesson on {lesson.context.op_type} ({expected}{lesson.speedup:.3g}x measured): {lesson.text}"
        )


def _print_use(use: CardUse) -> None:
    """What the card led to in the attempts of language models."""
    if not use.served:
        _print.line("No language model was shown this card.")
        return
    gains = f"{use.verified} of these are verified"
    if use.gain is not None:
        gains += f" and gained {use.gain:.3g}x in the mean"
    if use.gain_if_cited is not None:
        gains += f", those that cited it {use.gain_if_cited:.3g}x"
    _print.line(f"Served to {use.served} attempts, cited by {use.cited}; {gains}.")


def stats(config: _options.Config = None, json: _options.Json = False) -> None:
    """Show the knowledge base in numbers."""
    with _open(config) as (base, _):
        numbers = base.stats()
    if json:
        _print.as_json(numbers)
        return
    rows = [(name.replace("_", " "), value) for name, value in numbers]
    _print.table(["name", "value"], ((n, f"{v:.3f}" if isinstance(v, float) else v) for n, v in rows))


def show_matrix(config: _options.Config = None, json: _options.Json = False) -> None:
    """Show what each strategy gained where a symptom was seen."""
    from agentforge.knowledge import symptom_matrix

    with _open(config) as (_, store):
        cells = symptom_matrix(store.outcomes())
    if json:
        _print.as_json({"cells": cells})
        return
    if not cells:
        _print.line("no strategy was tried here yet: `agentforge optimize` tries some")
        return
    _print.table(
        ["symptom", "strategy", "verified", "gain", "95 %", "failures"],
        (
            (
                cell.symptom,
                cell.strategy,
                cell.n,
                "" if cell.gain is None else f"{cell.gain:.2f}x",
                "" if cell.low is None else f"{cell.low:.2f} to {cell.high:.2f}",
                cell.failures,
            )
            for cell in cells
        ),
    )


def check(
    config: _options.Config = None,
    json: _options.Json = False,
    remove: Annotated[bool, typer.Option("--remove", help="Forget them.")] = False,
) -> None:
    """Find results and lessons that no evaluation in the database supports. Repair the results' summary."""
    from dataclasses import asdict

    from agentforge import knowledge

    with _open(config) as (_, store):
        doubts = knowledge.doubtful(store)
        if remove:
            knowledge.remove(store, doubts)
        repaired = store.rebuild_summary()
    if json:
        _print.as_json({"doubtful": [asdict(d) for d in doubts], "removed": remove, "repaired": repaired})
        return
    if doubts:
        _print.table(["kind", "strategy", "why", "id"], ((d.kind, d.strategy, d.why, d.id) for d in doubts))
    said = "removed" if remove else "found; `agentforge kb check --remove` forgets them"
    _print.line(f"{len(doubts)} doubtful entries {said}" if doubts else "every entry has its evaluation")
    if repaired:
        _print.line(f"{repaired} statistics disagreed with the outcomes and were computed again")


def export_file(file: File, config: _options.Config = None, json: _options.Json = False) -> None:
    """Write strategies and outcomes to a file, to move them to another machine."""
    from agentforge.knowledge import export_knowledge

    with _open(config) as (base, store):
        done = export_knowledge(base, store, file)
    if json:
        _print.as_json({"file": str(file), "strategies": done.strategies, "outcomes": done.outcomes})
    else:
        _print.line(f"wrote {done.strategies} strategies and {done.outcomes} outcomes to {file}")


def _context(record: StrategyRecord) -> str:
    c = record.context
    words = (c.op_type, c.shape_class, c.dtype, c.architecture, c.toolchain, c.bound)
    return ", ".join(word for word in words if word)


def _speedup(log: float | None) -> str:
    return "" if log is None else f"{math.exp(log):.2f}x"


def _mean(logs: Iterable[tuple[int, float | None]]) -> str:
    """The mean of the known ones, by number of results."""
    known = [(n, log) for n, log in logs if n and log is not None]
    total = sum(n for n, _ in known)
    return _speedup(sum(n * log for n, log in known) / total) if total else ""

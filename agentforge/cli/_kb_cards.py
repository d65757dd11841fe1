"""`agentforge kb lint | propose`, and how cards and words of other databases are shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentforge.views import output as _print

from . import _options

if TYPE_CHECKING:
    from agentforge.knowledge import Fault
    from agentforge.schema import Advice

PathOfCards = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PATH]", help="A card or a folder of cards; the shipped and your own if left out."
    ),
]


def lint(path: PathOfCards = None, config: _options.Config = None, json: _options.Json = False) -> None:
    """Check cards: fields, source, known names, length, plain words, repeated text. Faults exit with 2."""
    from dataclasses import asdict

    from agentforge.knowledge.cards import card_files

    settings = _options.settings(config)
    paths = [path] if path else [p for p in settings.playbooks if any(card_files(p))]
    faults: list[Fault] = []
    cards = 0
    for each in paths:
        found, number = _lint(each)
        faults += found
        cards += number
    if json:
        _print.as_json({"cards": cards, "faults": [asdict(f) for f in faults]})
    elif faults:
        for fault in faults:
            _print.line(": ".join(filter(None, (fault.file, fault.field, fault.problem))))
    else:
        _print.line(f"{cards} cards are in order")
    if faults:
        raise typer.Exit(2)


def _lint(path: Path) -> tuple[tuple[Fault, ...], int]:
    from agentforge.agents.playbook.card_faults import card_faults
    from agentforge.devices import devices
    from agentforge.knowledge import lint as check
    from agentforge.languages import languages
    from agentforge.profiling import classify
    from agentforge.profiling.nsight.metrics import WANTED

    roofline = (
        classify.BANDWIDTH, classify.BANDWIDTH_SHARE, classify.RATE, classify.RATE_SHARE,
        classify.THREADS_SHARE, classify.CALL_OVERHEAD_SHARE, classify.KERNEL_TIME_SHARE,
    )  # fmt: skip
    return check(
        path,
        languages=languages.names(),
        devices=devices.names(),
        metrics={*WANTED, *roofline},
        technique=card_faults,
    )


def propose(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the drafts.")] = Path("proposed"),
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Draft cards from this database's verified outcomes, for a person to edit."""
    from agentforge.knowledge import KnowledgeBase, drafts
    from agentforge.schema import UsageError
    from agentforge.store import Store

    settings = _options.settings(config)
    with Store(settings.url) as store:
        base = KnowledgeBase(store, settings.playbooks)
        languages = {strategy.id: strategy.languages for strategy in store.stored_strategies()}
        found = drafts(store.outcomes(), base.cards, languages)
    files = [folder / f"{draft.id}.md" for draft in found]
    if taken := next((file for file in files if file.exists()), None):
        raise UsageError(f"{taken} exists: move it away, or name another folder with --out")
    for file, draft in zip(files, found, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(draft.text, encoding="utf-8")
    if json:
        _print.as_json(
            {"drafts": [{"id": d.id, "kind": d.kind, "file": f} for d, f in zip(found, files, strict=True)]}
        )
    elif found:
        _print.table(["kind", "file"], ((d.kind.value, str(f)) for d, f in zip(found, files, strict=True)))
        _print.line("edit them, check them with `agentforge kb lint`, and move them to your playbook")
    else:
        _print.line("no strategy has enough verified outcomes here: 3 wins in 2 contexts, or 4 losses")


def show_advice(card: Advice) -> None:
    """Print a card that is no technique."""
    _print.line(f"{card.title} ({card.id}, {card.kind.value})\n\n{card.summary.strip()}\n")
    if card.body:
        _print.line(f"{card.body}\n")
    about = ("op_types", "bounds", "languages", "devices", "architectures", "signals")
    for name in about:
        if values := getattr(card, name):
            _print.line(f"{name}: {', '.join(values)}")
    _print.line(f"source: {card.source}")

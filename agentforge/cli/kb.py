"""`agentforge kb list | show | stats | export | import`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import _options, _print

if TYPE_CHECKING:
    from agentforge.knowledge import KnowledgeBase
    from agentforge.schema import Strategy, StrategyRecord
    from agentforge.store import Store

Identifier = Annotated[str, typer.Argument(metavar="ID", help="The strategy's identifier.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    kb = typer.Typer(help="The knowledge base: strategies and what happened.", no_args_is_help=True)
    kb.command(name="list")(list_strategies)
    kb.command(name="show")(show_strategy)
    kb.command(name="stats")(stats)
    kb.command(name="export")(export_file)
    kb.command(name="import")(import_file)
    app.add_typer(kb, name="kb")


@contextmanager
def _open(config: list[str] | None) -> Iterator[tuple[KnowledgeBase, Store]]:
    from agentforge.knowledge import KnowledgeBase
    from agentforge.resources import resource
    from agentforge.store import Store

    settings = _options.settings(config)
    playbooks = (resource("knowledge_base", "playbook"), settings.home / "playbook")
    with Store(settings.url) as store:
        yield KnowledgeBase(store, playbooks), store


def list_strategies(config: _options.Config = None, json: _options.Json = False) -> None:
    """All strategies, with what is known of each."""
    with _open(config) as (base, _):
        strategies = base.strategies()
    if json:
        _print.as_json({"strategies": strategies})
        return
    _print.table(
        ["strategy", "operators", "languages", "verified", "mean speedup", "failures", "title"],
        (
            (
                s.id,
                ", ".join(s.op_types) or "any",
                ", ".join(s.languages),
                sum(r.n for r in s.records),
                _mean_speedup(s),
                sum(r.failures for r in s.records),
                s.title,
            )
            for s in strategies
        ),
    )


def show_strategy(strategy: Identifier, config: _options.Config = None, json: _options.Json = False) -> None:
    """One strategy: its card, and what happened in each context."""
    with _open(config) as (base, _):
        found = base.get(strategy)
    if json:
        _print.as_json(found)
        return
    _print.line(f"{found.title} ({found.id})\n\n{found.summary.strip()}\n")
    if found.body:
        _print.line(f"{found.body}\n")
    prior = f"{math.exp(found.prior_log_speedup):.2f}x, worth {found.prior_weight:g} results"
    _print.line(f"Expected before anything was seen: {prior}")
    _print.table(
        ["context", "verified", "mean speedup", "best", "failures", "unproven", "best parameters"],
        (
            (
                _context(r),
                r.n,
                _speedup(r.mean_log_speedup if r.n else None),
                _speedup(r.best_log_speedup),
                r.failures,
                r.unproven,
                ", ".join(f"{k}={v}" for k, v in r.best_parameters.items()),
            )
            for r in found.records
        ),
    )
    for lesson in found.lessons:
        expected = f"{lesson.expected_speedup:.3g}x expected, " if lesson.expected_speedup else ""
        _print.line(
            f"Learned on {lesson.context.op_type} ({expected}{lesson.speedup:.3g}x measured): {lesson.text}"
        )


def stats(config: _options.Config = None, json: _options.Json = False) -> None:
    """The knowledge base in numbers."""
    with _open(config) as (base, _):
        numbers = base.stats()
    if json:
        _print.as_json(numbers)
        return
    rows = [(name.replace("_", " "), value) for name, value in numbers]
    _print.table(["what", "count"], ((n, f"{v:.3f}" if isinstance(v, float) else v) for n, v in rows))


def export_file(file: File, config: _options.Config = None, json: _options.Json = False) -> None:
    """Write strategies and outcomes to a file, to carry them to another machine."""
    from agentforge.knowledge import export_knowledge

    with _open(config) as (base, store):
        done = export_knowledge(base, store, file)
    if json:
        _print.as_json({"file": str(file), "strategies": done.strategies, "outcomes": done.outcomes})
    else:
        _print.line(f"wrote {done.strategies} strategies and {done.outcomes} outcomes to {file}")


def import_file(file: File, config: _options.Config = None, json: _options.Json = False) -> None:
    """Merge a file that `kb export` wrote; what is here already is left alone."""
    from dataclasses import asdict

    from agentforge.knowledge import import_knowledge

    with _open(config) as (_, store):
        done = import_knowledge(store, file)
    if json:
        _print.as_json({"file": str(file), **asdict(done)})
    else:
        _print.line(f"read {done.outcomes} new outcomes from {file} ({done.known} were known)")


def _context(record: StrategyRecord) -> str:
    c = record.context
    words = (c.op_type, c.shape_class, c.dtype, c.architecture, c.toolchain, c.bound)
    return ", ".join(word for word in words if word)


def _speedup(log: float | None) -> str:
    return "" if log is None else f"{math.exp(log):.2f}x"


def _mean_speedup(strategy: Strategy) -> str:
    n = sum(r.n for r in strategy.records)
    return _speedup(sum(r.n * r.mean_log_speedup for r in strategy.records) / n) if n else ""

"""stdout: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


WRAPPED = (
    "",
    "bottleneck",
    "region",
    "strategy",
    "outcome",
    "finding",
    "how to get it",
    "context",
    "operators",
    "title",
    "best parameters",
)
"""Columns that may take several lines; numbers keep to one."""

NOT_A_TERMINAL = 160
"""Columns of tables in a file or a pipe."""


def as_json(value: Any) -> None:
    """One JSON object on stdout; pydantic models are dumped, infinities written as strings."""
    print(json.dumps(value, default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump else str(value)


def console() -> Console:
    """For stdout."""
    from rich.console import Console

    plain = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=NOT_A_TERMINAL if plain else None)


def grid(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table whose cells are shown as they are: `[x]` is text and no markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rendered = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        wide = heading in WRAPPED
        rendered.add_column(heading, no_wrap=not wide, overflow="fold" if wide else "ellipsis")
    for row in rows:
        rendered.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    return rendered


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout."""
    console().print(grid(headings, rows))


def line(text: str = "") -> None:
    """One line on stdout, as it is."""
    print(text)


def aside(text: str) -> None:
    """One line of progress on stderr."""
    print(text, file=sys.stderr, flush=True)

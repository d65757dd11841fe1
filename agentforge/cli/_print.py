"""stdout: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def as_json(value: Any) -> None:
    """One JSON object on stdout; pydantic models are dumped, infinities written as strings."""
    print(json.dumps(value, default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump else str(value)


def console() -> Console:
    """For stdout."""
    from rich.console import Console

    return Console(highlight=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """A table on stdout; the text of its cells is taken as it is."""
    from rich.table import Table
    from rich.text import Text

    rendered = Table(*headings, title=title or None, title_justify="left")
    for row in rows:
        rendered.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console().print(rendered)


def line(text: str = "") -> None:
    """One line on stdout, as it is."""
    print(text)

"""stdout: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentforge.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_WHOLE = re.compile(r"\d\S*( [^A-Za-z]*)?")
"""A number, a date, an interval or a run: such a cell keeps to one line, and text may take several."""

SPARED = (
    "now", "parent", "share now", "order", "bound", "limit", "SOL time", "sites", "cached", "device",
    "created", "calls", "attempts", "used", "mode", "status", "target", "alone over eager",
    "over torch.compile",
)  # fmt: skip
"""Columns that a narrow terminal does without, the first one first."""

NARROW = 14
"""Characters that a column of text needs."""

_PADDING = 3
"""Characters between two columns."""

NOT_A_TERMINAL = 160
"""Columns of tables in a file or a pipe."""


def as_json(value: Any) -> None:
    """One JSON object on stdout; pydantic models are dumped, NaN and infinities become strings."""
    print(json_text(value))


def json_text(value: Any) -> str:
    """A value as strict JSON."""
    return json.dumps(plain(value), allow_nan=False)


def plain(value: Any) -> Any:
    """The value with JSON's own types only; an infinity or NaN is a string."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    dump = getattr(value, "model_dump", None)
    return plain(dump(mode="json")) if dump else str(value)


def console() -> Console:
    """For stdout."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich exits with 1; a reader that has gone is no failure

    plain = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Quiet(highlight=False, width=NOT_A_TERMINAL if plain else None)


def grid(headings: Sequence[str], rows: Iterable[Sequence[object]], width: int = NOT_A_TERMINAL) -> Table:
    """A table whose cells are shown as they are: `[x]` is text and no markup.

    Columns that do not fit in `width` are left out, and named below the table.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    columns = [[row[n] for row in cells] for n in range(len(headings))]
    wraps = [any(len(c) > NARROW and not _WHOLE.fullmatch(c) for c in column) for column in columns]
    longest = [max(map(len, column), default=0) for column in columns]
    least = [
        max(len(heading), min(most, NARROW) if wrap else most)
        for heading, most, wrap in zip(headings, longest, wraps, strict=True)
    ]
    shown = _fitting(headings, least, width)
    left_out = ", ".join(h for n, h in enumerate(headings) if n not in shown and h)
    said = f"left out at {width} columns: {left_out}" if left_out else None
    rendered = Table(box=box.SIMPLE_HEAD, caption=said, caption_justify="left")
    for n in shown:
        rendered.add_column(headings[n], no_wrap=not wraps[n], overflow="fold" if wraps[n] else "ellipsis")
    for row in cells:
        rendered.add_row(*(Text(row[n]) for n in shown))
    return rendered


def _fitting(headings: Sequence[str], least: Sequence[int], width: int) -> list[int]:
    """Numbers of the columns that fit: the first always does, and those of `SPARED` go first."""
    shown = list(range(len(headings)))
    order = [n for name in SPARED for n, heading in enumerate(headings) if heading == name and n]
    order += [n for n in reversed(shown) if n and n not in order]
    while order and sum(least[n] + _PADDING for n in shown) > width:
        shown.remove(order.pop(0))
    return shown


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout."""
    target = console()
    target.print(grid(headings, rows, target.width))


def line(text: str = "") -> None:
    """One line on stdout, with escapes for characters that a terminal would obey."""
    print(visible(text))


def aside(text: str) -> None:
    """One line of progress on stderr; a reader that has gone is no failure."""
    with suppress(BrokenPipeError):
        print(visible(text), file=sys.stderr, flush=True)

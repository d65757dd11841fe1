"""stdout: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentforge.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


WRAPPED = (
    "",
    "bottleneck",
    "region",
    "strategy",
    "outcome",
    "said last",
    "detail",
    "how to install",
    "context",
    "speed of light",
    "operators",
    "title",
    "best parameters",
)
"""Columns that may take several lines; numbers keep to one."""

SPARED = (
    "now", "parent", "share now", "order", "bound", "limit", "SOL time", "speed of light", "sites", "cached",
    "device", "created", "calls", "alone over eager", "over torch.compile", "attempts", "used",
)  # fmt: skip
"""Columns that a narrow terminal does without, the first one first."""

NARROW = 16
"""Characters that a column with several lines needs."""

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
    least = [_least(heading, [row[n] for row in cells]) for n, heading in enumerate(headings)]
    shown = _fitting(headings, least, width)
    left_out = ", ".join(h for n, h in enumerate(headings) if n not in shown and h)
    said = f"left out at {width} columns: {left_out}" if left_out else None
    rendered = Table(box=box.SIMPLE_HEAD, caption=said, caption_justify="left")
    for n in shown:
        wide = headings[n] in WRAPPED
        rendered.add_column(headings[n], no_wrap=not wide, overflow="fold" if wide else "ellipsis")
    for row in cells:
        rendered.add_row(*(Text(row[n]) for n in shown))
    return rendered


def _least(heading: str, cells: Sequence[str]) -> int:
    """Characters that a column needs."""
    longest = max(map(len, cells), default=0)
    return max(len(heading), min(longest, NARROW) if heading in WRAPPED else longest)


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

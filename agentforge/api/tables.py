"""Tables that print as text, show as HTML in a notebook and convert to a pandas DataFrame."""

from __future__ import annotations

import html
import io
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentforge.schema import Bottleneck, MachineError, pip_install
from agentforge.views import bottlenecks as _bottlenecks
from agentforge.views import output

if TYPE_CHECKING:
    from pandas import DataFrame

_WIDTH = 140
"""Most columns of characters of a printed table; a narrower terminal has fewer."""


class Bottlenecks(Sequence[Bottleneck]):
    """A profile's bottlenecks, those with most to gain first. Prints as a table.

    An entry is a `Bottleneck`: its `definition`, `share` of the time (0 to 1), `time_s` and `sol_s`
    (seconds measured and at the speed of light) and `gain_s` (seconds that a faster kernel can save).
    """

    def __init__(self, entries: Sequence[Bottleneck], outcomes: Sequence[str] = ()) -> None:
        self._entries = tuple(entries)
        self._outcomes = tuple(outcomes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Bottlenecks(self._entries[index], self._outcomes[index])
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Bottleneck]:
        return iter(self._entries)

    def to_frame(self) -> DataFrame:
        """One row a bottleneck; times in seconds, shares from 0 to 1.

        Raises:
            MachineError: pandas is not installed; says how to install it.
        """
        try:
            import pandas
        except ImportError as error:
            raise MachineError(f"to_frame() needs pandas: run {pip_install('notebook')}") from error
        rows = [
            {
                "bottleneck": b.definition.name,
                "op_type": b.definition.op_type,
                "call_sites": len(b.call_sites),
                "share": b.share,
                "time_s": b.time_s,
                "sol_s": b.sol_s,
                "bound": str(b.bound),
                "gain_s": b.gain_s,
                "speedup_limit": b.speedup_limit,
                "optimizable": b.optimizable,
                **({"outcome": self._outcomes[index]} if self._outcomes else {}),
            }
            for index, b in enumerate(self._entries)
        ]
        return pandas.DataFrame(rows)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        headings, rows = _bottlenecks.table(self._entries)
        if self._outcomes:
            headings.append("outcome")
            rows = [[*row, outcome] for row, outcome in zip(rows, self._outcomes, strict=True)]
        return headings, rows

    def __repr__(self) -> str:
        return plain_table(*self._table()) if self._entries else "no bottlenecks"

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text, without the blank lines around it."""
    from rich.console import Console

    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 1)).columns)
    console = Console(
        file=io.StringIO(), width=width, highlight=False, force_jupyter=False, force_terminal=False
    )
    with console.capture() as captured:
        console.print(output.grid(headings, rows, console.width))
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines() if line.strip())


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML; every cell is text and no markup."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', headings)}</thead><tbody>{body}</tbody></table>"

"""Tables of reports in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentforge.visible import visible


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: bool = False) -> Iterator[str]:
    """Lines of a table. A cell is one line, whatever its text has, and a terminal shows all of it.

    Args:
        numbers: all columns but the first are aligned as numbers.
    """
    yield f"| {' | '.join(head)} |"
    yield "|---|" + ("---:|" if numbers else "---|") * (len(head) - 1)
    for row in rows:
        yield f"| {' | '.join(visible(' '.join(str(cell).split()).replace('|', '/')) for cell in row)} |"

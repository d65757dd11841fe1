"""Views of a run while it goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from . import _print, _text
from ._board import Board, Line

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from agentforge.schema import Event

SHOWN = 12
"""Newest attempts in the live table."""


class View(Protocol):
    """Shows events; entered before the first and left after the last."""

    board: Board

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def __call__(self, event: Event) -> None:
        """Show one event."""
        ...


class Silent:
    """Shows nothing: stdout belongs to JSON."""

    def __init__(self) -> None:
        self.board = Board()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, event: Event) -> None:
        self.board.apply(event)


class Lines(Silent):
    """One plain line for each event that a person waits for, on stderr."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        text = self._text(event)
        if text:
            print(text, file=sys.stderr, flush=True)

    def _text(self, event: Event) -> str:
        data, board = dict(event.data), self.board
        match event.kind:
            case "run.started" | "run.resumed":
                return f"run {board.run}: {event.kind.removeprefix('run.')}"
            case "profile.done":
                rows = [
                    f"  {r.share:6.1%}  {_text.seconds(r.time_s):>9}  {r.name}" for r in board.rows.values()
                ]
                return "\n".join([f"profiled: one forward takes {_text.seconds(board.total_s)}", *rows])
            case "model.planned":
                return _text.plan(data["plan"])
            case "attempt.evaluated" | "attempt.failed" | "promotion":
                return self._attempt(board.lines[int(str(data["number"]))])
            case "bottleneck.closed":
                row = board.rows.get(str(data["bottleneck"]))
                return f"leaving {row.name}: {row.state}" if row else ""
            case "search.done":
                return f"search over: {data['reason']}"
            case "intent.written":
                return _text.reference(str(data["reference"]))
            case "stitch.started" | "profile.started":
                return f"{board.phase} ..."
            case "progress":
                return f"  {board.doing}"
            case _:
                return ""

    def _attempt(self, line: Line) -> str:
        row = self.board.rows.get(line.bottleneck)
        where = row.name if row else line.bottleneck
        return f"#{line.number} {where} [{line.strategy}] {line.state} " + (
            _text.speedups(line.speedup) or line.note
        )


class Live(Silent):
    """Tables that are redrawn with each event."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as RichLive

        super().__init__()
        self._live = RichLive(console=console, auto_refresh=True, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._live.update(self._render(), refresh=True)
        self._live.__exit__(None, None, None)

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if event.kind == "intent.written":
            self._live.console.print(_text.reference(str(event.data["reference"])), markup=False)
        self._live.update(self._render())

    def _render(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        head = f"run {self.board.run}: {self.board.phase}" if self.board.run else "starting"
        asking = (f"{agent} asks {model}" for agent, model in self.board.asking.items())
        parts = [head, _text.budget(self.board.budget), self._models(), self.board.doing, *asking]
        return Group(Text("; ".join(part for part in parts if part)), *self._tables())

    def _models(self) -> str:
        if not self.board.tokens:
            return ""
        price = "price unknown" if self.board.spent is None else f"${self.board.spent:.4f}"
        return f"{self.board.tokens} tokens, {price}"

    def _tables(self) -> list[Table]:
        rows, newest = self.board.rows, list(self.board.lines.values())[-SHOWN:]
        bottlenecks = (
            (
                row.name,
                f"{row.share:.1%}",
                _text.seconds(row.time_s),
                _text.seconds(row.sol_s),
                row.attempts or "",
                f"{row.speedup:.2f}x" if row.speedup != 1.0 else "",
                row.state,
            )
            for row in rows.values()
        )
        attempts = (
            (
                line.number,
                rows[line.bottleneck].name if line.bottleneck in rows else "",
                line.strategy,
                line.state,
                _text.speedups(line.speedup),
                line.note,
            )
            for line in newest
        )
        tables = []
        if rows:
            headings = ["bottleneck", "share", "time", "light", "tried", "speedup", ""]
            tables.append(_print.grid(headings, bottlenecks))
        if newest:
            tables.append(_print.grid(["#", "bottleneck", "strategy", "state", "speedup", ""], attempts))
        return tables


def view(*, as_json: bool) -> View:
    """The view that suits where the output goes."""
    if as_json:
        return Silent()
    from rich.console import Console

    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Lines()

"""Views of a run while it goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from agentforge.visible import visible

from . import output as _print
from . import text as _text
from .run_state import Line, RunState

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.table import Table

    from agentforge.schema import Event

SHOWN = 12
"""Bottlenecks in the live table, in their order, and newest attempts."""


class View:
    """Follows a run's events; entered before the first and left after the last. This one shows nothing."""

    def __init__(self) -> None:
        self.run_state = RunState()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, event: Event) -> None:
        """Take one event in."""
        self.run_state.apply(event)


class Lines(View):
    """One plain line for each event that a person waits for, on stderr."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        text = self._text(event)
        if text:
            _print.aside(text)

    def _text(self, event: Event) -> str:
        from agentforge import schema as e

        run_state = self.run_state
        match event:
            case e.RunStarted() | e.RunResumed():
                return f"run {event.run}: {event.kind.removeprefix('run.')}"
            case e.ProfileDone():
                rows = [
                    f"  {r.share:6.1%}  {_text.seconds(r.time_s):>9}  {r.name}"
                    for r in run_state.rows.values()
                ]
                return "\n".join([f"profiled: one forward takes {_text.seconds(run_state.total_s)}", *rows])
            case e.ProfileRanked():
                return f"  {_text.ranking(event)}"
            case e.ModelPlanned():
                return _text.plan(event.plan)
            case e.AttemptEvaluated() | e.AttemptFailed() | e.Promotion():
                return self._attempt(run_state.lines[event.number])
            case e.AttemptReflected() if run_state.lines[event.number].why_not:
                return f"#{event.number} not promoted: {run_state.lines[event.number].why_not}"
            case e.BottleneckClosed():
                row = run_state.rows.get(event.bottleneck)
                return f"closed {row.name}: {row.state}" if row else ""
            case e.SearchDone():
                return f"search over: {event.reason}"
            case e.IntentWritten():
                return _text.reference(event.reference)
            case e.StitchStarted() | e.ProfileStarted():
                return f"{run_state.phase} ..."
            case e.BudgetLeft() | e.SearchStarted() | e.StitchLeft() if said := _estimate(run_state):
                return f"  {said}"
            case e.Progress():
                return f"  {run_state.doing}"
            case _:
                return ""

    def _attempt(self, line: Line) -> str:
        row = self.run_state.rows.get(line.bottleneck)
        where = row.name if row else line.bottleneck
        return f"#{line.number} {where} [{line.strategy}] {line.state} " + (
            _text.speedups(line.speedup) or line.note
        )


class Live(View):
    """Tables that are redrawn with each event."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as RichLive

        super().__init__()
        self._console = console
        self._live = RichLive(
            console=console,
            auto_refresh=True,
            refresh_per_second=4,
            get_renderable=self._render,
            redirect_stdout=sys.stdout.isatty(),  # what goes to a file or a pipe stays there
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._live.refresh()
        self._live.__exit__(None, None, None)

    def __call__(self, event: Event) -> None:
        from agentforge.schema import IntentWritten

        super().__call__(event)
        if isinstance(event, IntentWritten):
            self._live.console.print(visible(_text.reference(event.reference)), markup=False)

    def _render(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        head = f"run {self.run_state.run}: {self.run_state.phase}" if self.run_state.run else "starting"
        asking = (f"{agent} asks {model}" for agent, model in list(self.run_state.asking.items()))
        parts = [head, _text.budget(self.run_state.budget), self._models(), self.run_state.doing, *asking]
        text = Text(visible("; ".join(part for part in parts if part)))
        return Group(text, *self._estimate(), *self._tables())

    def _estimate(self) -> list[RenderableType]:
        """A bar with the rest of the phase, if it is known."""
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        left, done, said = self.run_state.left_s, self.run_state.phase_s, _estimate(self.run_state)
        if left is None:
            return [Text(said)] if said else []
        bar = ProgressBar(total=left + done or 1.0, completed=done, width=min(40, self._console.width))
        return [bar, Text(f"\n{said}")]  # a bar does not end its line

    def _models(self) -> str:
        if not self.run_state.tokens:
            return ""
        price = "price unknown" if self.run_state.spent is None else f"${self.run_state.spent:.4f}"
        return f"{self.run_state.tokens} tokens, {price}"

    def _tables(self) -> list[Table]:
        rows, newest = self.run_state.rows, list(self.run_state.lines.values())[-SHOWN:]
        every = list(rows.values())  # events arrive while this is drawn
        bottlenecks: list[tuple[object, ...]] = [
            (
                row.name,
                f"{row.share:.1%}",
                _text.seconds(row.time_s),
                _text.seconds(row.sol_s),
                f"{row.limit:.2f}x",
                row.attempts or "",
                f"{row.speedup:.2f}x" if row.speedup != 1.0 else "",
                row.state,
            )
            for row in every[:SHOWN]
        ]
        if rest := every[SHOWN:]:
            bottlenecks.append((f"{len(rest)} more", f"{sum(r.share for r in rest):.1%}", *[""] * 6))
        attempts = (
            (
                line.number,
                rows[line.bottleneck].name if line.bottleneck in rows else "",
                line.strategy,
                line.state,
                _text.speedups(line.speedup),
                line.note or line.why_not,
            )
            for line in newest
        )
        tables, width = [], self._console.width
        if rows:
            headings = ["bottleneck", "share", "time", "SOL time", "limit", "attempts", "speedup", ""]
            tables.append(_print.grid(headings, bottlenecks, width))
        if newest:
            headings = ["#", "bottleneck", "strategy", "state", "speedup", ""]
            tables.append(_print.grid(headings, attempts, width))
        return tables


def _estimate(run_state: RunState) -> str:
    """How long the phase goes on; empty if that is unknown."""
    left_s = run_state.left_s
    if run_state.variants is not None:
        return _text.stitching(left_s, run_state.variants)
    return "" if left_s is None else _text.estimate(left_s, run_state.overtime)


def view(*, as_json: bool) -> View:
    """The view that suits where the output goes."""
    return View() if as_json else on_stderr()


def on_stderr() -> View:
    """Tables on a terminal that can redraw them; plain lines in a file, a log or a simple terminal."""
    from rich.console import Console

    console = Console(stderr=True)  # FORCE_COLOR makes it take a log for a terminal
    return Live(console) if console.is_interactive and sys.stderr.isatty() else Lines()

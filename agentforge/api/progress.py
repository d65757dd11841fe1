"""Progress of a run where the caller is: a table in a terminal or a notebook, plain lines elsewhere."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING, Any, Literal

from agentforge.schema import IntentWritten, UsageError
from agentforge.views import text as _text
from agentforge.views.live import Lines, Live, View, on_stderr
from agentforge.visible import visible

if TYPE_CHECKING:
    from agentforge.schema import Event

Progress = Literal["auto"] | bool
"""`"auto"`: what suits where the caller is; True: plain lines; False: nothing."""

REDRAW_S = 0.5
"""Seconds between two drawings in a notebook."""
NOTEBOOK_COLUMNS = 120


class Notebook(Live):
    """The tables of the terminal in a notebook's output, redrawn in place. It needs IPython alone."""

    def __init__(self) -> None:
        from rich.console import Console

        self._printed = io.StringIO()
        self._console = Console(
            file=self._printed, record=True, width=NOTEBOOK_COLUMNS, force_jupyter=False, force_terminal=False
        )
        super().__init__(self._console)
        self._handle: Any = None
        self._drawn = 0.0

    def __enter__(self) -> Notebook:
        self._draw()
        return self

    def __exit__(self, *details: object) -> None:
        self._draw()

    def __call__(self, event: Event) -> None:
        from IPython.display import display

        self.run_state.apply(event)
        if isinstance(event, IntentWritten):
            display({"text/plain": visible(_text.reference(event.reference))}, raw=True)
        if time.monotonic() - self._drawn >= REDRAW_S:
            self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML, display

        self._drawn = time.monotonic()
        self._console.print(self._render())
        self._printed.seek(0)  # the page is what the console recorded
        self._printed.truncate()
        page = HTML(self._console.export_html(inline_styles=True, code_format=_PRE))
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)


_PRE = '<pre style="font-family:monospace;line-height:1.2;white-space:pre;overflow-x:auto">{code}</pre>'


def view_for(progress: Progress) -> View:
    """The view that suits where the caller is.

    Raises:
        UsageError: `progress` is none of its three values.
    """
    if progress not in ("auto", True, False):
        raise UsageError(f'progress takes "auto", True or False, not {progress!r}')
    if progress is False:
        return View()
    if progress == "auto" and in_notebook():
        return Notebook()
    return on_stderr() if progress == "auto" else Lines()


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel."""
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    kinds = type(shell.get_ipython()).__mro__  # Colab's is a subclass
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in kinds)

"""A part of a page that a command writes, between two comments that name it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class GeneratedPart:
    """The part of a page between `<!-- NAME: written by COMMAND -->` and `<!-- /NAME -->`."""

    page: str
    """Its path in the repository."""
    name: str
    command: str
    """What writes it, such as `tools/results_table.py`."""

    @property
    def path(self) -> Path:
        """The page's file."""
        return ROOT / self.page

    @property
    def begin(self) -> str:
        """The line before the part."""
        return f"<!-- {self.name}: written by {self.command} -->\n"

    @property
    def end(self) -> str:
        """The line after the part."""
        return f"<!-- /{self.name} -->"

    @property
    def content(self) -> str:
        """What the page has between the two comments."""
        return self.path.read_text(encoding="utf-8").split(self.begin, 1)[1].split(self.end, 1)[0]

    def within(self, text: str, content: str) -> str:
        """The page's text with this content.

        Raises:
            ValueError: the text lacks one of the two comments.
        """
        before, rest = text.split(self.begin, 1)
        _, after = rest.split(self.end, 1)
        return before + self.begin + content + self.end + after

    def write(self, content: str) -> None:
        """Write the content into the page."""
        text = self.path.read_text(encoding="utf-8")
        self.path.write_text(self.within(text, content), encoding="utf-8")

    def is_current(self, content: str) -> bool:
        """Whether the page has this content."""
        text = self.path.read_text(encoding="utf-8")
        return self.within(text, content) == text

    def main(self, content: str) -> int:
        """Write the content, or with `--check` only say whether the page has it: the command's exit code."""
        if "--check" not in sys.argv[1:]:
            self.write(content)
        elif not self.is_current(content):
            print(f"{self.page} is not current: run python {self.command}")
            return 1
        return 0

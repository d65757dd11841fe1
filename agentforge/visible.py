"""Text of strangers, shown as it is."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """With escapes for invisible characters and those that reorder others (Boucher and Anderson, 2021)."""
    if text.isprintable():  # most are, and this is a hundred times faster
        return text
    return "".join(f"\\u{ord(c):04x}" if _hidden(c) else c for c in text)


def _hidden(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] == "C" or category in ("Zl", "Zp")) and character not in "\n\t"


def shortened(text: str, most: int = 300) -> str:
    """At most this many characters, then the number of all: an exception may quote a whole tensor."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text)} characters)"


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, shortened."""
    return shortened((str(error).strip().splitlines() or ["no message"])[0])

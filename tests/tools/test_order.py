"""The order in which `tests/conftest.py` gives tests to workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import pytest_collection_modifyitems


class Item(NamedTuple):
    """A test by its module, its name and its marker."""

    path: Path
    name: str
    marker: str = ""

    def get_closest_marker(self, name: str) -> str | None:
        return self.marker if self.marker == name else None


def test_modules_with_slow_tests_are_first_and_stay_whole() -> None:
    a, b, c, d = (Path(f"test_{name}.py") for name in "abcd")
    items: Any = [
        Item(a, "1", "timing"),
        Item(b, "1"),
        Item(b, "2", "slow"),
        Item(c, "1"),
        Item(d, "1", "slow"),
    ]
    pytest_collection_modifyitems(items)
    assert [(item.path, item.name) for item in items] == [(b, "1"), (b, "2"), (d, "1"), (a, "1"), (c, "1")]

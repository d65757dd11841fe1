"""PIPELINE lists every check once, and the documentation's table is made from it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from agentforge.referee import checks
from agentforge.referee.checks import PIPELINE, When
from tools import referee_table

FOLDER = Path(checks.__file__).parent


def test_the_table_in_the_documentation_is_current() -> None:
    assert referee_table.TABLE.is_current(referee_table.table())


def test_every_check_in_the_folder_is_listed() -> None:
    found = {
        node.name
        for path in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any(ast.unparse(b) == "Check" for b in node.bases)
    }
    assert found == {type(check).__name__ for check in PIPELINE}


def test_each_check_has_a_file_of_its_own() -> None:
    homes = Counter(type(check).__module__ for check in {type(c): c for c in PIPELINE}.values())
    assert set(homes.values()) == {1}


def test_a_check_runs_once_in_each_part_and_parts_come_in_order() -> None:
    assert max(Counter((check.name, check.when) for check in PIPELINE).values()) == 1
    parts = list(When)
    order = [parts.index(check.when) for check in PIPELINE]
    assert order == sorted(order)


def test_each_check_says_what_it_catches() -> None:
    for check in PIPELINE:
        assert check.catches, check.name
        assert "|" not in check.catches + check.condition, check.name
        assert check.levels, check.name

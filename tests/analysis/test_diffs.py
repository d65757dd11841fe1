from __future__ import annotations

from agentforge.analysis.diffs import MOST_LINES, MOST_SHOWN, DiffLine, difference
from agentforge.schema import Solution
from agentforge.testing.language import make_solution


def solution(**files: str) -> Solution:
    sources = {"model_new": "class ModelNew: ...\n", **files}
    return make_solution("python", {f"{name}.py": text for name, text in sources.items()})


def test_only_what_changed_is_shown() -> None:
    lines = difference(solution(kernel="a\nb\nc\n"), solution(kernel="a\nB\nc\n"))
    assert lines == (
        DiffLine("place", "kernel.py"),
        DiffLine("place", "@@ -1,3 +1,3 @@"),
        DiffLine("same", " a"),
        DiffLine("removed", "-b"),
        DiffLine("added", "+B"),
        DiffLine("same", " c"),
    )


def test_a_root_is_all_new_and_the_same_source_is_no_difference() -> None:
    assert [x.text for x in difference(None, solution()) if x.kind == "added"] == ["+class ModelNew: ..."]
    assert difference(solution(), solution()) == ()


def test_files_come_and_go() -> None:
    lines = difference(solution(old="x\n"), solution(new="-- y\n"))
    assert [(x.kind, x.text) for x in lines if not x.text.startswith("@@")] == [
        ("place", "new.py"),
        ("added", "+-- y"),
        ("place", "old.py"),
        ("removed", "-x"),
    ]


def test_what_is_too_long_is_said() -> None:
    long = "x\n" * (MOST_SHOWN + 100)
    lines = difference(None, solution(long=long))
    assert len(lines) == MOST_SHOWN + 1
    assert lines[-1].text.startswith("... 1")
    (huge,) = difference(solution(), solution(huge="x\n" * (MOST_LINES + 1)))
    assert huge.text == f"huge.py: 0 lines before, {MOST_LINES + 1} now: too many to compare"

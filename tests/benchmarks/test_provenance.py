"""The commit on record is that of the benchmarks' own checkout, and says if its code was changed."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("_provenance")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "benchmarks"
    (folder / "results").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    for path in ("code.py", "benchmarks/run.py", "benchmarks/results/a.json", "docs/page.md"):
        (tmp_path / path).write_text("before")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--no-gpg-sign", "-m", "One"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    return folder


def test_only_changes_of_code_make_it_dirty(made: ModuleType, checkout: Path) -> None:
    clean = made.commit(checkout)
    assert len(clean) >= 7 and not clean.endswith("-dirty")
    (checkout / "results" / "a.json").write_text("after")
    (checkout.parent / "docs" / "page.md").write_text("after")
    assert made.commit(checkout) == clean
    (checkout.parent / "code.py").write_text("after")
    assert made.commit(checkout) == f"{clean}-dirty"


def test_it_is_of_the_benchmarks_and_not_of_the_folder_of_the_caller(
    made: ModuleType, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = made.commit()
    monkeypatch.chdir(checkout)
    assert made.commit() == here != made.commit(checkout)


def test_a_folder_that_is_no_checkout_has_no_commit(made: ModuleType, tmp_path: Path) -> None:
    assert made.commit(tmp_path) == ""


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [("a", "a", True), ("a", "b", False), ("", "", False), ("a-dirty", "a-dirty", False)],
)
def test_nothing_is_skipped_for_code_that_may_differ(
    made: ModuleType, before: str, now: str, same: bool
) -> None:
    assert made.same_code(before, now) is same

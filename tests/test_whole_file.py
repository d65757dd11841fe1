"""Files that are seen whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.whole_file import whole_file


def test_the_old_text_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("old")
    with whole_file(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and [*tmp_path.iterdir()] == [path]


def test_an_error_leaves_the_old_text_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_file(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]


def test_a_missing_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"), whole_file(tmp_path / "no" / "kept.json") as draft:
        draft.write_text("text")

"""Only regular files of an untrusted process are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentforge.languages import untrusted
from agentforge.languages.untrusted import object_problem, read_json, read_regular, regular_files


def test_the_beginning_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_regular(tmp_path / "file", 4) == b"0123"
    assert read_regular(tmp_path / "file", 100) == b"0123456789"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "nothing"])
def test_everything_else_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "answer"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        (tmp_path / "secret").write_text("secret")
        path.symlink_to(tmp_path / "secret")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(OSError):
        read_regular(path, 100)


def test_halves_of_surrogate_pairs_are_replaced(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_bytes(b'{"\\udcff": ["\\ud83d\\ude00", "\\ud83d", 1e999]}')
    found = read_json(answer, 1000)
    assert found == {"?": ["\U0001f600", "?", float("inf")]}
    with pytest.raises(ValueError):
        read_json(answer, 8)


def test_links_and_pipes_are_no_regular_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "own.so").touch()
    (tmp_path / "folder.so").mkdir()
    (tmp_path / "link.so").symlink_to(tmp_path / "folder" / "own.so")
    (tmp_path / "gone.so").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe.so")
    assert [path.name for path in regular_files(tmp_path, "*.so")] == ["own.so"]


def test_what_cannot_be_a_built_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "k.so"
    assert "No such file" in object_problem(place)
    place.write_bytes(b"0" * 100)
    assert object_problem(place) == ""
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "link.so").symlink_to(place)
    for path in (tmp_path / "folder" / "k.so", tmp_path / "link.so", tmp_path):
        assert "not a regular file" in object_problem(path)
    monkeypatch.setattr(untrusted, "LARGEST_OBJECT", 99)
    assert "are the limit" in object_problem(place)

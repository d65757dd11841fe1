"""Only regular files of an untrusted process are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentforge.languages.untrusted import read_regular


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

"""A temporary folder lives as long as its process, and no longer than until the next start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentforge.isolation.scratch import Scratch, readable_by_all, remove, remove_leftovers

KILLED = """
import os, signal
from agentforge.isolation.scratch import Scratch
print(Scratch("referee").path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_the_next_start_removes_at_once_what_a_killed_process_left() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=60)
    left = Path(done.stdout.strip())
    assert (left / ".owner").exists()
    living = Scratch("referee")
    assert not left.exists()
    remove_leftovers()
    assert living.path.exists()
    living.close()
    assert not living.path.exists()
    living.close()


def test_a_folder_without_an_owner_is_removed_an_hour_after_its_process_has_gone(temporary: Path) -> None:
    names = ("referee-999999999-x", f"referee-{os.getpid()}-y", "referee-999999999-new", "notes-on-x")
    stale, living, fresh, other = (temporary / f"agentforge-{name}" for name in names)
    for folder in (stale, living, fresh, other):
        folder.mkdir()
        if folder != fresh:
            os.utime(folder, (0, 0))
    remove_leftovers()
    assert [folder.exists() for folder in (stale, living, fresh, other)] == [False, True, True, True]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's workers are other users")
def test_every_user_may_read_a_tree(tmp_path: Path) -> None:
    folder, secret = tmp_path / "a" / "b", tmp_path / "secret"
    before = os.umask(0o077)
    try:
        folder.mkdir(parents=True)
        (folder / "file").write_text("")
        secret.write_text("")
    finally:
        os.umask(before)
    (folder / "link").symlink_to(secret)
    readable_by_all(tmp_path / "a")
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "a", folder, folder / "file", secret)]
    assert modes == [0o755, 0o755, 0o644, 0o600]


DEEP = """
import os
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
"""


def test_folders_nested_too_deep_for_python_are_removed(temporary: Path) -> None:
    folder = temporary / "full"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", DEEP], cwd=folder, check=True)
    remove(folder)
    assert not folder.exists()
    remove(folder)

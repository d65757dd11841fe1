"""The kernel's calls, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentforge.isolation.sandboxes.namespaces import Namespaces

BIND = """
import os, sys
from pathlib import Path
from agentforge.isolation import linux
from agentforge.isolation.sandboxes.namespaces import map_user

source, target = map(Path, sys.argv[1:])
user, group = os.geteuid(), os.getegid()
linux.unshare(linux.CLONE_NEWNS | (0 if user == 0 else linux.CLONE_NEWUSER))
if user != 0:
    map_user(user, group)
linux.mount("", "/", "", linux.MS_REC | linux.MS_PRIVATE)
linux.mount("none", str(source / "a volume"), "tmpfs", 0)
(source / "a volume" / "inner").mkdir()
linux.mount("none", str(source / "a volume" / "inner"), "tmpfs", linux.MS_NODEV)
linux.bind("/usr", str(target / "hidden"), read_only=True)
linux.bind(str(source), str(target), read_only=True)
for folder in (target, target / "a volume", target / "a volume" / "inner"):
    try:
        (folder / "file").touch()
    except OSError as error:
        print(error.strerror)
(source / "a volume" / "file").touch()
"""


def test_mounts_below_a_read_only_folder_are_read_only(tmp_path: Path) -> None:
    if not Namespaces().available().ok:
        pytest.skip(Namespaces().available().detail)
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a volume").mkdir(parents=True)
    for folder in (source, target):
        (folder / "hidden").mkdir(parents=True)  # by what is shown at `target` later
    done = subprocess.run(
        [sys.executable, "-c", BIND, str(source), str(target)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Read-only file system"] * 3

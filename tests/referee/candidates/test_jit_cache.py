"""What a candidate compiled goes from one of its processes to the next, and nothing else does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agentforge.referee.candidates import jit_cache as compiled
from agentforge.referee.candidates.jit_cache import (
    CompiledCode,
    cache_place,
    calls_compiler,
    link_missing,
)
from agentforge.testing.language import make_solution


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    cache_place(tmp_path / "scratch").mkdir(parents=True)
    return tmp_path / "scratch"


def collected(tmp_path: Path, scratch: Path) -> CompiledCode:
    code = CompiledCode(tmp_path / "kept")
    code.collect(os.getpid(), scratch)
    return code


def test_regular_files_are_kept_with_their_places(tmp_path: Path, scratch: Path) -> None:
    (cache_place(scratch) / "ab").mkdir()
    (cache_place(scratch) / "ab" / "graph").write_bytes(b"compiled")

    code = collected(tmp_path, scratch)

    assert code.there and (code.folder / "ab" / "graph").read_bytes() == b"compiled"
    code.forget()
    assert not code.there and not list(tmp_path.glob("kept*"))


def test_the_first_process_is_asked_again_before_each_other_one(tmp_path: Path, scratch: Path) -> None:
    code = CompiledCode(tmp_path / "kept")
    code.update()
    assert not code.there
    code.follow(lambda: code.collect(os.getpid(), scratch))
    code.follow(lambda: pytest.fail("only the first one is asked"))
    (cache_place(scratch) / "graph").write_bytes(b"compiled")
    code.update()
    (cache_place(scratch) / "more").write_bytes(b"later")
    code.update()
    assert {path.name for path in code.folder.iterdir()} == {"graph", "more"}


def test_links_and_pipes_are_not_followed(tmp_path: Path, scratch: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("the referee's")
    (cache_place(scratch) / "file").write_text("own")
    (cache_place(scratch) / "link").symlink_to(secret / "key")
    (cache_place(scratch) / "folder").symlink_to(secret)
    os.mkfifo(cache_place(scratch) / "pipe")

    code = collected(tmp_path, scratch)

    assert [p.name for p in code.folder.rglob("*")] == ["file"]


def test_a_cache_that_is_a_link_is_not_kept(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("the referee's")
    cache_place(scratch).rmdir()
    cache_place(scratch).symlink_to(tmp_path / "secret")

    assert not collected(tmp_path, scratch).there


def test_too_much_leaves_what_was_there(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache_place(scratch) / "first").write_bytes(b"1")
    code = collected(tmp_path, scratch)
    monkeypatch.setattr(compiled, "_MOST_BYTES", 1000)
    (cache_place(scratch) / "large").write_bytes(b"0" * 1001)

    code.collect(os.getpid(), scratch)

    assert [p.name for p in code.folder.iterdir()] == ["first"]
    assert not list(tmp_path.glob("kept-*"))


def test_folders_count_too(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MOST_FILES", 20)
    (cache_place(scratch) / "graph").write_bytes(b"1")
    assert collected(tmp_path, scratch).there
    for n in range(20):
        (cache_place(scratch) / "more" / str(n)).mkdir(parents=True)
    (cache_place(scratch) / "late").write_bytes(b"2")

    code = collected(tmp_path, scratch)

    assert [p.name for p in code.folder.iterdir()] == ["graph"]


def test_nothing_compiled_is_nothing_kept(tmp_path: Path, scratch: Path) -> None:
    assert not collected(tmp_path, scratch).there
    assert not collected(tmp_path, tmp_path / "absent").there


def test_whole_files_that_are_missing_are_linked(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("ab/old", "ab/there", "ab/new", "locks/a.lock"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("the baseline's")
        os.utime(source / name, (100, 200 if name == "ab/new" else 100))
    (target / "ab").mkdir(parents=True)
    (target / "ab" / "there").write_text("own")

    link_missing(source, target, before=150)
    link_missing(tmp_path / "absent", target, before=150)

    assert {p.name for p in target.rglob("*") if not p.is_dir()} == {"old", "there"}
    assert (target / "ab" / "old").readlink() == source / "ab" / "old"
    assert (target / "ab" / "there").read_text() == "own"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("f = torch.compile(f)", True),
        ("from torch import compile, nn", True),
        ("module.compile()", True),
        ("import torch as th\nf = self.th.compile(f)", True),
        ("from torch import nn\nre.compile(x)", False),
        ("import torch as th\nf = th.compile(f)", True),
        ("import torch as th\nf = re.compile(th.x)", False),
        ("re.compile(x)", False),
        ("torch.compiler.is_compiling()", False),
    ],
)
def test_which_solutions_call_the_compiler(text: str, calls: bool) -> None:
    solution = make_solution("python", {"model_new.py": text}, definition="a" * 16)
    assert calls_compiler(solution) is calls


@pytest.mark.parametrize("part", ["from torch import ", "import torch as t\n", "t.compile ", "a" * 20])
def test_long_lines_are_read_once(part: str) -> None:
    """Read again from each beginning, these take a minute."""
    solution = make_solution("python", {"model_new.py": part * (300_000 // len(part))}, definition="a" * 16)
    before = time.process_time()
    assert not calls_compiler(solution)
    assert time.process_time() - before < 10

"""Precompiled headers: one folder for all homes of a user, and only whole files in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentforge.referee.workers.headers import header_folder, keep_headers_in

Precompile = Callable[..., str]


@pytest.fixture
def inductor(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Inductor's module with a compiler that writes half a file first."""
    module = SimpleNamespace(_HEADER_DIR="", _HEADER_LOCK_DIR="", seen=[], interrupt=False)

    def precompile(header: str) -> str:
        folder = Path(module._HEADER_DIR)
        source, made = folder / f"{header}.h", folder / f"{header}.h.gch"
        source.write_text("#include")
        (folder / "locks").mkdir(exist_ok=True)
        module.seen.append(made.exists())
        if not made.exists():
            made.write_text("half")
            if module.interrupt:
                raise KeyboardInterrupt
            made.write_text("a whole header")
        return str(source)

    module._precompile_header = SimpleNamespace(__wrapped__=precompile, __module__="inductor")
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", module)
    return module


def test_a_header_appears_when_it_is_whole(inductor: SimpleNamespace, tmp_path: Path) -> None:
    keep_headers_in(tmp_path)
    inductor.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        inductor._precompile_header("prefix")
    assert not list(tmp_path.iterdir())

    inductor.interrupt = False
    assert inductor._precompile_header("prefix") == str(tmp_path / "prefix.h")
    assert {path.name for path in tmp_path.iterdir()} == {"prefix.h", "prefix.h.gch"}
    assert (tmp_path / "prefix.h.gch").read_text() == "a whole header"


def test_the_next_process_finds_it_and_this_one_asks_once(inductor: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "prefix.h.gch").write_text("a whole header")
    keep_headers_in(tmp_path)
    assert inductor._precompile_header("prefix") == inductor._precompile_header("prefix")
    assert inductor.seen == [True]
    assert (tmp_path / "prefix.h.gch").read_text() == "a whole header"


def test_another_folder_holds_for_later_headers(inductor: SimpleNamespace, tmp_path: Path) -> None:
    keep_headers_in(tmp_path / "shared")
    first = inductor._precompile_header("prefix")
    keep_headers_in(tmp_path / "own")
    assert inductor._precompile_header("prefix") == first
    assert inductor._precompile_header("wrapper") == str(tmp_path / "own" / "wrapper.h")


def test_all_homes_share_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert header_folder(tmp_path / "one") == header_folder(tmp_path / "two")
    assert tmp_path / "caches" in header_folder(tmp_path / "one").parents


def test_a_user_without_a_folder_for_caches_keeps_them_in_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "missing" / "caches"))
    assert header_folder(tmp_path) == tmp_path / "headers"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert header_folder(tmp_path) == tmp_path / "headers"

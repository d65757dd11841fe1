"""Another database merges as claims, once, and bad ones change nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from agentforge.config import sqlite_url
from agentforge.devices.null import detect_null
from agentforge.knowledge import (
    KnowledgeBase,
    export_knowledge,
    import_knowledge,
    judge_claims,
    read_database,
)
from agentforge.schema import AgentForgeError, EvaluationStatus, Level
from agentforge.store import Store
from agentforge.store._errors import _ADVICE, describe
from tests import ordinary
from tests.cli.conftest import Run, home, run
from tests.store import nouns

__all__ = ["home", "run"]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    """A database with three wins, a failure and a lesson."""
    with Store(f"sqlite:///{tmp_path}/other.db") as opened:
        opened.create_run(nouns.run())
        opened.save_profile(nouns.run().id, nouns.profile())
        base = KnowledgeBase(opened, [])
        for number in range(4):
            solution = nouns.solution(str(number))
            status = EvaluationStatus.PASSED if number else EvaluationStatus.TIMEOUT
            evaluation = nouns.evaluation(solution, status=status, after_s=number)
            opened.save_solution(solution)
            opened.save_evaluation(evaluation)
            base.record("trick", nouns.context(), solution, evaluation, run=nouns.run().id)
        base.learn("trick", nouns.context(), evaluation, "Rows fit in L1.", author="me")
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/mine.db") as opened:
        opened.create_run(nouns.run())
        opened.save_profile(nouns.run().id, nouns.profile())
        yield opened


def merge(store: Store, other: Path) -> tuple[int, int]:
    done = import_knowledge(store, read_database(str(other), store.where))
    return done.outcomes, done.lessons


def content(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        return list(connection.iterdump())


def test_a_second_merge_changes_nothing(store: Store, other: Store, tmp_path: Path) -> None:
    before = content(tmp_path / "other.db")
    assert merge(store, tmp_path / "other.db") == (4, 1)
    after = content(tmp_path / "mine.db")
    assert merge(store, tmp_path / "other.db") == (0, 0)
    assert content(tmp_path / "mine.db") == after
    assert content(tmp_path / "other.db") == before
    stats = KnowledgeBase(store, []).stats()
    assert (stats.outcomes, stats.claimed, stats.verified, stats.failures) == (4, 4, 0, 0)
    export_knowledge(KnowledgeBase(other, []), other, tmp_path / "k.jsonl")
    assert import_knowledge(store, tmp_path / "k.jsonl").outcomes == 0, "a file says the same"


def test_claims_keep_where_they_are_from(store: Store, other: Store, tmp_path: Path) -> None:
    merge(store, tmp_path / "other.db")
    there = {o.evaluation: o for o in other.outcomes()}
    for claim in store.outcomes():
        known = there[claim.evaluation]
        assert (claim.claimed, claim.origin) == (True, "other.db")
        changed = {"id": claim.id, "claimed": True, "origin": "other.db"}
        assert claim == known.model_copy(update=changed)
    with Store(f"sqlite:///{tmp_path}/third.db") as third:
        assert merge(third, tmp_path / "mine.db") == (4, 1)
        assert {o.origin for o in third.outcomes()} == {"mine.db, other.db"}
        assert merge(third, tmp_path / "other.db") == (0, 0), "known, by another way"
    assert merge(other, tmp_path / "third.db") == (0, 0), "it measured all of them itself"


@pytest.mark.parametrize("passes", [True, False])
def test_a_verdict_takes_the_claims_place_for_good(
    store: Store, other: Store, tmp_path: Path, passes: bool
) -> None:
    bundle = read_database(str(tmp_path / "other.db"), store.where, evidence=True)
    import_knowledge(store, bundle)
    status = EvaluationStatus.PASSED if passes else EvaluationStatus.CRASHED

    verdicts = judge_claims(
        KnowledgeBase(store, []), store, bundle, 3, device=detect_null(),
        evaluate=lambda r: nouns.evaluation(r.solution, status=status, after_s=99, level=Level.FULL),
    )  # fmt: skip
    assert len(verdicts.judged) == 3
    after = content(tmp_path / "mine.db")
    assert merge(store, tmp_path / "other.db") == (0, 0)
    assert content(tmp_path / "mine.db") == after
    stats = KnowledgeBase(store, []).stats()
    assert (stats.verified, stats.claimed) == (1 if passes else 0, 1), "one of a strategy in a context"
    onwards = read_database(str(tmp_path / "mine.db"), other.where, evidence=True)
    assert len(onwards.solutions) == (1 if passes else 0), "so that a third machine can judge it"


def test_results_of_another_architecture_come_along(store: Store, other: Store, tmp_path: Path) -> None:
    solution = nouns.solution("1")
    elsewhere = nouns.evaluation(solution, after_s=50, level=Level.FULL)
    KnowledgeBase(other, []).record("trick", nouns.context(architecture="elsewhere"), solution, elsewhere)
    store.save_evaluation(nouns.evaluation(solution, after_s=99, level=Level.FULL))
    assert merge(store, tmp_path / "other.db") == (4, 1), "all but what the same architecture said of it"
    about = [o.context.architecture for o in store.outcomes() if o.solution == solution.hash]
    assert about == ["elsewhere"]


def test_bad_databases_change_nothing(store: Store, other: Store, tmp_path: Path) -> None:
    other.close()
    (tmp_path / "rubbish.db").write_bytes(b"this is no database" * 500)
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE x (y)").connection.close()
    for name, change in (
        ("newer.db", "UPDATE agentforge_version SET version_num = '9999'"),
        ("older.db", "UPDATE agentforge_version SET version_num = '0003'"),
        ("wrong.db", "UPDATE outcomes SET body = '{}'"),
        ("torn.db", "DROP TABLE outcomes"),
    ):
        with sqlite3.connect(tmp_path / name) as copied, sqlite3.connect(tmp_path / "other.db") as source:
            source.backup(copied)
            copied.execute(change)
    os.link(tmp_path / "mine.db", tmp_path / "linked.db")
    before, files = content(tmp_path / "mine.db"), {p.name for p in tmp_path.iterdir()}
    for name, words in (
        ("nothing.db", "there is no database"),
        ("rubbish.db", "cannot be read .file is not a database.: name a database"),
        ("empty.db", "has no tables of AgentForge"),
        ("newer.db", "revision 9999"),
        ("older.db", "revision 0003"),
        ("wrong.db", "invalid Outcome"),
        ("torn.db", "torn.db"),
        ("mine.db", "this database itself"),
        ("linked.db", "this database itself"),
        (".", "is a folder"),
    ):
        with pytest.raises(AgentForgeError, match=words) as caught:
            merge(store, tmp_path / name)
        assert "\n" not in str(caught.value), name
        assert "AGENTFORGE_" not in str(caught.value), "it is not the user's own"
    assert content(tmp_path / "mine.db") == before
    left = {p.name for p in tmp_path.iterdir() if not p.name.endswith(("-wal", "-shm"))}
    assert left <= files, "nothing was created"


def test_advice_is_about_the_database_that_was_named() -> None:
    for fragment, *_ in _ADVICE:
        error = OperationalError("SELECT 1", None, Exception(fragment))
        assert "AGENTFORGE_" not in str(describe("theirs.db", error, named=True)), fragment
    assert "AGENTFORGE_HOME" in str(describe("mine.db", OperationalError("", None, Exception("readonly"))))


@pytest.mark.slow
def test_a_closed_database_is_read_in_a_folder_that_is_not_ones_own(other: Store, tmp_path: Path) -> None:
    """Root writes everywhere, so as root another user reads it."""
    other.close()
    code = (
        "import os, sys\n"
        "from agentforge.knowledge import read_database\n"
        "print(os.getuid(), flush=True)\n"
        "print(len(read_database(sys.argv[1], 'sqlite://').outcomes))\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "theirs")
        folder.mkdir()
        shutil.copy(tmp_path / "other.db", folder)
        folder.chmod(0o555)
        try:
            if os.geteuid() == 0:
                file = str(folder / "other.db")
                done = ordinary.run(Path(name), sys.executable, "-c", code, file)
                if not done.stdout.startswith(str(ordinary.USER)):
                    pytest.skip(f"no ordinary user can be made here: {done.stderr[-300:]}")
                assert done.stdout.split()[1:] == ["4"], done.stderr
            else:
                assert len(read_database(str(folder / "other.db"), "sqlite://").outcomes) == 4
            assert [path.name for path in folder.iterdir()] == ["other.db"], "nothing is written beside it"
        finally:
            folder.chmod(0o755)


def test_a_failure_in_the_middle_changes_nothing(
    store: Store, other: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentforge.store.knowledge import outcomes

    made = outcomes._row

    def failing(outcome: object) -> object:
        row = made(outcome)  # type: ignore[arg-type]
        if row.status == "TIMEOUT":
            raise OSError("killed")
        return row

    before = content(tmp_path / "mine.db")
    monkeypatch.setattr(outcomes, "_row", failing)
    with pytest.raises(OSError, match="killed"):
        merge(store, tmp_path / "other.db")
    assert content(tmp_path / "mine.db") == before


def test_the_command(run: Run, home: Path, other: Store, tmp_path: Path) -> None:
    file = str(tmp_path / "other.db")
    assert run("kb", "merge", file, "--json").json == {
        "file": "other.db", "strategies": 1, "outcomes": 4, "known": 0, "lessons": 1,
    }  # fmt: skip
    assert "read 0 new outcomes from other.db (4 were known)" in run("kb", "merge", file).out
    assert "Claims: 4 through other.db" in run("kb", "show", "trick").out
    for wrong in (
        str(tmp_path / "nothing.db"), str(home / "agentforge.db"), "http://x/y", "://", "~no-such-user/a.db",
        "postgresql://me:hunter2@h:abc/x",
    ):  # fmt: skip
        answer = run("kb", "merge", wrong)
        assert answer.code == 2, wrong
        assert answer.err.count("\n") == 1, answer.err
        assert "hunter2" not in answer.err


@pytest.mark.parametrize("folder", ["what?", "%41", "a #1"])
def test_a_database_in_any_folder_is_read(store: Store, other: Store, tmp_path: Path, folder: str) -> None:
    file = tmp_path / folder / "their?s.db"
    file.parent.mkdir()
    with sqlite3.connect(file) as copied, sqlite3.connect(tmp_path / "other.db") as source:
        source.backup(copied)
    os.link(file, tmp_path / "linked.db")
    assert read_database(str(file), store.where).origin == "their?s.db"
    assert merge(store, file) == (4, 1)
    with pytest.raises(AgentForgeError, match="this database itself"):
        read_database(str(tmp_path / "linked.db"), sqlite_url(file))

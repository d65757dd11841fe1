"""Bad databases get one sentence; what was committed survives."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, NullPool, create_engine, inspect, text
from sqlalchemy.exc import OperationalError

from agentforge.schema import LLMCall, StoreError, UnreachableError
from agentforge.store import Store, _engine, _migrate
from agentforge.store._migrate import REVISION, VERSION_TABLE
from agentforge.store.knowledge.outcomes import _row
from agentforge.store.tables import OutcomeRow, Table

from . import nouns
from .test_store import outcome


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def _refused(url: str, *words: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store(url)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(_migrate.__file__).parent / "migrations"))
    return config


def _older(url: str, revision: str) -> Engine:
    """A database as an older version left it."""
    if url.startswith("sqlite"):
        _file(url).parent.mkdir()
    config, engine = _config(), create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    return engine


class TestMigrations:
    @pytest.mark.parametrize("before", ["", "0007"])
    def test_make_the_tables_that_the_code_has(self, url: str, before: str) -> None:
        from alembic.autogenerate import compare_metadata
        from alembic.migration import MigrationContext

        if before:
            _older(url, before).dispose()
        Store(url).close()
        engine = create_engine(url)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
            assert compare_metadata(context, Table.metadata) == []
        engine.dispose()

    def test_a_database_of_the_first_version_is_upgraded(self, url: str) -> None:
        _older(url, "0007").dispose()
        with Store(url) as store:
            store.create_run(nouns.run())
            assert store.list_runs() == (nouns.run(),)

    def test_parameters_come_from_the_bodies(self, url: str) -> None:
        every = [outcome(number, parameters={"tile": number}) for number in range(5)]
        engine = _older(url, "0009")
        with engine.begin() as connection:
            columns = [c for c in OutcomeRow.__table__.c if c.name != "parameters"]
            rows = [{c.name: getattr(row, c.name) for c in columns} for row in map(_row, every)]
            connection.execute(Table.metadata.tables["outcomes"].insert(), rows)
        engine.dispose()
        with Store(url) as store:
            assert [r.parameters for r in store.experience()["fuse"]] == [o.parameters for o in every]

    def test_items_that_are_done_have_the_results_of_their_runs(self, url: str) -> None:
        made, _ = nouns.campaign(1)
        item = {"campaign": "night", "problem": "p0", "worker": "", "lease_until": 0.0, "tries": 1, "lost": 0,
                "reason": "", "seconds": 1.0}  # fmt: skip
        items = [
            {**item, "arm": "base", "state": "done", "run": "run-1"},
            {**item, "arm": "llm", "state": "failed", "run": "run-2"},
        ]
        engine = _older(url, "0012")
        with engine.begin() as connection:
            body = made.model_dump_json()
            campaign = {"name": "night", "state": "open", "created": made.created, "body": body}
            connection.execute(Table.metadata.tables["campaigns"].insert(), campaign)
            connection.execute(Table.metadata.tables["campaign_items"].insert(), items)
        engine.dispose()
        with Store(url) as store:
            found = [(i.run, i.result_run) for i in store.campaign_items("night")]
        assert found == [("run-1", "run-1"), ("run-2", None)]

    def test_figures_come_from_the_bodies(self, url: str) -> None:
        made, _ = nouns.campaign(1)
        judged = nouns.evaluation(seconds=2.5, log="a\0b")
        call = {"run": "run-1", "role": "coder", "model": "m", "prompt": "p", "time": nouns.NOW}
        cost = {"tokens_in": 100, "tokens_out": 50, "dollars": 0.5, "error": "a\0b"}
        calls = [
            LLMCall.model_validate({**call, **cost, "key": status, "status": status})
            for status in ("failed", "begun")
        ]
        rows: dict[str, list[dict[str, object]]] = {
            "runs": [{"id": "run-1", "target": "t", "status": "created", "created": nouns.NOW, "body": "{}"}],
            "evaluations": [
                {
                    **{"id": "e", "run": "run-1", "workloads": "w", "level": "full", "device": "d"},
                    **{"definition": judged.definition, "solution": judged.solution, "status": "PASSED"},
                    **{"evidence": "verified", "time": nouns.NOW, "body": judged.model_dump_json()},
                }
            ],
            "llm_calls": [
                {**one.model_dump(include={"key", "run", "role", "status", "time"}), "body": body}
                for one in calls
                for body in [one.model_dump_json()]
            ],
            "campaigns": [
                {"name": "night", "state": "open", "created": made.created, "body": made.model_dump_json()}
            ],
            "campaign_items": [
                {
                    **{"campaign": "night", "problem": "p0", "arm": "base", "state": "done", "run": "run-1"},
                    **{"worker": "", "lease_until": 0.0, "tries": 1, "lost": 0, "reason": "", "seconds": 1.0},
                }
            ],
        }
        engine = _older(url, "0015")
        with engine.begin() as connection:
            for table, listed in rows.items():
                connection.execute(Table.metadata.tables[table].insert(), listed)
        engine.dispose()
        with Store(url) as store:
            assert list(store.campaign_device_seconds("night").values()) == [2.5]
            assert store.campaign_spending("night") == (150, 0.5, 1)

    def test_the_newest_is_the_one_we_name(self) -> None:
        from alembic.script import ScriptDirectory

        assert ScriptDirectory.from_config(_config()).get_current_head() == REVISION

    def test_two_processes_open_a_new_database(self, url: str) -> None:
        code = "import sys; from agentforge.store import Store; Store(sys.argv[1]).list_runs()"
        children = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(3)]
        assert [child.wait(60) for child in children] == [0, 0, 0]

    @pytest.mark.parametrize(
        ("revision", "words"),
        [
            ("9999", ("newer AgentForge", "9999", "upgrade agentforge")),
            ("0006", ("before AgentForge 0.1.0", "0006", "move it away")),
        ],
    )
    def test_an_unknown_database_is_left_alone(self, url: str, revision: str, words: tuple[str, ...]) -> None:
        Store(url).close()
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))
        _refused(url, *words)
        with engine.connect() as connection:
            assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == revision
        engine.dispose()

    def test_another_programs_table_is_left_alone(self, url: str, tmp_path: Path) -> None:
        if url.startswith("sqlite"):
            _file(url).parent.mkdir()
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE runs (mine INTEGER)"))
        _refused(url, "another program's table 'runs'")
        assert inspect(engine).get_table_names() == ["runs"]
        engine.dispose()

    def test_a_file_of_another_program_is_not_changed(self, sqlite_url: str) -> None:
        path = _file(sqlite_url)
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT)")
        before = path.read_bytes()
        _refused(sqlite_url, "another program's table 'notes'", "AGENTFORGE_DATABASE_URL")
        assert path.read_bytes() == before, "it says that it has no WAL"
        assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("wrong", ["nonsense", "postgresql://me:hunter2@h:abc/x"])
def test_a_wrong_url_is_refused_without_its_password(wrong: str) -> None:
    with pytest.raises(StoreError, match="is no database URL: write sqlite") as caught:
        Store(wrong)
    assert "hunter2" not in str(caught.value)


class TestBadFiles:
    def test_rubbish(self, sqlite_url: str) -> None:
        _file(sqlite_url).parent.mkdir()
        _file(sqlite_url).write_bytes(b"this is no database" * 500)
        _refused(sqlite_url, "is not an AgentForge database", "move it away")
        assert _file(sqlite_url).read_bytes().startswith(b"this is no"), "left as it was"

    def test_half_a_file(self, sqlite_url: str) -> None:
        with Store(sqlite_url) as store:
            store.create_run(nouns.run())
            for number in range(200):
                store.save_solution(nouns.solution("x" * 2000 + str(number)))
        path = _file(sqlite_url)
        os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
        with pytest.raises(StoreError, match="damaged"), Store(sqlite_url) as store:
            store.check()

    def test_a_flipped_page(self, sqlite_url: str) -> None:
        with Store(sqlite_url) as store:
            for number in range(50):
                store.save_solution(nouns.solution("x" * 2000 + str(number)))
        with _file(sqlite_url).open("r+b") as file:
            file.seek(30 * 4096)
            file.write(os.urandom(4096 * 4))
        with pytest.raises(StoreError, match="damaged"), Store(sqlite_url) as store:
            store.check()

    def test_a_sound_file_passes_the_check(self, sqlite_url: str) -> None:
        with Store(sqlite_url) as store:
            store.check()

    def test_an_empty_file_is_a_new_database(self, sqlite_url: str) -> None:
        _file(sqlite_url).parent.mkdir()
        _file(sqlite_url).touch()
        with Store(sqlite_url) as store:
            assert store.list_runs() == ()

    def test_a_folder(self, tmp_path: Path) -> None:
        _refused(f"sqlite:///{tmp_path}", "is a folder")

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        _refused(f"sqlite:///{tmp_path}/file/a.db", "cannot be created", "AGENTFORGE_HOME")

    def test_a_file_that_cannot_be_looked_at(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="there is no database"):
            Store(f"sqlite:///{tmp_path}/{'long' * 100}.db", create=False)

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        """Root writes everywhere, so as root a child becomes another user first."""
        (tmp_path / "closed").mkdir(mode=0o500)
        url = f"sqlite:///{tmp_path}/closed/a.db"
        if os.geteuid() != 0:
            _refused(url, "AGENTFORGE_HOME")
            return
        code = (
            "import os, pwd, sys\n"
            "from agentforge.store import Store\n"
            "Store('sqlite://')  # imports what it needs while it still may\n"
            "os.setuid(pwd.getpwnam('nobody').pw_uid)\n"
            "Store(sys.argv[1])\n"
        )
        done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, timeout=60)
        assert "StoreError" in done.stderr
        assert "AGENTFORGE_HOME" in done.stderr


class TestBadUrls:
    @pytest.mark.parametrize("url", ["nonsense", "", "sqlite", "://"])
    def test_no_url(self, url: str) -> None:
        _refused(url, "no database URL")

    def test_an_unknown_kind(self) -> None:
        _refused("granite://x/y", "unknown kind")

    def test_a_missing_driver(self) -> None:
        _refused("oracle+oracledb://u:secret@h/x", "oracledb", "pip install")

    def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        pytest.importorskip("psycopg")
        url = f"postgresql+psycopg://me:secret@/x?host={tmp_path}"
        _refused(url, "AGENTFORGE_DATABASE_URL")
        with pytest.raises(UnreachableError):
            Store(url)

    def test_a_server_that_never_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("psycopg")
        monkeypatch.setattr(_engine, "CONNECT_S", 2)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            _refused(f"postgresql+psycopg://me@127.0.0.1:{port}/x", "cannot be reached", "timeout")

    def test_a_server_that_vanishes_is_noticed(self, postgres_url: str) -> None:
        with Store(f"{postgres_url}&keepalives_idle=60") as store, store._db.statements() as connection:
            driver: Any = connection.connection.driver_connection
            given = driver.info.get_parameters()
        limits = {name: given.get(name) for name in ("connect_timeout", *_engine._SERVER_GONE)}
        assert limits == {
            "connect_timeout": "10",
            "keepalives_idle": "60",
            "keepalives_interval": "5",
            "keepalives_count": "3",
            "tcp_user_timeout": "30000",
        }

    def test_a_server_without_a_free_connection(self, postgres_url: str) -> None:
        engine = create_engine(postgres_url, poolclass=NullPool)
        with ExitStack() as taken:
            with suppress(OperationalError):
                for _ in range(100):
                    taken.enter_context(engine.connect())
            with pytest.raises(UnreachableError, match="has no free connection: raise the server"):
                Store(postgres_url)

    def test_few_connections_stay_open(self, postgres_url: str) -> None:
        gate = threading.Barrier(5)
        client = text("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
        with Store(postgres_url) as store:

            def look() -> int | None:
                with store._db.read() as session:
                    found = session.scalar(client)
                    gate.wait(30)
                    return found

            with ThreadPoolExecutor(5) as threads:
                list(threads.map(lambda _: look(), range(5)))
            gate, until = threading.Barrier(1), time.monotonic() + 20
            while look() != _engine.KEPT:  # the server notices later that others are closed
                assert time.monotonic() < until
                time.sleep(0.05)

    def test_a_database_that_is_not_there(self, postgres_server: str) -> None:
        _refused(postgres_server.format(name="nothing"), "is not there", "create it")

    def test_a_password_is_never_shown(self) -> None:
        with pytest.raises(StoreError) as caught:
            Store("oracle+oracledb://u:secret@h/x")
        assert "secret" not in str(caught.value)


_WRITE = """
import sys
from agentforge.store import Store
sys.path.insert(0, sys.argv[3])
from tests.store import nouns
with Store(sys.argv[1]) as store:
    if not store.list_runs():
        store.create_run(nouns.run())
    for number in range(100000):
        event = store.append_event(nouns.run().id, nouns.event("tick", {"pad": "x" * 3000}))
        print(event.seq, flush=True)
"""


class TestSurvival:
    def test_kill_in_the_middle_of_writes(self, url: str) -> None:
        Store(url).close()
        root = str(Path(__file__).parents[2])
        for _ in range(3):
            with subprocess.Popen(
                [sys.executable, "-c", _WRITE, url, "", root], stdout=subprocess.PIPE, text=True
            ) as child:
                assert child.stdout is not None
                seen = [int(child.stdout.readline()) for _ in range(12)]
                child.send_signal(signal.SIGKILL)
                seen += [int(line) for line in child.stdout]
            with Store(url) as store:
                store.check()
                kept = [event.seq for event in store.events(nouns.run().id)]
            assert kept == list(range(1, len(kept) + 1))
            assert seen[-1] in (kept[-1], kept[-1] - 1), "what was answered is there"

    def test_a_full_disk(self, sqlite_url: str) -> None:
        with Store(sqlite_url) as store:
            store.create_run(nouns.run())
            with store._db._engine.connect() as connection:  # SQLite's own limit acts as a full disk does
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            from sqlalchemy import event

            @event.listens_for(store._db._engine, "begin")
            def _limit(connection: object) -> None:
                connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 20}")  # type: ignore[attr-defined]

            kept = 0
            with pytest.raises(StoreError, match="disk is full") as caught:
                for number in range(1000):
                    store.append_event(nouns.run().id, nouns.event("tick", {"pad": "x" * 1000}))
                    kept = number + 1
            assert kept > 0
            assert not isinstance(caught.value, UnreachableError)
            assert len(store.events(nouns.run().id)) == kept
        with Store(sqlite_url) as store:
            assert store.append_event(nouns.run().id, nouns.event("after")).seq == kept + 1

    def test_a_writer_waits_for_another(self, sqlite_url: str) -> None:
        with Store(sqlite_url) as store:
            store.create_run(nouns.run())
            other = sqlite3.connect(_file(sqlite_url), isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.5, lambda: other.execute("COMMIT")).start()
            assert store.list_runs(), "readers do not wait"
            assert store.append_event(nouns.run().id, nouns.event("patient")).seq == 1
            other.close()

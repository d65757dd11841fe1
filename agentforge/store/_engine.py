"""Engine, sessions and transactions."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DisconnectionError, IntegrityError, NoSuchModuleError
from sqlalchemy.orm import Session

from agentforge.schema import NoDatabaseError, StoreError, first_fault

from ._errors import COPY, describe, translated
from ._migrate import VERSION_TABLE, check_revision, migrate
from .tables import Table

BUSY_TIMEOUT_MS = 30_000
"""How long SQLite waits for another writer."""

CONNECT_S = 10
"""How long a PostgreSQL server may take to accept a connection."""

_SERVER_GONE = {
    "keepalives_idle": 10,  # seconds without traffic before the server is asked whether it is there
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds for which what was sent may stay without an acknowledgement
}
"""Options of libpq: a server whose machine vanishes is noticed within half a minute, not after many."""

SILENCE_S = 1.0
"""Seconds after which a server's connection is tested before it is used again."""

SYNCHRONOUS = "FULL"
"""SQLite's `synchronous`: commits survive the end of the machine's power too."""

KEPT = 2
"""Connections to a server that stay open; more of them at a time are closed after their use."""


def _prepare_sqlite(engine: Engine, *, read_only: bool) -> None:
    """WAL (unless it is only read or foreign), enforced foreign keys, and transactions that are begun by us.

    sqlite3's own implicit BEGIN is deferred, so two processes that read and then write deadlock at once
    whatever the busy timeout; a writer here takes its lock first, with BEGIN IMMEDIATE.
    """

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        if not read_only and not _is_foreign(cursor):
            cursor.execute("PRAGMA journal_mode=WAL")  # which changes the file
        cursor.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("agentforge_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _is_foreign(cursor: Any) -> bool:
    """Whether the file has tables, and not ours: `migrate` refuses it."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    names = {name for (name,) in cursor.execute(tables)}
    return bool(names) and VERSION_TABLE not in names


def _read_only(url: URL) -> URL:
    """The URL that opens a SQLite file without a change to it.

    A reader of a WAL database writes an index beside it, so that writers know of it. If it may not write
    there, and no writer has left anything, the file has all of the content and can be read by itself.
    """
    path = Path(url.database or "")
    query = {"mode": "ro", "uri": "true"}
    left = (Path(f"{path}{ending}") for ending in ("-wal", "-journal"))
    if not os.access(path.parent, os.W_OK) and not any(file.exists() for file in left):
        query["immutable"] = "1"
    return url.set(database=f"file:{quote(str(path))}", query=query)


def _check_named_file(where: str, database: str | None) -> None:
    """Check a SQLite file that the user named, to be read only."""
    path = Path(database or "")
    try:
        if not database or not path.exists():
            raise NoDatabaseError(f"there is no database {where}: name a file that exists")
        if path.is_dir():
            raise StoreError(f"database {where} is a folder: name a file in it")
    except OSError as error:
        raise StoreError(f"database {where} cannot be read ({error.strerror}): {COPY}") from error


def _check_sqlite_file(where: str, database: str | None, *, create: bool) -> None:
    if not database or database == ":memory:" or database.startswith("file:"):
        return
    path = Path(database)
    if not create and not os.path.exists(path):  # noqa: PTH110 - Path.exists may raise
        raise NoDatabaseError(
            f"there is no database {where}: make it with `agentforge optimize MODEL.py`, or name yours "
            "(AGENTFORGE_HOME, AGENTFORGE_DATABASE_URL)"
        )
    try:
        if path.is_dir():
            raise StoreError(f"database {where} is a folder: name a file in it")
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"database {where} cannot be created ({error.strerror}): "
            "change its permissions, or set AGENTFORGE_HOME to a folder that you own"
        ) from error


def _connect_args(url: URL) -> dict[str, int]:
    """Limits of waiting for a PostgreSQL server; those that the URL gives stay."""
    if url.get_backend_name() != "postgresql" or url.get_driver_name() not in ("psycopg", "psycopg2"):
        return {}  # only libpq has these options
    limits = {"connect_timeout": CONNECT_S, **_SERVER_GONE}
    return {name: limit for name, limit in limits.items() if name not in url.query}


def _test_after_silence(engine: Engine) -> None:
    """Test a connection that was not used for a while: a server may have restarted in between.

    SQLAlchemy's own `pool_pre_ping` tests before every use, which takes a quarter of a short call's time.
    """

    @event.listens_for(engine, "checkin")
    def _checkin(_connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _checkout(connection: Any, record: Any, _proxy: Any) -> None:
        if time.monotonic() - record.info.get("used", math.inf) < SILENCE_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError from error  # the pool then opens another one


class Database:
    """An open, migrated database. Thread-safe: each transaction has its own session and connection.

    Args:
        create: make a SQLite file that is missing.
        read_only: neither make nor upgrade it.

    Raises:
        StoreError: it cannot be opened, is damaged or is newer than this version; with `read_only`, it has
            the tables of any other version.
    """

    def __init__(self, url: str, *, create: bool = True, read_only: bool = False) -> None:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError) as error:  # the latter for a port that is no number
            shown = re.sub(r"//.*@", "//***@", url)
            raise StoreError(
                f"{shown!r} is no database URL: write sqlite:////path/to/file.db or "
                "postgresql+psycopg://user@host/name"
            ) from error
        self.where = parsed.render_as_string(hide_password=True)
        self._translated = partial(translated, self.where, named=read_only)
        try:
            sqlite = parsed.get_backend_name() == "sqlite"
            if sqlite:
                if read_only:
                    _check_named_file(self.where, parsed.database)
                    parsed = _read_only(parsed)
                else:
                    _check_sqlite_file(self.where, parsed.database, create=create)
            with self._translated():
                pool: dict[str, Any] = {} if sqlite else {"pool_size": KEPT}
                self._engine = create_engine(parsed, connect_args=_connect_args(parsed), **pool)
        except NoSuchModuleError as error:
            raise describe(self.where, error) from error
        if sqlite:
            _prepare_sqlite(self._engine, read_only=read_only)
        else:
            _test_after_silence(self._engine)
        self._writer = self._engine.execution_options(agentforge_write=True)
        self._each = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        try:
            with self._translated():
                (check_revision if read_only else migrate)(self._writer, self.where)
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session with one consistent view."""
        with self._translated(), Session(self._engine) as session:
            try:
                yield session
            except ValidationError as error:
                field, _ = first_fault(error)
                raise StoreError(
                    f"database {self.where} has an invalid {error.title} (field {field!r}), perhaps of "
                    "another version of AgentForge: use that one, or another database"
                ) from error

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose changes are committed together at the end, or not at all."""
        with self._translated(), Session(self._writer) as session, session.begin():
            yield session

    @contextmanager
    def statements(self) -> Iterator[Connection]:
        """Changes without a session. PostgreSQL commits each by itself; else they are one transaction."""
        with self._translated():
            if self._engine.dialect.name == "postgresql":
                with self._each.connect() as connection:
                    yield connection
            else:
                with self._writer.begin() as connection:
                    yield connection

    def check(self) -> None:
        """Raise `StoreError` if SQLite finds damage; other servers check themselves."""
        if self._engine.dialect.name != "sqlite":
            return
        with self.read() as session:
            answer = session.scalar(text("PRAGMA quick_check(1)"))
        if answer != "ok":
            raise StoreError(
                f"database {self.where} is damaged ({answer}): restore a copy, or move it away to start anew"
            )

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def add_all_once(session: Session, rows: Sequence[Table]) -> None:
    """Like `add_once`, with one statement for all rows unless another writer has just added one of them."""
    try:
        with session.begin_nested():
            session.add_all(rows)
            session.flush()
    except IntegrityError:
        for row in rows:
            add_once(session, row)


def add_once(session: Session, row: Table) -> None:
    """Insert `row` unless one with its key is there; correct with concurrent writers on any server."""
    key = inspect(type(row)).primary_key_from_instance(row)
    try:
        with session.begin_nested():
            session.add(row)
            session.flush()
    except IntegrityError:
        if session.get(type(row), tuple(key)) is None:
            raise  # not a duplicate: it refers to something that is not there

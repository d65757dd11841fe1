"""Brings a database to this version's tables when it is opened."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from sqlalchemy import Column, Connection, Engine, MetaData, String, insert, inspect, text
from sqlalchemy import Table as SchemaTable
from sqlalchemy.exc import DBAPIError

from agentforge.schema import RevisionError, StoreError

from .knowledge import summary
from .tables import Table

REVISION = "0016"
"""Newest migration, kept here so that opening a new or an up-to-date database does not import Alembic."""

VERSION_TABLE = "agentforge_version"
"""Not Alembic's default name: a server's database may be shared with another program's tables."""

_VERSION = SchemaTable(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
"""As Alembic makes it."""

_ADVISORY_LOCK = 0x41666F726765
"""Key of the PostgreSQL lock under which one process migrates while the others wait."""


def migrate(engine: Engine, where: str) -> None:
    """Create or upgrade the tables, in one transaction.

    Raises:
        StoreError: the database is newer than this version, or is not ours.
    """
    with engine.execution_options(agentforge_write=False).connect() as connection:
        current = current_revision(connection)
        if current == REVISION:
            return
        if current is None and connection.dialect.name == "sqlite":
            names = set(inspect(connection).get_table_names())
            _refuse(where, set() if VERSION_TABLE in names else names)  # before anything is written
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        current = current_revision(connection)
        if current == REVISION:
            return
        if current is None:
            _refuse(where, Table.metadata.tables.keys() & set(inspect(connection).get_table_names()))
            _create(connection)
        else:
            _upgrade(connection, current, where)


def check_revision(engine: Engine, where: str) -> None:
    """Check that the tables are those of this version.

    Raises:
        RevisionError: they are not.
        StoreError: it cannot be read.
    """
    try:
        with engine.execution_options(agentforge_write=False).connect() as connection:
            current = current_revision(connection)
    except DBAPIError as error:
        reason = str(error.orig).partition("\n")[0]
        raise StoreError(f"{where} cannot be read ({reason}): name a database of AgentForge") from error
    if current is None:
        raise RevisionError(
            f"database {where} has no tables of AgentForge: name a database of AgentForge", wanted=REVISION
        )
    if current != REVISION:
        raise RevisionError(
            f"database {where} has tables of revision {current}, and this version reads {REVISION}: "
            "open it once with the newer version of the two, for example with `agentforge kb stats`",
            found=current,
            wanted=REVISION,
        )


def current_revision(connection: Connection) -> str | None:
    """The database's revision; None if it has none of these tables."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return None if revision is None else str(revision)


def _refuse(where: str, foreign: Set[str]) -> None:
    """Refuse a database with tables of another program. A server's database may be shared, a file may not."""
    if foreign:
        raise StoreError(
            f"database {where} contains another program's table {min(foreign)!r}: "
            "set AGENTFORGE_DATABASE_URL to a database of AgentForge's own"
        )


def _create(connection: Connection) -> None:
    """Tables of a new database: the migrations together make the same ones, in 0.2 s more."""
    Table.metadata.create_all(connection)
    _VERSION.create(connection, checkfirst=True)  # it is there, but empty, after a downgrade
    connection.execute(insert(_VERSION).values(version_num=REVISION))


def _upgrade(connection: Connection, current: str, where: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current < min(known):
        raise StoreError(
            f"database {where} was written before AgentForge 0.1.0 (revision {current}): "
            "move it away to start a new one, or open it once with version 0.1.0"
        )
    if current not in known:
        raise StoreError(
            f"database {where} was written by a newer AgentForge (revision {current}): "
            "upgrade agentforge, or set AGENTFORGE_DATABASE_URL to another database"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    summary.rebuild(connection)

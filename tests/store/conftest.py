"""Databases to try: a SQLite file, and a PostgreSQL server of our own where one is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.store import Store


def _programs() -> Path | None:
    """Folder of the newest installed server's programs."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    folders = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((f.parent for f in folders), key=lambda f: int(f.parent.name), default=None)


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root; None runs it as ourselves."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a fresh server without its database's name."""
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql)")
    user = _server_user()
    # Not below tmp_path, which another user cannot enter; and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="af-pg-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"

        def call(*command: str) -> None:
            subprocess.run(command, check=True, user=user, cwd=folder, capture_output=True, timeout=60)

        call(
            str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "forge", "--no-sync", "-E", "UTF8"
        )
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=40"
        control = str(programs / "pg_ctl")
        log = str(folder / "log")
        call(control, "-D", str(data), "-w", "-l", log, "-o", options, "start")
        try:
            yield f"postgresql+psycopg://forge@/{{name}}?host={folder}"
        finally:
            call(control, "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """URL of an empty database: the last test's processes and tables are gone."""
    from sqlalchemy import create_engine, text

    url = postgres_server.format(name="postgres")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        connection.execute(text(f"SELECT pg_terminate_backend(pid) {others}"))
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """URL of a file that is not there yet, in a folder that is not there yet."""
    return f"sqlite:///{tmp_path / 'home' / 'agentforge.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened

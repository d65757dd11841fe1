"""What a driver says becomes one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from agentforge.schema import StoreError, UnreachableError, pip_install

_RIGHTS = "change its permissions, or set AGENTFORGE_HOME to a folder that you own"
_FULL = "has no free connection"
_MORE = "raise the server's max_connections, or start fewer workers"
_ADVICE = (
    # (fragment of the driver's message, what is wrong, what to do)
    ("not a database", "is not an AgentForge database", "move it away, or set AGENTFORGE_DATABASE_URL"),
    ("malformed", "is damaged", "restore a copy, or move it away to start a new one"),
    ("disk is full", "cannot grow: the disk is full", "free some space and resume; what was done is kept"),
    ("no space left", "cannot grow: the disk is full", "free some space and resume; what was done is kept"),
    ("disk i/o", "cannot be read or written", "check the disk's space and health, then resume"),
    ("readonly", "cannot be written", _RIGHTS),
    ("unable to open", "cannot be opened", _RIGHTS),
    ("permission denied", "refuses access", "change its permissions, or set AGENTFORGE_DATABASE_URL"),
    ("locked", "is held by another process", "end that process, or wait and try again"),
    ("password authentication failed", "refuses the login", "correct AGENTFORGE_DATABASE_URL"),
    ("does not exist", "is not there", "create it, or correct AGENTFORGE_DATABASE_URL"),
    ("too many clients", _FULL, _MORE),
    ("connection slots", _FULL, _MORE),
    ("connection", "cannot be reached", "start the server, or correct AGENTFORGE_DATABASE_URL"),
    ("translate host name", "cannot be reached", "correct the host in AGENTFORGE_DATABASE_URL"),
)
COPY = "change its permissions, or name a copy of it"
_NAMED = {
    "not a database": "name a database of AgentForge",
    "malformed": "name a copy that is in order",
    "disk i/o": "check its disk, or name a copy of it",
    "readonly": COPY,
    "unable to open": COPY,
    "permission denied": "change its permissions, or name another user in its URL",
    "password authentication failed": "correct its URL",
    "does not exist": "correct its URL",
    "connection": "start the server, or correct its URL",
    "translate host name": "correct the host in its URL",
}
"""What to do instead about a database that the user named to be read, by the driver's message."""

_PASSES = ("is held by another process", "cannot be reached", _FULL)
"""Troubles that end by themselves."""


def describe(where: str, error: BaseException, *, named: bool = False) -> StoreError:
    """The `StoreError` for a driver's or SQLAlchemy's exception.

    Args:
        named: the user named the database for this command; it is not the configured one.
    """
    if isinstance(error, ModuleNotFoundError):
        return StoreError(
            f"database {where} needs the package {error.name!r}: "
            + (pip_install("postgres") if error.name == "psycopg" else f"pip install {error.name}")
        )
    if isinstance(error, NoSuchModuleError):
        return StoreError(f"database {where}: unknown kind of URL; use sqlite:/// or postgresql+psycopg://")
    text = str(error.orig if isinstance(error, DBAPIError) and error.orig else error)
    first = (text.strip().splitlines() or [type(error).__name__])[0]
    if not isinstance(error, IntegrityError):
        for fragment, wrong, advice in _ADVICE:
            if fragment in text.lower():
                kind = UnreachableError if wrong in _PASSES else StoreError
                do = _NAMED.get(fragment, advice) if named else advice
                return kind(f"database {where} {wrong}: {do} ({first})")
    kind = UnreachableError if isinstance(error, OperationalError | InterfaceError) else StoreError
    return kind(f"database {where} refused an operation: {first}")


@contextmanager
def translated(where: str, *, named: bool = False) -> Iterator[None]:
    """Raise `StoreError` for whatever the database raises inside; `named` as for `describe`."""
    try:
        yield
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        raise describe(where, error, named=named) from error
    except UnicodeDecodeError as error:
        do = _NAMED["malformed"] if named else "restore a copy, or move it away"
        raise StoreError(f"database {where} is damaged: {do}") from error

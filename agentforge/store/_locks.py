"""One process at a time works on a run."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from agentforge.isolation.procfs import boot_id, own_namespace, stat_fields
from agentforge.schema import BusyError

from ._engine import Database
from ._runs import locked_run
from .tables import EventRow, LockRow

SILENCE = timedelta(hours=1)
"""A process on another machine, which we cannot look at, keeps its lock until its run's newest event
(or the lock itself) is this old."""


@dataclass(frozen=True)
class Owner:
    """A process, distinguished from a later one with the same pid."""

    host: str
    boot: str
    """Identifier of the boot, a colon, and the process namespace: containers may share their host's name."""
    pid: int
    started: str

    @classmethod
    def current(cls) -> Owner:
        """The calling process."""
        pid = os.getpid()
        return cls(
            socket.gethostname()[:255], f"{boot_id()}:{own_namespace()}", pid, process_start(pid) or ""
        )

    def alive(self) -> bool | None:
        """Whether the process still runs; None if this machine cannot tell."""
        if self.host != socket.gethostname()[:255]:
            return None
        boot, _, namespace = self.boot.partition(":")
        if boot != boot_id():
            return False
        if namespace not in ("", own_namespace()):
            return None
        return process_start(self.pid) == self.started


def process_start(pid: int) -> str | None:
    """Start time of a process in ticks after boot; None if it has ended or is a zombie."""
    fields = stat_fields(pid)
    return None if not fields or fields[0] in "ZX" else fields[19]


def _owner(lock: LockRow) -> Owner:
    return Owner(lock.host, lock.boot, lock.pid, lock.started)


def _silent(session: Session, lock: LockRow) -> bool:
    newest = session.scalar(select(func.max(EventRow.time)).where(EventRow.run == lock.run))
    times = [t if t.tzinfo else t.replace(tzinfo=UTC) for t in (lock.taken, newest) if t is not None]
    return datetime.now(UTC) - max(times) > SILENCE


class Locks:
    """Locks of runs."""

    _db: Database

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[None]:
        """Hold the run while the block runs; a dead process's lock is taken over.

        Raises:
            UsageError: no such run.
            BusyError: a live process works on it.
        """
        owner = Owner.current()
        with self._db.write() as session:
            locked_run(session, run_id)
            held = session.get(LockRow, run_id)
            if held is not None:
                self._refuse_if_alive(session, held)
                session.delete(held)
                session.flush()
            session.add(LockRow(run=run_id, taken=datetime.now(UTC), **vars(owner)))
        try:
            yield
        finally:
            with self._db.write() as session:
                session.execute(
                    delete(LockRow).where(
                        LockRow.run == run_id, LockRow.pid == owner.pid, LockRow.started == owner.started
                    )
                )

    def free_run(self, run_id: str) -> None:
        """Take the run's lock from a process of this host that is in another PID namespace.

        A container that was restarted in place cannot see its earlier processes. Only for a worker with the
        lease of the run's item: the other one has lost it.
        """
        with self._db.write() as session:
            locked_run(session, run_id)
            held = session.get(LockRow, run_id)
            if held is not None and held.host == Owner.current().host and _owner(held).alive() is None:
                session.delete(held)

    def delete_run(self, run_id: str) -> None:
        """Forget a run with its events, attempts and records; evaluations and kernels stay as knowledge.

        Raises:
            UsageError: no such run.
            BusyError: a live process works on it.
        """
        with self._db.write() as session:
            row = locked_run(session, run_id)
            held = session.get(LockRow, run_id)
            if held is not None:
                self._refuse_if_alive(session, held)
            session.delete(row)

    def worked_on(self) -> frozenset[str]:
        """Runs that a process works on, as far as this machine can tell."""
        with self._db.read() as session:
            locks = session.scalars(select(LockRow)).all()
            owners = ((lock, _owner(lock).alive()) for lock in locks)
            return frozenset(
                lock.run for lock, alive in owners if alive or (alive is None and not _silent(session, lock))
            )

    @staticmethod
    def _refuse_if_alive(session: Session, held: LockRow) -> None:
        alive = _owner(held).alive()
        if alive:
            raise BusyError(
                f"run {held.run} is being worked on by process {held.pid}: wait for it, or end it first"
            )
        if alive is None and not _silent(session, held):
            raise BusyError(
                f"run {held.run} is being worked on by process {held.pid} on {held.host}: wait for it, "
                "or end it and try again an hour after its last event"
            )

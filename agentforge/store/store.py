"""`Store`: the one door to the database."""

from __future__ import annotations

from copy import copy
from typing import Self

from ._calls import Calls
from ._engine import Database
from ._evaluations import Evaluations
from ._locks import Locks
from ._migrate import REVISION
from ._nouns import Nouns
from ._records import Records
from ._runs import Runs
from .campaigns import CampaignQueue, CampaignRecords, CampaignResults
from .knowledge.lessons import Lessons
from .knowledge.outcomes import Outcomes


class Store(
    Runs,
    Records,
    Locks,
    Nouns,
    Evaluations,
    Outcomes,
    Calls,
    Lessons,
    CampaignRecords,
    CampaignResults,
    CampaignQueue,
):
    """Runs with their records and events, targets, profiles, definitions, solutions, evaluations,
    attempts, outcomes, lessons and LLM calls; campaigns and their queue.

    Each call is one transaction that is durable when it returns; a process killed in the middle of one leaves
    what was there before. Thread-safe. Do not use it in a forked child: open another there. Opening creates
    or upgrades the tables.

    Args:
        create: make a SQLite file that is missing; False is for readers.
        read_only: neither make nor upgrade it; for another's database.

    Raises:
        StoreError: the database cannot be opened or is newer; every method raises it too, if the
            database fails. The message says what to do.
    """

    def __init__(self, url: str, *, create: bool = True, read_only: bool = False) -> None:
        self._db = Database(url, create=create, read_only=read_only)

    @property
    def where(self) -> str:
        """The URL without its password."""
        return self._db.where

    @property
    def revision(self) -> str:
        """Version of the tables."""
        return REVISION

    def as_known_to(self, run: str) -> Store:
        """This store, whose look-ups of knowledge find what a run may use: see `scope_of`."""
        seen = copy(self)
        seen._scope = self.scope_of(run)
        return seen

    def check(self) -> None:
        """Read the whole database for damage, if it is a file (about a second a gigabyte).

        Raises:
            StoreError: it is damaged.
        """
        self._db.check()

    def close(self) -> None:
        """Close all connections; the store opens new ones if it is used again."""
        self._db.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

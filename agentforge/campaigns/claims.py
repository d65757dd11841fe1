"""The items that a worker has taken: short ones several at a time, so that a server commits less often."""

from __future__ import annotations

import random
import threading
import time
from collections import deque

from agentforge.schema import CampaignItem, TryOutcome
from agentforge.store import Store
from agentforge.store.campaigns import Done

BATCH_S = 1.0
"""Seconds that the items taken at a time are to last, by the worker's last ones. Longer ones are taken one by
one. If the worker is killed, others repeat what it did in this time."""
MOST_ITEMS = 32
"""Most items taken at a time."""


class Claims:
    """One worker's items. Its worker and its heartbeat use it from their threads.

    Args:
        store: the database that has the campaign.
        campaign: its name.
        worker: the worker's name.
        lease_s: seconds without a heartbeat after which the queue gives the items to others.
    """

    def __init__(self, store: Store, campaign: str, worker: str, lease_s: float) -> None:
        self._store, self._campaign, self._lease_s = store, campaign, lease_s
        self.worker = worker
        self._lock = threading.Lock()
        self._waiting: deque[CampaignItem] = deque()
        self._done: list[Done] = []
        self._taken = self._begun = 0.0
        self.accepted = 0
        """Items that the queue has as done by this worker."""

    def take(self) -> CampaignItem | None:
        """The next item to work on; None if none waits or the campaign is paused.

        Raises:
            StoreError: the database cannot be reached; nothing is lost, and the call can be repeated.
        """
        with self._lock:
            if not self._waiting:
                self._exchange(self._next_number())
            self._begun = time.monotonic()
            return self._waiting.popleft() if self._waiting else None

    def done(self, item: CampaignItem) -> None:
        """The item that was taken last is done; the queue knows it with the next exchange."""
        with self._lock:
            self._done.append(Done(item, self._begun - self._taken, time.monotonic() - self._taken))

    @property
    def unrecorded(self) -> int:
        """Items that are done and not yet so in the queue."""
        return len(self._done)

    @property
    def age_s(self) -> float:
        """Seconds since items were taken that the worker has not begun, or that the queue does not know as
        done yet; 0 if there is none."""
        return time.monotonic() - self._taken if self._waiting or self._done else 0.0

    def give_back(self) -> None:
        """Let other workers have the items that are not begun yet, and tell the queue which ones are done.

        Raises:
            StoreError: as for `take`.
        """
        with self._lock:
            while self._waiting:
                self._store.end_item(self._waiting[0], TryOutcome.RELEASED)
                self._waiting.popleft()
            if self._done:
                self._exchange(0)

    def _next_number(self) -> int:
        """At most four times as many as last time; by chance fewer, or all workers would ask at once."""
        if not self._done:
            return 1
        mean_s = sum(end.ended_s - end.begun_s for end in self._done) / len(self._done)
        fit = BATCH_S * random.uniform(0.5, 1.0) / max(mean_s, 1e-9)
        return max(1, min(4 * len(self._done), MOST_ITEMS, int(fit)))

    def _exchange(self, most: int) -> None:
        accepted, items = self._store.exchange_items(
            self._done, self._campaign, self.worker, self._lease_s, most
        )
        if items:  # else one may be in progress that was taken before
            self._taken = time.monotonic()
        self._done = []
        self.accepted += len(accepted)
        self._waiting.extend(items)

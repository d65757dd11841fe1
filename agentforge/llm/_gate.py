"""How many calls an endpoint gets at once: as many as it takes without complaint."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """A concurrency limit that halves when the endpoint is rate-limited and grows back by successes.

    Thread-safe.

    Args:
        most: calls at once while nothing complains.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self._running = 0
        self._good = 0
        self._changed = threading.Condition()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a place, and hold it inside."""
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def rate_limited(self) -> None:
        """The endpoint said that there were too many calls."""
        with self._changed:
            self.limit = max(1, self.limit // 2)
            self._good = 0

    def succeeded(self) -> None:
        """A call went well; one more place after as many of them as there are places."""
        with self._changed:
            self._good += 1
            if self._good >= self.limit and self.limit < self.most:
                self.limit += 1
                self._good = 0
                self._changed.notify_all()


_gates: dict[str, Gate] = {}
_lock = threading.Lock()


def gate_for(endpoint: str, most: int) -> Gate:
    """The one gate of an endpoint in this process; its size is that of the first who asked."""
    with _lock:
        return _gates.setdefault(endpoint, Gate(most))

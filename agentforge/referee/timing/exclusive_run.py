"""Mutual exclusion of measured workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..workers.worker import Worker


class ExclusiveRun:
    """Mutual exclusion of workers: one may run, the others' process groups are stopped.

    Idle OpenMP threads spin for a while after their last call and would disturb the next worker.
    """

    def __init__(self) -> None:
        self._holder: Worker | None = None

    def take(self, worker: Worker) -> None:
        """Stop the worker that ran last: `worker` will be next."""
        if self._holder is not worker:
            if self._holder is not None:
                self._holder.settle()
            self._holder = worker


@contextmanager
def one_thread() -> Iterator[None]:
    """This process at one thread, so that its own pool does not spin beside who is timed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

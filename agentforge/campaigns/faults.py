"""Whether an item, its worker's machine or the moment is at fault if a try fails."""

from __future__ import annotations

from agentforge.schema import CampaignItem, TryOutcome
from agentforge.store import Store
from agentforge.store.campaigns import LOST_TRIES

MOST_FAILURES = 5
"""Failures in a row, of different problems, after which a worker doubts its machine."""


class Faults:
    """What one worker makes of tries that fail, beside the tries of other workers.

    Args:
        worker: its name.
    """

    def __init__(self, store: Store, worker: str) -> None:
        self._store, self._host = store, worker.rpartition(":")[0]
        self._first: CampaignItem | None = None
        self._failed: list[tuple[CampaignItem, str]] = []
        self._warned = False

    def begin(self, item: CampaignItem) -> None:
        """The worker has a new item."""
        self._first = self._first or item

    def refused(self, item: CampaignItem) -> TryOutcome:
        """The end of a try that finds fault with the machine.

        It is the item's fault if a machine that refused it before has done others since.
        """
        tries = self._store.campaign_tries(item.campaign)
        done = [(t.host, t.ended or 0.0) for t in tries if t.outcome is TryOutcome.DONE]
        refused = [t for t in tries if t.item == item.id and t.outcome is TryOutcome.REFUSED]
        blamed = any(host == t.host and ended > (t.ended or 0.0) for t in refused for host, ended in done)
        return TryOutcome.FAILED if blamed else TryOutcome.REFUSED

    def postponed(self, item: CampaignItem, final: TryOutcome) -> TryOutcome:
        """The end of a try that may succeed later, or elsewhere: `final` the second time in a row."""
        own = [t.outcome for t in self._store.campaign_tries(item.campaign) if t.item == item.id]
        ended = [outcome for outcome in own if outcome not in (None, TryOutcome.RELEASED)]
        return final if ended[-1:] == [TryOutcome.POSTPONED] else TryOutcome.POSTPONED

    def ended(self, item: CampaignItem, outcome: TryOutcome) -> int:
        """Note the end of a try; returns how many items now wait again, because the machine is doubted.

        A machine is doubted once: failures in workers that begin after that count. Workloads of one
        definition, and arms on one problem, fail together.
        """
        if outcome is TryOutcome.DONE:
            self._failed.clear()
        if not _is_failure(item, outcome):
            return 0
        problem = self._store.campaign_problem(item.campaign, item.problem)
        self._failed.append((item, problem.definition or problem.id))
        if len({name for _, name in self._failed}) < MOST_FAILURES or self._was_doubted(item.campaign):
            return 0
        return self._store.put_back_items([failed for failed, _ in self._failed])

    def _was_doubted(self, campaign: str) -> bool:
        """Whether a worker of this machine doubted it before this worker began."""
        if not self._warned and self._first is not None:
            tries, first = self._store.campaign_tries(campaign), (self._first.id, self._first.tries)
            begun = next(t.begun for t in tries if (t.item, t.number) == first)
            self._warned = any(
                t.outcome is TryOutcome.DOUBTED and t.host == self._host and (t.ended or 0.0) < begun
                for t in tries
            )
        return self._warned


def _is_failure(item: CampaignItem, outcome: TryOutcome) -> bool:
    """Whether the item is over without a result."""
    lost = outcome is TryOutcome.LOST and item.lost + 1 >= LOST_TRIES
    return lost or outcome in (TryOutcome.FAILED, TryOutcome.OUT_OF_TIME)

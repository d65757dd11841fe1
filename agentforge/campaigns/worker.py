"""A worker: takes items from the queue and carries each out in a child process, until none is left."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from agentforge.config import load_settings
from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.ladder import find_device
from agentforge.runs.judging_code import judging_code
from agentforge.schema import (
    AgentForgeError,
    BusyError,
    CampaignItem,
    CampaignState,
    HarnessError,
    MachineError,
    MemoryShortageError,
    MissingPackageError,
    OutageError,
    ProviderError,
    StoreError,
    TryOutcome,
    UnreachableError,
    UnsupportedTargetError,
    UsageError,
)
from agentforge.store import Store
from agentforge.store.campaigns import worker_name

from .claims import Claims
from .faults import Faults
from .start import check_served, check_version

LEASE_S = 60.0
"""Seconds without a heartbeat after which a worker is taken for dead."""
BEAT_S = 10.0
"""Seconds between heartbeats."""
POLL_S = 2.0
"""Seconds between looks at a queue whose last items other workers have."""
AWAY_S = 30.0
"""Seconds without the database after which a worker takes no items of others until its next heartbeat."""
BUSY_S = 10.0
"""Seconds before an item is given back whose run another process works on, or for which memory is short."""
PATIENCE_S = 300.0
"""Seconds for which a worker waits for a database that is away."""
OUTAGE_S = 60.0
"""Seconds for which a worker rests after it gave an item back because a provider or the database was away."""
OUTAGES = 60
"""A worker ends if it gives back this number of items in a row for such a reason."""
LEAST_DISK = 256 << 20
"""Free bytes below which compilers fail for want of space: that would count against the candidates."""

_ITEM = "agentforge.campaigns.item:run_item"

T = TypeVar("T")


class _LeaseLost(AgentForgeError):
    """The queue gave the item to another worker."""


class _Heartbeat:
    """Renews the lease of a worker's item in a thread, with the last line that the item's process sent.

    It gives back items that wait too long behind it, and takes those of workers that died.
    """

    def __init__(self, store: Store, campaign: str, claims: Claims) -> None:
        self._store, self._campaign, self._claims = store, campaign, claims
        self._item: CampaignItem | None = None
        self._lost: CampaignItem | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self.words = ""

    def begin(self, item: CampaignItem) -> None:
        """The worker has a new item."""
        self._item, self.words = item, "started"

    def end(self) -> None:
        """The worker has no item."""
        self._item = None

    def hear(self, text: str) -> None:
        """Keep a line of the item's process.

        Raises:
            _LeaseLost: the process is to be ended.
        """
        self.words = text
        if self._lost is self._item:
            raise _LeaseLost

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def _beat(self) -> None:
        met = time.time()  # the monotonic clock stops while a laptop sleeps
        while not self._stop.wait(BEAT_S):
            # The lease outlives a short absence of the database; the campaign may be removed between items.
            with suppress(StoreError, UsageError):
                item = self._item
                if item is None:
                    self._store.get_campaign(self._campaign)  # raises if the database is away
                elif not self._store.beat_item(item, LEASE_S, self.words):
                    self._lost = item
                if self._claims.age_s > BEAT_S:
                    self._claims.give_back()
                last, met = met, time.time()
                if met - last < AWAY_S:  # else other workers renew their leases first
                    self._store.reap_items(self._campaign, self._claims.worker)


class Worker:
    """Works on a campaign in the calling thread.

    Args:
        store: the database that has the campaign.
        campaign: its name.
        overrides: settings of this machine, as on the command line; they do not replace the campaign's.
        tell: receives one line for each item that ended, and one if other code began the campaign.

    Raises:
        UsageError: there is no such campaign, another version of AgentForge started it, or it was imported
            from a file that does not say who serves a model.
    """

    def __init__(
        self, store: Store, campaign: str, *, overrides: Sequence[str] = (), tell: Callable[[str], None]
    ) -> None:
        self._store, self._campaign, self._tell = store, store.get_campaign(campaign), tell
        self._overrides = list(overrides)
        self._settings = load_settings(overrides)
        self._outages = 0
        name = worker_name(os.getpid())
        self._claims = Claims(store, campaign, name, LEASE_S)
        self._faults = Faults(store, name)
        check_version(self._campaign)
        check_served(self._campaign, (i.arm for i in store.campaign_items(campaign) if not i.state.over))
        if self._campaign.code not in ("", judging_code()):
            tell(
                f"the code that judges here ({judging_code()}) is not that of the campaign's start "
                f"({self._campaign.code}): the report says how many items each code judged"
            )

    def work(self) -> None:
        """Carry out items until none is left or the campaign is paused.

        Raises:
            MachineError: this machine lacks something, or several items failed in a row, or a provider of
                language models refuses its key or did not answer for too long; the items that showed it
                wait behind the others.
            StoreError: the database was away for too long, or cannot be written.
            KeyboardInterrupt: the item in progress was given back.
        """
        name = self._campaign.name
        check_disk(self._settings.home)
        self._check_machine()
        try:
            with _Heartbeat(self._store, name, self._claims) as heartbeat:
                self._work(name, heartbeat)
        finally:
            with suppress(StoreError):  # else the leases run out
                self._claims.give_back()

    def _work(self, name: str, heartbeat: _Heartbeat) -> None:
        while True:
            item = self._patiently(self._claims.take)
            while item is not None:
                item = self._carry_out(item, heartbeat)
            progress = self._patiently(lambda: self._store.campaign_progress(name))
            if self._patiently(lambda: self._store.get_campaign(name)).state is CampaignState.PAUSED:
                command = f"agentforge campaign resume {name}{self._store.options}"
                self._tell(f"campaign {name} is paused; continue it with: {command}")
                return
            if progress.finished:
                return
            time.sleep(POLL_S * random.uniform(0.5, 1.5))  # or all workers would ask at once

    def _carry_out(self, item: CampaignItem, heartbeat: _Heartbeat) -> CampaignItem | None:
        """The item's try; returns the next item, if one waits.

        Raises:
            MachineError: this machine cannot carry it out, or too many failed in a row.
        """
        outcome, words, started = TryOutcome.RELEASED, "", time.monotonic()
        unanswered: ProviderError | UnreachableError | None = None
        heartbeat.begin(item)
        self._faults.begin(item)
        try:
            ended = self._try(item, heartbeat)
            try:
                check_disk(self._settings.home)
            except MachineError:  # whatever it found on a full disk, it is tried again from the beginning
                self._patiently(lambda: self._store.detach_run(item))
                raise
            if ended[0] in (TryOutcome.FAILED, TryOutcome.OUT_OF_TIME):
                self._check_machine()  # a driver or key that is gone would fail every other item too
            outcome, words = ended
        except (ProviderError, UnreachableError) as error:
            words, unanswered = str(error), error
        except _LeaseLost:
            self._tell(f"{item.problem} ({item.arm}) was given to another worker")
            return self._patiently(self._claims.take)
        finally:
            heartbeat.end()
            if outcome is TryOutcome.RELEASED:
                self._patiently(lambda: self._store.end_item(item, outcome, words))
        if unanswered is not None:
            self._wait_out(item, unanswered)
            return None
        if outcome is TryOutcome.DONE:
            self._claims.done(item)
            self._outages = 0
        elif outcome is not TryOutcome.RELEASED:
            self._patiently(lambda: self._store.end_item(item, outcome, words))
        if outcome is TryOutcome.REFUSED:
            raise MachineError(f"{item.problem} ({item.arm}): {words}")
        if count := self._patiently(lambda: self._faults.ended(item, outcome)):
            raise MachineError(
                f"the last {count} items failed on this machine and wait again: correct the machine; if the "
                "items are at fault, start this worker again, and they fail for good; the last one is "
                f"{item.problem} ({item.arm}): {words}"
            )
        following = self._patiently(self._claims.take)
        progress = self._patiently(lambda: self._store.campaign_progress(item.campaign))
        self._tell(
            f"[{progress.over + self._claims.unrecorded}/{progress.items}] {item.problem} ({item.arm}), "
            f"{outcome.value} after {time.monotonic() - started:.0f} s: {words}"
        )
        return following

    def _wait_out(self, item: CampaignItem, error: ProviderError | UnreachableError) -> None:
        """Rest until a provider of language models, or the database, may answer again.

        Raises:
            MachineError: a provider refuses this machine's calls, or there was no answer for too long.
        """
        self._outages += 1
        said = f"{item.problem} ({item.arm}) was given back: {error}"
        if not isinstance(error, OutageError | UnreachableError) or self._outages >= OUTAGES:
            raise MachineError(said) from error
        self._tell(f"{said}; this worker goes on after {OUTAGE_S:.0f} s")
        time.sleep(OUTAGE_S)

    def _check_machine(self) -> None:
        """Refuse to work without what the campaign's agents need, or without its kind of device.

        Raises:
            MachineError: this machine lacks the device, a key, a package or a file that the settings name.
        """
        from agentforge.agents import check_agents
        from agentforge.runs.checks import check_run

        from .start import of_campaign

        try:
            for arm in self._campaign.arms:
                settings = of_campaign(self._campaign, arm, self._settings)
                check_run(settings, None)
                check_agents(settings.search, settings.llm, settings.budget)
        except UsageError as error:
            raise MachineError(str(error)) from error
        self._check_device()

    def _check_device(self) -> None:
        """Refuse to measure on another kind of device than the campaign's first worker.

        Raises:
            MachineError: this machine has no such device, or kernels cannot be judged on it.
        """
        name = self._campaign.name
        try:
            found = find_device(self._campaign.device, self._settings.cache, self._tell)
            if self._campaign.device == "auto":
                self._campaign = self._patiently(lambda: self._store.fix_device(name, found.kind))
                self._tell(f"all items of campaign {name} are measured on this kind: {self._campaign.device}")
                if self._campaign.device != found.kind:  # another worker was first
                    find_device(self._campaign.device, self._settings.cache, self._tell)
        except UsageError as error:
            raise MachineError(
                f"campaign {name} is measured on {self._campaign.device}, and this machine has none: work on "
                f"a machine that has one, or start another campaign with another --device ({error})"
            ) from error

    def _try(self, item: CampaignItem, heartbeat: _Heartbeat) -> tuple[TryOutcome, str]:
        """How the item's try ended, and its headline or the reason.

        Raises:
            ProviderError: a provider of language models does not answer.
            UnreachableError: the database did not answer the item's process.
        """
        # `retry` may have changed the limit.
        self._campaign = self._patiently(lambda: self._store.get_campaign(item.campaign))
        limit_s = self._campaign.limit_s * item.visits
        try:
            return TryOutcome.DONE, self._run(item, heartbeat, limit_s)
        except (_LeaseLost, ProviderError, UnreachableError):
            raise
        except BusyError as error:
            time.sleep(BUSY_S)
            return TryOutcome.RELEASED, str(error)
        except (MachineError, StoreError) as error:
            return self._patiently(lambda: self._faults.refused(item)), str(error)
        except HarnessError as error:
            return TryOutcome.LOST, str(error)
        except ChildFailure as failure:
            if failure.error_type == "OSError":  # a broken disk would fail every other item too
                refused = self._patiently(lambda: self._faults.refused(item))
                return refused, f"{failure}: free some space or repair the disk of this machine"
            said = f"it said last: {heartbeat.words}"
            if failure.kind == "timeout":
                minutes = f"it took more than {limit_s / 60:.3g} minutes (--limit-minutes)"
                return TryOutcome.OUT_OF_TIME, f"{minutes}; {said}"
            return TryOutcome.FAILED if failure.kind == "raised" else TryOutcome.LOST, f"{failure}; {said}"
        except MemoryShortageError as error:
            time.sleep(BUSY_S)
            return self._postponed(item, TryOutcome.UNSUPPORTED), str(error)
        except MissingPackageError as error:
            return self._postponed(item, TryOutcome.FAILED), str(error)
        except UnsupportedTargetError as error:
            return TryOutcome.UNSUPPORTED, str(error)
        except AgentForgeError as error:
            return TryOutcome.FAILED, str(error)

    def _postponed(self, item: CampaignItem, final: TryOutcome) -> TryOutcome:
        return self._patiently(lambda: self._faults.postponed(item, final))

    def _patiently(self, call: Callable[[], T]) -> T:
        return patiently(call, self._tell)

    def _run(self, item: CampaignItem, heartbeat: _Heartbeat, limit_s: float) -> str:
        """The headline of the item's run. It downloads no model."""
        env = {"HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1")}
        payload = {"item": item.model_dump(mode="json"), "overrides": self._overrides, "limit_s": limit_s}
        found = run_child(
            _ITEM, payload, timeout_s=limit_s, memory_bytes=0, progress=heartbeat.hear, serves=True, env=env
        )
        return str(found["headline"])


def check_disk(home: Path) -> None:
    """Refuse to work on a full disk.

    Raises:
        MachineError: the home's or the temporary folder's disk has hardly any space left.
    """
    for folder in (home, Path(tempfile.gettempdir())):
        place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        free = shutil.disk_usage(place).free
        if free < LEAST_DISK:
            raise MachineError(
                f"the disk of {folder} is full ({free >> 20} MiB are free): free some space, then start this "
                "worker again; nothing is lost"
            )


def patiently(call: Callable[[], T], tell: Callable[[str], None] | None = None) -> T:
    """The call's result; while the database is away it is repeated, for at most `PATIENCE_S`.

    Args:
        tell: receives one line at the beginning of the wait.
    """
    until, told = time.monotonic() + PATIENCE_S, False
    while True:
        try:
            return call()
        except UnreachableError as error:
            if time.monotonic() > until:
                raise
            if tell is not None and not told:
                tell(f"{error}; this worker waits for it, at most {PATIENCE_S / 60:.0f} minutes")
                told = True
            time.sleep(POLL_S)

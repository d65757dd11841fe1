"""Campaigns: a suite's problems, the agents that work on them, and the state of each piece of work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from pydantic import Field

from ._base import FrozenModel, NonEmptyString, content_hash
from .records import RunSettings
from .search import Budget


class SuiteProblem(FrozenModel):
    """One problem of a suite. It has the text of its file, so that a worker on any machine can load it."""

    id: NonEmptyString
    """Unique in the suite, for example `level1/19_ReLU`."""
    group: str = ""
    """Level or category: reports have a line for each."""
    target: NonEmptyString
    """What `agentforge optimize` takes: `file.py`, `file.py:ClassName` or another frontend's form."""
    file: str = ""
    """Path within `target` of the file that `source` was read from; empty if there is none."""
    source: str = ""
    """Text of the file. If a worker's machine has another text there, or none, the worker writes a copy."""
    files: dict[str, str] = {}
    """Places on this machine, within `source`, of files that it loads, by their paths in the suite."""
    inputs: tuple[str, ...] = ()
    """As `--input`; the following ones are as the options of the same name."""
    input_shapes: tuple[str, ...] = ()
    input_dtypes: tuple[str, ...] = ()
    init_args: str = ""
    dtype: str = "float32"
    definition: str = ""
    """Name of the definition that this is one workload of; empty if there is only this one."""
    native: dict[str, Any] = {}
    """What the suite's format says beyond us: tolerance, ranking, sizes. A problem of several workloads has a
    list `workloads` with what differs."""
    unsupported: str = ""
    """Why it cannot run here; empty if it can."""

    @property
    def workloads(self) -> Sequence[Mapping[str, Any]]:
        """What differs between its workloads, if it has several; empty if it has one."""
        return self.native.get("workloads", ())

    @cached_property
    def hash(self) -> str:
        """Of the content: the place of a file whose text is known does not matter, nor those of `files`."""
        unsaid = {name for name in ("definition", "native", "unsupported") if not getattr(self, name)}
        fields = self.model_dump(mode="json", exclude=unsaid | {"files", *(["file"] if self.source else [])})
        if self.source:
            fields["target"] = self.target.replace(self.file, "", 1)
        for path, place in self.files.items():
            fields["source"] = fields["source"].replace(repr(place), repr(path))
        return content_hash(fields)


class Arm(FrozenModel):
    """One way to work on every problem of a campaign."""

    name: NonEmptyString
    agent: NonEmptyString
    """`playbook`, or a language model's specification, for example `anthropic:MODEL`."""

    @property
    def paid(self) -> bool:
        """Whether it calls a language model."""
        return ":" in self.agent


class CampaignState(StrEnum):
    """Whether workers may take items."""

    OPEN = "open"
    PAUSED = "paused"


class Campaign(FrozenModel):
    """A resumable batch of runs: each problem of a suite with each arm. Workers share it in the database."""

    name: NonEmptyString
    suite: NonEmptyString
    """As the user named it, for example `kernelbench:/data/KernelBench`."""
    problems: int
    problems_hash: str
    """Of all problems in their order."""
    arms: tuple[Arm, ...]
    budget: Budget
    """Of each run; a run without a language model has no limit of dollars."""
    limit_s: float = Field(gt=0)
    """Wall seconds after which a worker gives an item up."""
    device: str = "auto"
    """Kind of device that all items are measured on; `auto` until the first worker has one."""
    settings: RunSettings = RunSettings()
    """Settings that the user gave at the start; they come before those of a worker's machine."""
    version: str
    """Of AgentForge: figures of two versions are not mixed."""
    code: str = ""
    """Hash of the code that judges on the machine that began it; empty in old campaigns. A worker says once
    if its own is another."""
    state: CampaignState = CampaignState.OPEN
    created: datetime

    @staticmethod
    def hash_of(problems: Iterable[SuiteProblem]) -> str:
        """The `problems_hash` of problems in their order."""
        return content_hash([(problem.id, problem.hash) for problem in problems])


class ItemState(StrEnum):
    """How far one item is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """There is no result, for a reason that another try would meet again."""
    QUARANTINED = "quarantined"
    """Its workers died so often that no worker takes it any more."""
    UNSUPPORTED = "unsupported"
    """The suite, or a worker that tried, says why it cannot run here; no worker takes it."""

    @property
    def over(self) -> bool:
        """Whether no worker takes it."""
        return self not in (ItemState.WAITING, ItemState.RUNNING)


class TryOutcome(StrEnum):
    """How one worker's try of an item ended."""

    DONE = "done"
    FAILED = "failed"
    OUT_OF_TIME = "out of time"
    """It took longer than the limit of an item. The item fails, and a retry continues its run."""
    UNSUPPORTED = "unsupported"
    """It cannot run on the worker's machine."""
    LOST = "lost"
    """The worker or its process died; it counts towards quarantine."""
    RELEASED = "released"
    """The worker gave the item back, for example at Ctrl-C; another try continues the run."""
    POSTPONED = "postponed"
    """Memory was short, or a package was missing: the item waits behind the others, once."""
    DOUBTED = "doubted"
    """It failed, and so did the items beside it in this worker: the item waits behind the others."""
    REFUSED = "refused"
    """The worker's machine lacks something; the item waits behind the others. It fails at a later refusal if
    a machine that refused it has done other items since."""


class CampaignItem(FrozenModel):
    """One problem with one arm."""

    id: int
    campaign: str
    problem: str
    arm: str
    state: ItemState = ItemState.WAITING
    worker: str = ""
    """`host:pid.start` of the worker that has it, or had it last; the start is that of its process."""
    tries: int = 0
    visits: int = 1
    """Times that its run may spend the campaign's budget."""
    lost: int = 0
    """Tries whose worker died."""
    run: str | None = None
    """The run in progress, or that the next try continues."""
    result_run: str | None = None
    """The run that has the result; it stays when a later try begins another run."""
    reason: str = ""
    """Why it failed, or the last words of the worker that died."""
    seconds: float = 0.0
    """Wall time of all ended tries."""

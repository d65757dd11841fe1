"""A run whose attempts come from outside: a coding agent or a person proposes, the referee judges.

`runs show` shows it, and `runs resume` continues it with built-in agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentforge.agents import create_coder, create_judge, create_planner
from agentforge.analysis import Report, build_report
from agentforge.config import Settings
from agentforge.devices import DeviceSpec, with_threads
from agentforge.frontends import FrontendOptions
from agentforge.knowledge import KnowledgeBase
from agentforge.ladder import find_device
from agentforge.loop import (
    Agents,
    OnEvent,
    Proposal,
    SearchResult,
    Supervisor,
    collect,
    make_supervisor,
    remeasure_all,
    submit,
)
from agentforge.schema import (
    Attempt,
    Bottleneck,
    Budget,
    Profile,
    Run,
    RunKind,
    RunStarted,
    RunStatus,
    UsageError,
)
from agentforge.store import Store

from .checks import check_out, check_run
from .execution import create_run, end, failures_told, opened
from .kinds.model import ModelStart
from .pipeline import RunPipeline
from .run_settings import for_device

if TYPE_CHECKING:
    from agentforge.referee import Referee

AGENT = "playbook"
"""The agent that judges, and that a resume would use unless it names another."""


class Workbench:
    """Runs that are driven from outside, over one database and one referee. One call at a time."""

    def __init__(self, settings: Settings, device: str = "auto") -> None:
        check_run(settings, None)
        found = find_device(device, settings.cache)
        self.device: DeviceSpec = with_threads(found, settings.referee.threads)
        self.settings = for_device(settings, self.device)
        self.store = Store(settings.url)
        self.knowledge = KnowledgeBase(self.store, settings.playbooks)
        self._referee: Referee | None = None

    def close(self) -> None:
        """End the referee's workers and close the database."""
        if self._referee is not None:
            self._referee.close()
        self._referee = None
        self.store.close()

    @property
    def referee(self) -> Referee:
        """The referee; its workers start with the first question."""
        if self._referee is None:
            from agentforge.referee import Referee  # it needs torch, and most tools do not

            settings = self.settings
            self._referee = Referee(settings.referee, device=self.device, cache=settings.cache)
        return self._referee

    def profile(self, spec: str, options: FrontendOptions, on_event: OnEvent | None = None) -> Run:
        """Begin a run with the profile of a target.

        Raises:
            TargetError, UsageError: the target cannot be used.
        """
        unlimited = self.settings.model_copy(update={"budget": Budget()})
        found = ModelStart(spec, options).load(unlimited, self.device)
        run = create_run(self.store, found, self.device, kind=RunKind.EXTERNAL)
        with self._pipeline(run.id, on_event) as pipeline:
            pipeline.run_log.event(RunStarted(target=run.name, device=run.device))
            with failures_told(pipeline):
                pipeline.profile()
            pipeline.run_log.set_status(RunStatus.SEARCHING)
        return self.store.get_run(run.id)

    def profile_of(self, run: str) -> tuple[Run, Profile]:
        """A run, by its identifier or the beginning of it, and its profile.

        Raises:
            UsageError: no such run, or it has no profile yet.
        """
        found = self.store.get_run(run)
        profile = self.store.get_profile(found.id)
        if profile is None:
            raise UsageError(f"run {found.id} has no profile: profile the model again")
        return found, profile

    def bottleneck(self, run: str, definition: str) -> tuple[Run, Bottleneck]:
        """A bottleneck of a run, by its definition's hash or name, or a part of one of them.

        Raises:
            UsageError: none, or several, fit.
        """
        found, profile = self.profile_of(run)
        every = [(b.definition.hash, b.definition.name, b) for b in profile.bottlenecks]
        exact = [b for digest, name, b in every if definition in (digest, name)]
        begins = [
            b for digest, name, b in every if definition and (digest + " " + name).find(definition) >= 0
        ]
        fitting = exact or begins
        if len(fitting) != 1:
            names = ", ".join(b.definition.name for b in profile.bottlenecks) or "none"
            what = "no" if not fitting else "more than one"
            raise UsageError(f"{what} bottleneck of run {found.id} is {definition!r}; there are: {names}")
        return found, fitting[0]

    def evaluate(self, run: str, proposal: Proposal, on_event: OnEvent | None = None) -> Attempt:
        """Judge a proposal as an attempt of the run.

        A solution that looks faster than the incumbent is verified in full.

        Raises:
            UsageError: another process works on the run.
            MachineError: this machine lacks something.
        """
        with self._supervisor(run, on_event) as (_, supervisor):
            return submit(supervisor, proposal)

    def apply(self, run: str, out: Path | None, on_event: OnEvent | None = None) -> Report:
        """Put the fastest verified solutions into the model and prove it end to end.

        Raises:
            UsageError: the folder contains something else, or cannot be written.
        """
        check_out(out)
        with self._supervisor(run, on_event, out=out) as (pipeline, supervisor):
            with failures_told(pipeline):
                remeasure_all(supervisor)
                wins, attempts = collect(supervisor), len(pipeline.run_log.attempts())
                result = SearchResult(supervisor.profile, wins, attempts, "applied from outside", False)
                pipeline.stitch(result, self.referee)
            end(pipeline, RunStatus.FINISHED)
            return build_report(self.store, pipeline.run_log.run.id)

    @contextmanager
    def _supervisor(
        self, run: str, on_event: OnEvent | None, out: Path | None = None
    ) -> Iterator[tuple[RunPipeline, Supervisor]]:
        _, profile = self.profile_of(run)
        with self._pipeline(run, on_event, out=out) as pipeline:
            session = pipeline.session(pipeline.known_roofline(), self.referee)
            yield pipeline, make_supervisor(profile, pipeline.run_log, pipeline.meter, session)

    @contextmanager
    def _pipeline(self, run: str, on_event: OnEvent | None, out: Path | None = None) -> Iterator[RunPipeline]:
        """The run under its lock, with agents that only judge."""
        agents = Agents(create_planner(AGENT), create_coder(AGENT), create_judge(AGENT))
        found = self.store.get_run(run)
        with opened(
            self.store, found, self.settings, self.device, on_event, out=out, agents=agents
        ) as pipeline:
            yield pipeline

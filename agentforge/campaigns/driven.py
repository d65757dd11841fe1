"""A run that someone else drives: a coding agent or a person proposes, the referee judges, the run remembers.

The same run as one of `optimize`: `runs show` shows it, and `runs resume` goes on with it by agents of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentforge.agents import create_coder, create_judge, create_planner
from agentforge.analysis import Report, build_report
from agentforge.config import Settings
from agentforge.devices import DeviceSpec, detect, measure_roofline
from agentforge.frontends import FrontendOptions, load_target
from agentforge.knowledge import KnowledgeBase
from agentforge.loop import (
    Agents,
    Journal,
    Meter,
    OnEvent,
    Proposal,
    SearchResult,
    Supervisor,
    collect,
    hand_in,
    make_supervisor,
)
from agentforge.resources import resource
from agentforge.schema import Attempt, Bottleneck, Budget, Profile, Run, RunStatus, UsageError
from agentforge.search import policies
from agentforge.store import Store

from .optimize import begun, create_run
from .phases import Phases

if TYPE_CHECKING:
    from agentforge.harness import Referee

AGENT = "playbook"
"""Who judges, and would go on on a resume, unless another is named then."""


class Workbench:
    """Runs that are driven from outside, over one database and one referee. One call at a time.

    Args:
        settings: of the referee, the database and the search; no call can change them.
        device: kind of device, or `auto`.
    """

    def __init__(self, settings: Settings, device: str = "auto") -> None:
        self.settings = settings
        self.device: DeviceSpec = detect(device)
        self.store = Store(settings.url)
        self.knowledge = KnowledgeBase(
            self.store, (resource("knowledge_base", "playbook"), settings.home / "playbook")
        )
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
            from agentforge.harness import Referee  # it needs torch, and most tools do not

            settings = self.settings
            self._referee = Referee(settings.referee, device=self.device, cache=settings.cache)
        return self._referee

    def profile(self, spec: str, options: FrontendOptions, on_event: OnEvent | None = None) -> Run:
        """Begin a run with the profile of a target.

        Raises:
            TargetError, UsageError: the target cannot be used.
        """
        target = load_target(spec, options)
        unlimited = self.settings.model_copy(update={"budget": Budget()})
        run = create_run(self.store, target, unlimited, self.device)
        with self._phases(run.id, on_event) as phases:
            phases.journal.event("run.started", run=run.id, target=target.name, device=run.device, out=None,
                                 settings=begun(self.settings))  # fmt: skip
            phases.profile()
            phases.journal.set_status(RunStatus.SEARCHING)
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
        """A bottleneck of a run, by its definition's hash, name, or the beginning of one of them.

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
        """Judge a proposal as an attempt of the run; what looks faster than what holds is verified in full.

        Raises:
            UsageError: another process works on the run.
            MachineError: this machine lacks something.
        """
        with self._supervisor(run, on_event) as (_, supervisor):
            return hand_in(supervisor, proposal)

    def apply(self, run: str, out: Path | None, on_event: OnEvent | None = None) -> Report:
        """Put the fastest verified solutions into the model and prove it end to end.

        Raises:
            UsageError: the folder holds something else.
        """
        _, profile = self.profile_of(run)
        with self._supervisor(run, on_event, out=out) as (phases, supervisor):
            wins = collect(profile, supervisor)
            result = SearchResult(wins, len(phases.journal.attempts()), "applied from outside", False)
            phases.stitch(profile, result, self.referee)
            phases.journal.set_status(RunStatus.FINISHED)
            phases.journal.event("run.finished", run=phases.journal.run.id, error="")
            return build_report(self.store, phases.journal.run.id)

    @contextmanager
    def _supervisor(
        self, run: str, on_event: OnEvent | None, out: Path | None = None
    ) -> Iterator[tuple[Phases, Supervisor]]:
        _, profile = self.profile_of(run)
        roofline = measure_roofline(self.device, self.settings.cache)
        with self._phases(run, on_event, out=out) as phases:
            session = phases.session(roofline, self.referee)
            yield phases, make_supervisor(profile, phases.journal, phases.meter, session)

    @contextmanager
    def _phases(self, run: str, on_event: OnEvent | None, out: Path | None = None) -> Iterator[Phases]:
        """The run under its lock."""
        found = self.store.get_run(run)
        if found.device != self.device.name:
            raise UsageError(f"run {found.id} was begun on {found.device}, and this is {self.device.name}")
        with self.store.lock_run(found.id):
            phases = Phases(
                target=self.store.get_target(found.target),
                journal=Journal(self.store, found, on_event),
                meter=Meter(found.budget, seconds_used=found.seconds_used),
                settings=self.settings,
                device=self.device,
                agents=Agents(create_planner(AGENT), create_coder(AGENT), create_judge(AGENT)),
                policy=policies.create(self.settings.search.policy),
                out=out,
            )
            phases.folder.mkdir(parents=True, exist_ok=True)
            yield phases

"""The phases of a run. Each looks first whether it was done, so that a run goes on where it stopped."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentforge.agents import Hardware
from agentforge.config import Settings
from agentforge.devices import DeviceSpec, Roofline, cached_roofline, measure_roofline
from agentforge.harness import Evaluator, Presenter
from agentforge.knowledge import KnowledgeBase, context_for
from agentforge.loop import Agents, Journal, Meter, SearchResult, Session, run_search
from agentforge.profiling import profile_target
from agentforge.profiling.achieved import work_by_definition
from agentforge.profiling.instrumented import Instrumented
from agentforge.profiling.light import at_ceilings
from agentforge.profiling.nsight import NsightObserver
from agentforge.resources import resource
from agentforge.schema import Bottleneck, Context, Profile, RunStatus, Target
from agentforge.search import SearchPolicy

from .meanwhile import ReadyReferee
from .recorded import Recorded

if TYPE_CHECKING:
    from agentforge.stitch import Artifact

CEILINGS = "this machine's ceilings, measured until two measurements agree"


@dataclass(frozen=True)
class Phases:
    """Everything that the phases of one run work with."""

    target: Target
    journal: Journal
    meter: Meter
    settings: Settings
    device: DeviceSpec
    agents: Agents
    policy: SearchPolicy
    out: Path | None

    @property
    def folder(self) -> Path:
        """Of the run: checkpoints, and the artifact unless it goes elsewhere."""
        return self.settings.runs / self.journal.run.id

    def run(self) -> None:
        """Profile, search, stitch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tell(CEILINGS)
        profile = self.profile()
        cache = self.settings.cache
        roofline = cached_roofline(self.device, cache) or measure_roofline(self.device, cache)
        with closing(self._referee(profile)) as referee:
            result = self.search(profile, roofline, referee)
            self.stitch(profile, result, referee)

    def profile(self) -> Profile:
        """The run's profile, made once, at ceilings that were measured before it and after it."""
        journal = self.journal
        profile = journal.store.get_profile(journal.run.id)
        if profile is None:
            journal.set_status(RunStatus.PROFILING, error="")
            journal.event("profile.started")
            profile = self.make_profile(measure_roofline(self.device, self.settings.cache))
            # Measured once more where nothing confirmed it yet: a host that was slow then is not slow now.
            profile = at_ceilings(profile, self.device, measure_roofline(self.device, self.settings.cache))
            journal.store.save_profile(journal.run.id, profile)
            journal.spend(self.meter.seconds)
        journal.event(
            "profile.done",
            total_s=profile.total_s,
            bottlenecks=_rows(profile),
            notes=list(profile.notes),
        )
        return profile

    def make_profile(self, roofline: Roofline) -> Profile:
        """Measure where the target's time goes."""
        return profile_target(self.target, self.device, roofline, progress=self._tell)

    def _referee(self, profile: Profile) -> ReadyReferee:
        """The referee, which compiles the baselines of what will be measured before it times anything."""
        wanted = [
            b.definition
            for b in profile.bottlenecks
            if b.optimizable and b.share >= self.settings.search.min_share
        ]
        if self.device.kind != "cpu":
            wanted = []  # a compiler cache is warmed by processes on the CPU, for the CPU
        if wanted and self.settings.referee.compile_baseline:
            self._tell(f"compiling {len(wanted) + 1} baselines with torch.compile meanwhile")
        return ReadyReferee(
            self.settings.referee,
            device=self.device,
            cache=self.settings.cache,
            definitions=[self.target.definition, *wanted] if wanted else [],
        )

    def search(self, profile: Profile, roofline: Roofline, referee: Evaluator) -> SearchResult:
        """Search within the budget."""
        self.journal.set_status(RunStatus.SEARCHING, error="")
        session = self.session(roofline, referee)
        checkpoint = self.folder / "checkpoint.db"
        return run_search(profile, self.journal, self.meter, session, checkpoint=checkpoint)

    def session(self, roofline: Roofline, referee: Evaluator) -> Session:
        """What the search runs with."""
        return Session(
            agents=self.agents,
            evaluator=self._instrumented(roofline, referee),
            knowledge=KnowledgeBase(self.journal.store, self._playbooks()),
            context_for=partial(_context, device=self.device),
            policy=self.policy,
            settings=self.settings.search,
            device=self.device,
            hardware=hardware(self.device, roofline),
        )

    def _instrumented(self, roofline: Roofline, referee: Evaluator) -> Instrumented:
        """The referee, whose evaluations say what a solution achieved of the roofline."""
        profile = self.journal.store.get_profile(self.journal.run.id)
        work = work_by_definition(profile) if profile else {}
        observer = None
        if self.device.kind != "cpu" and isinstance(referee, Presenter):
            observer = NsightObserver(referee, self._tell)
        again = partial(measure_roofline, self.device, self.settings.cache, doubted=True)
        return Instrumented(referee, self.device, roofline, work, observer, again)

    def _playbooks(self) -> tuple[Path, Path]:
        """Folders of strategy cards: those that ship, and the user's own."""
        return resource("knowledge_base", "playbook"), self.settings.home / "playbook"

    def stitch(self, profile: Profile, result: SearchResult, referee: Evaluator) -> None:
        """Put the wins in and prove them; not again where an earlier session did it with the same ones."""
        from agentforge.stitch import stitch  # it needs torch, and the first plan does not

        journal = self.journal
        chosen = {win.bottleneck.definition.hash: win.solution for win in result.wins}
        hashes = {definition: solution.hash for definition, solution in chosen.items()}
        folder = self.out or self.folder / "artifact"
        done = journal.last("stitch.done")
        if (
            done
            and done.data["chosen"] == hashes
            and done.data["artifact"] == str(folder)
            and folder.exists()
        ):
            return
        journal.set_status(RunStatus.STITCHING, error="")
        journal.event("stitch.started", chosen=hashes)
        artifact = stitch(
            self.target,
            profile,
            chosen,
            folder,
            referee=Recorded(referee, journal),
            device=self.device,
            cache=self.settings.cache,
            evidence={win.bottleneck.definition.hash: win.evaluation for win in result.wins},
            progress=self._tell,
        )
        self._keep(artifact, profile, hashes)

    def _keep(self, artifact: Artifact, profile: Profile, chosen: dict[str, str]) -> None:
        journal, report = self.journal, artifact.report
        runs = {kernel["solution"]: kernel["runs_seen"] for kernel in report["kernels"]}
        packed = set(report["packed"])
        journal.put_solution(artifact.solution)
        evaluation = journal.put_evaluation(artifact.evaluation) if artifact.evaluation else None
        journal.event(
            "stitch.done",
            chosen=chosen,
            artifact=str(artifact.folder),
            mode=artifact.mode,
            summary=artifact.summary,
            proven=artifact.proven,
            solution=artifact.solution.hash,
            evaluation=evaluation,
            calls={d: runs[solution] for d, solution in chosen.items() if solution in runs},
            packed=[
                b.definition.hash for b in profile.bottlenecks if packed & {s.name for s in b.call_sites}
            ],
            notes=[f"{site} stays: {why}" for site, why in report["sites_left_as_they_were"].items()],
        )
        journal.set_status(RunStatus.STITCHING, artifact=str(artifact.folder))

    def _tell(self, text: str) -> None:
        self.journal.event("progress", text=text)


def _context(bottleneck: Bottleneck, device: DeviceSpec) -> Context:
    return context_for(bottleneck, device)


def hardware(device: DeviceSpec, roofline: Roofline) -> Hardware:
    """What the agents may know of the machine."""
    return Hardware(
        device=device.name,
        architecture=device.architecture,
        threads=device.threads,
        bandwidth=roofline.bandwidth,
        peak_flops=roofline.peak_flops.get("float32", max(roofline.peak_flops.values(), default=0.0)),
        cache_bytes=device.cache_bytes,
    )


def _rows(profile: Profile) -> list[dict[str, object]]:
    """What views show of the bottlenecks."""
    return [
        {
            "hash": b.definition.hash,
            "name": b.definition.name,
            "op_type": b.definition.op_type,
            "share": b.share,
            "time_s": b.time_s,
            "sol_s": b.sol_s,
            "gain_s": b.gain_s,
            "bound": b.bound,
            "optimizable": b.optimizable,
        }
        for b in profile.bottlenecks
    ]

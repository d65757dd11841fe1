"""The phases of a run. Each looks first whether it was done, so that a run goes on where it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agentforge.agents import Hardware
from agentforge.config import Settings
from agentforge.devices import DeviceSpec, Roofline, measure_roofline
from agentforge.harness import Referee
from agentforge.knowledge import KnowledgeBase, context_for
from agentforge.loop import Agents, Journal, Meter, SearchResult, Session, run_search
from agentforge.profiling import profile_target
from agentforge.schema import Bottleneck, Context, Profile, RunStatus, Target
from agentforge.search import SearchPolicy


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
        """Of the run: checkpoints and the artifact."""
        return self.settings.runs / self.journal.run.id

    def run(self) -> None:
        """Profile, search, stitch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        roofline = measure_roofline(self.device, self.settings.cache)
        profile = self.profile(roofline)
        with Referee(self.settings.referee, device=self.device, cache=self.settings.cache) as referee:
            result = self.search(profile, roofline, referee)
            self.stitch(profile, result, referee)

    def profile(self, roofline: Roofline) -> Profile:
        """The run's profile, made once."""
        journal = self.journal
        profile = journal.store.get_profile(journal.run.id)
        if profile is None:
            journal.set_status(RunStatus.PROFILING, error="")
            journal.event("profile.started")
            profile = profile_target(self.target, self.device, roofline)
            journal.store.save_profile(journal.run.id, profile)
            journal.spend(self.meter.seconds)
        journal.event(
            "profile.done", total_s=profile.total_s, bottlenecks=_rows(profile), notes=profile.notes
        )
        return profile

    def search(self, profile: Profile, roofline: Roofline, referee: Referee) -> SearchResult:
        """Search within the budget."""
        self.journal.set_status(RunStatus.SEARCHING, error="")
        session = Session(
            agents=self.agents,
            evaluator=referee,
            knowledge=KnowledgeBase(self.journal.store),
            context_for=partial(_context, device=self.device),
            policy=self.policy,
            settings=self.settings.search,
            device=self.device,
            hardware=hardware(self.device, roofline),
        )
        checkpoint = self.folder / "checkpoint.db"
        return run_search(profile, self.journal, self.meter, session, checkpoint=checkpoint)


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

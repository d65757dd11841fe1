"""The phases of a run. Each first checks whether it was done, so that an interrupted run continues."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentforge.agents import Hardware
from agentforge.analysis.report import first_verdict_s
from agentforge.config import Settings, sqlite_url
from agentforge.devices import DeviceSpec, Roofline, cached_roofline, cores, measure_roofline, vector_bits
from agentforge.knowledge import KnowledgeBase, context_for
from agentforge.llm import Measured, append_line
from agentforge.loop import Agents, BudgetMeter, RunLog, SearchResult, Session, run_search
from agentforge.loop.bottleneck_state import FINISHED
from agentforge.profiling import profile_target
from agentforge.profiling.nsight import NsightObserver
from agentforge.profiling.profiled_evaluator import ProfiledEvaluator
from agentforge.profiling.roofline_metrics import work_by_definition
from agentforge.profiling.speed_of_light import at_ceilings, least_time, speed_of_light, work_of_model
from agentforge.referee import Evaluator, Presenter
from agentforge.schema import (
    ArtifactReport,
    Evaluation,
    Level,
    ModelPlan,
    OriginalMetric,
    Permission,
    Profile,
    ProfileDone,
    ProfileStarted,
    Progress,
    RunSettings,
    RunStatus,
    StitchDone,
    StitchLeft,
    StitchResult,
    StitchStarted,
    Target,
)
from agentforge.search import Allocator, TreePolicy
from agentforge.store import Store

from .evaluators.background import LazyReferee
from .evaluators.cached import CachedEvaluator
from .evaluators.inside_model import InsideModel, only_region
from .evaluators.recording import RecordingEvaluator, ReplayedEvaluator, recorded_profile, replayed_cassette
from .unverified import write_unverified

if TYPE_CHECKING:
    from agentforge.stitch import StitchedArtifact

MEASURING = "this machine's ceilings, measured until two measurements agree"
"""Progress text while the roofline is measured."""


@dataclass(frozen=True)
class RunPipeline:
    """Everything that the phases of one run work with."""

    target: Target
    run_log: RunLog
    meter: BudgetMeter
    settings: Settings
    device: DeviceSpec
    agents: Agents
    policy: TreePolicy
    allocator: Allocator
    out: Path | None
    permission: Permission | None = None
    """Lower precision that the user allowed."""

    @property
    def folder(self) -> Path:
        """Of the run: checkpoints, and the artifact unless it goes elsewhere."""
        return self.settings.runs / self.run_log.run.id

    def roofline(self, *, doubted: bool = False) -> Roofline:
        """The device's ceilings, measured once more (about 5 s) unless two measurements agreed already.

        Args:
            doubted: measure in any case, because something was faster than its ceiling.

        Raises:
            MachineError: the measurement failed.
        """
        return measure_roofline(self.device, self.settings.cache, doubted=doubted)

    def known_roofline(self) -> Roofline:
        """The best so far; measured only if nothing is known."""
        return cached_roofline(self.device, self.settings.cache) or self.roofline()

    @property
    def judged_in_full(self) -> set[str] | None:
        """Bottlenecks with a full verdict. None if a language model writes: its prompts show the time of the
        compiled baseline, which is then measured at once."""
        if ":" in self.settings.search.coder:
            return None
        attempts, evaluation = self.run_log.attempts(), self.run_log.evaluation
        return {a.bottleneck for a in attempts if (e := evaluation(a)) and e.level is Level.FULL}

    def run(self) -> None:
        """Profile, search, stitch."""
        self._try_metric()
        self._tell(MEASURING)
        profile = self.profile()
        lazy = LazyReferee(
            self.settings.referee,
            device=self.device,
            cache=self.settings.cache,
            judged_in_full=self.judged_in_full,
        )
        with closing(lazy):
            referee = self._proving(lazy, profile)
            result = self.search(profile, self.known_roofline(), referee)
            self.stitch(result, referee)

    def _try_metric(self) -> None:
        """Call the user's metric with the original model, so that a broken one is known before the search.

        The value is kept for stitching.

        Raises:
            TargetError: it fails or returns no finite number.
        """
        if self.permission is not None and self.run_log.store.get_profile(self.run_log.run.id) is None:
            from agentforge.stitch.metric import metric_value  # it needs torch

            value = metric_value(self.target, self.permission, progress=self._tell)
            self.run_log.keep(OriginalMetric(value=value))

    def profile(self) -> Profile:
        """The run's profile, made once, at ceilings that were measured before it and after it."""
        from agentforge.referee.workers.device_backend import backend_for  # it needs torch

        run_log = self.run_log
        profile = run_log.store.get_profile(run_log.run.id)
        if profile is None:
            run_log.set_status(RunStatus.PROFILING, error="")
            run_log.event(ProfileStarted())
            if (took_s := self._last_profile_s()) is not None:
                self._tell(f"the last profile of this target took {took_s:.0f} s")
            profile = recorded_profile(self.settings, self.target)
            if profile is None:
                with backend_for(self.device).lock(self.settings.cache):  # runs of other processes time too
                    profile = self.make_profile(self.roofline())
                    # The ceilings are measured again unless confirmed: the host may have been slow at first.
                    profile = at_ceilings(profile, self.device, self.roofline())
            else:
                self._tell("the profile is the cassette's: times in it are those of the recording")
            if self.settings.llm.record is not None:
                append_line(self.settings.llm.record, Measured(profile=profile))
            profile = profile.model_copy(update={"seconds": self.meter.seconds})
            run_log.store.save_profile(run_log.run.id, profile)
            run_log.spend(profile.seconds)
        run_log.event(ProfileDone.of(profile))
        return profile

    def _last_profile_s(self) -> float | None:
        """Seconds that the newest profile of the same target on the same device took; None without one."""
        store, run = self.run_log.store, self.run_log.run
        alike = (r for r in store.list_runs() if (r.target, r.device) == (run.target, run.device))
        profiles = (store.get_profile(r.id) for r in alike)
        return next((p.seconds for p in profiles if p and p.seconds), None)

    def make_profile(self, roofline: Roofline) -> Profile:
        """Measure where the target's time goes."""
        return profile_target(self.target, self.device, roofline, progress=self._tell)

    def search(self, profile: Profile, roofline: Roofline, referee: Evaluator) -> SearchResult:
        """Search within the budget."""
        self.run_log.set_status(RunStatus.SEARCHING, error="")
        session = self.session(roofline, referee)
        checkpoint = self.folder / "checkpoint.db"
        return run_search(profile, self.run_log, self.meter, session, checkpoint=checkpoint)

    def session(self, roofline: Roofline, referee: Evaluator) -> Session:
        """What the search runs with."""
        return Session(
            agents=self.agents,
            evaluator=self._recorded(self._instrumented(roofline, referee)),
            knowledge=KnowledgeBase(self._knowledge_store(), self.settings.playbooks),
            context_for=partial(context_for, device=self.device),
            policy=self.policy,
            allocator=self.allocator,
            settings=self.settings.search,
            device=self.device,
            hardware=hardware(self.device, roofline),
            patient=self.settings.referee.patience_s > 0,
        )

    def _proving(self, referee: Evaluator, profile: Profile) -> Evaluator:
        """The referee; of a model with one region, one that proves its kernels inside the model.

        On a GPU it is the referee alone: stitching judges CUDA graphs too, and a profiler asks the referee.
        """
        if self.device.kind != "cpu" or not only_region(self.target, profile):
            return referee
        judge, sol_s = self._judge_of_model(referee, profile)
        return InsideModel(
            referee, judge, self.run_log, self.target, profile, sol_s=sol_s, progress=self._tell
        )

    def _instrumented(self, roofline: Roofline, referee: Evaluator) -> ProfiledEvaluator:
        """The referee, whose evaluations say what a solution achieved of the roofline."""
        profile = self.run_log.store.get_profile(self.run_log.run.id)
        work = work_by_definition(profile) if profile else {}
        observer = None
        if self.device.kind != "cpu" and isinstance(referee, Presenter):
            observer = NsightObserver(referee, self._tell)
        again = partial(self.roofline, doubted=True)
        return ProfiledEvaluator(referee, self.device, roofline, work, observer, again)

    def _recorded(self, evaluator: Evaluator) -> Evaluator:
        """An evaluator that writes its verdicts to the cassette, or takes them from the one replayed."""
        if self._replayed is not None:
            evaluator = ReplayedEvaluator(evaluator, self._replayed)
        record = self.settings.llm.record
        return RecordingEvaluator(evaluator, record) if record is not None else evaluator

    def _knowledge_store(self) -> Store:
        """The run's store; an empty one of its own if verdicts are replayed, which teach nothing here.

        Other arms of the run's campaign teach it nothing.
        """
        if self._replayed is None:
            return self.run_log.store.as_known_to(self.run_log.run.id)
        return Store(sqlite_url(self.folder / "replayed.db"))

    @property
    def _replayed(self) -> Path | None:
        """The cassette whose verdicts are taken; None if all are measured here."""
        return replayed_cassette(self.settings) if self.settings.llm.replay_verdicts else None

    def stitch(self, result: SearchResult, referee: Evaluator) -> None:
        """Integrate the wins and prove them, unless an earlier session did it with the same ones."""
        from agentforge.stitch import Forecast, stitch  # it needs torch, and the first plan does not

        run_log = self.run_log
        chosen = {win.bottleneck.definition.hash: win.solution for win in result.wins}
        hashes = {definition: solution.hash for definition, solution in chosen.items()}
        folder = self.out or self.folder / "artifact"
        done, wanted = run_log.record(StitchResult), (hashes, str(folder))
        if done and not done.cut_short and (done.chosen, done.artifact) == wanted and folder.exists():
            return
        self.meter.stitching_begins()
        run_log.set_status(RunStatus.STITCHING, error="")
        run_log.event(StitchStarted(chosen=hashes))
        judge, sol_s = self._judge_of_model(referee, result.profile)
        run = run_log.run
        known_s = run_log.store.verdict_seconds(run.id, self.target.definition.hash, run.device)
        cached = CachedEvaluator(judge, run_log, longer=self._longer)
        artifact = stitch(
            self.target,
            result.profile,
            chosen,
            folder,
            referee=cached,
            device=self.device,
            cache=self.settings.cache,
            evidence={win.bottleneck.definition.hash: win.evaluation for win in result.wins},
            seconds=self.meter.exploring_s,
            moves=plan.moves if (plan := run_log.record(ModelPlan)) else (),
            reserve_s=self.meter.stitching_s,
            compiled=self._modes_to_prove(),
            permission=self.permission,
            metric=original.value if (original := run_log.record(OriginalMetric)) else None,
            sol_s=sol_s,
            progress=self._tell,
            rewritten=referee.rewritten if isinstance(referee, InsideModel) else None,
            first_verdict_s=first_verdict_s(run_log.store, run_log.run.id),
            forecast=Forecast(known_s, lambda n, s: run_log.event(StitchLeft(variants=n, seconds=s))),
        )
        cut_short = artifact.cut_short or (cached.spoiled and not artifact.kernels)
        self._keep(artifact.model_copy(update={"cut_short": cut_short}), result.profile, hashes)

    @property
    def _longer(self) -> bool:
        """Whether an evaluation may take longer now than when the run began."""
        kept, limit = self.run_log.record(RunSettings), self.settings.referee.evaluation_timeout_s
        return kept is not None and kept.referee.get("evaluation_timeout_s", limit) < limit

    def _modes_to_prove(self) -> tuple[str, ...]:
        """Modes of torch.compile that may become the artifact: those that a full evaluation measures."""
        from agentforge.referee.workers.device_backend import backend_for  # it needs torch

        if not self.settings.search.prove_compile:
            return ()
        measured, _ = backend_for(self.device).compiled(self.settings.referee)
        return tuple(measured) or ("compile",)

    def _judge_of_model(self, referee: Evaluator, profile: Profile) -> tuple[Evaluator, float | None]:
        """The referee, and the speed of light of one forward if it is known: see `work_of_model`."""
        work = work_of_model(profile)
        if work is None:
            return referee, None
        roofline, again = self.known_roofline(), partial(self.roofline, doubted=True)
        of_model = {self.target.definition.hash: work}
        judge = ProfiledEvaluator(referee, self.device, roofline, of_model, measure_again=again)
        return judge, speed_of_light(work, self.device, roofline).seconds

    def _keep(self, artifact: StitchedArtifact, profile: Profile, chosen: dict[str, str]) -> None:
        run_log, report = self.run_log, artifact.report
        runs = {kernel["solution"]: kernel["runs_seen"] for kernel in report["kernels"]}
        packed = set(report["packed"])
        run_log.put_solution(artifact.solution)
        run_log.keep(ArtifactReport(data=report))
        evaluation = run_log.put_evaluation(artifact.evaluation) if artifact.evaluation else None
        left = report["sites_left_as_they_were"]
        self.keep_result(
            StitchResult(
                chosen=chosen,
                artifact=str(artifact.folder),
                mode=artifact.mode,
                summary=artifact.summary + ("" if artifact.kernels else self._unjudged()),
                proven=artifact.proven,
                cut_short=artifact.cut_short,
                unjudged=artifact.unjudged,
                solution=artifact.solution.hash,
                evaluation=evaluation,
                sol_s=self._least_time(profile, artifact.evaluation),
                calls={d: runs[solution] for d, solution in chosen.items() if solution in runs},
                tokens_per_second=report["tokens_per_second"],
                moves=tuple(move["kind"] for move in report["moves"] if move["kept"]),
                packed=tuple(
                    b.definition.hash for b in profile.bottlenecks if packed & {s.name for s in b.call_sites}
                ),
                notes=tuple(f"{site} stays: {why}" for site, why in left.items()),
            )
        )

    def _unjudged(self) -> str:
        """The first attempt that lacks its verdict, as the end of a sentence; empty if all have theirs."""
        left = [attempt for attempt in self.run_log.attempts() if attempt.status not in FINISHED]
        return f"; attempt {left[0].number} was not judged before the budget ended" if left else ""

    def _least_time(self, profile: Profile, evaluation: Evaluation | None) -> float | None:
        """See `StitchResult.sol_s`."""
        sol_s = least_time(profile, self.device, self.known_roofline())
        performance = evaluation.performance if evaluation else None
        measured = [performance.latency_s, *performance.baseline_s.values()] if performance else []
        return sol_s if sol_s and min([*measured, profile.total_s]) >= sol_s else None

    def keep_result(self, result: StitchResult) -> None:
        """Store what the run produced; kernels that are right and unverified become files beside it."""
        unverified = write_unverified(self.run_log, self.folder / "unverified")
        replayed = (f"the search's verdicts are those of {self._replayed}",) if self._replayed else ()
        result = result.model_copy(update={"notes": (*result.notes, *replayed, *unverified)})
        self.run_log.keep(result)
        self.run_log.event(
            StitchDone(
                artifact=result.artifact, mode=result.mode, summary=result.summary, proven=result.proven
            )
        )
        self.run_log.set_status(RunStatus.STITCHING, artifact=result.artifact or None)

    def _tell(self, text: str) -> None:
        self.run_log.event(Progress(text=text))


def hardware(device: DeviceSpec, roofline: Roofline) -> Hardware:
    """What the agents may know of the machine."""
    return Hardware(
        device=device.name,
        architecture=device.architecture,
        threads=device.threads,
        bandwidth=roofline.bandwidth,
        peak_flops=roofline.peak_flops.get("float32", max(roofline.peak_flops.values(), default=0.0)),
        cache_bytes=device.cache_bytes,
        cores=cores(device.threads) if device.kind == "cpu" else 0,
        vector_bits=vector_bits(device.architecture),
    )

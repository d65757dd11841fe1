"""Runs that begin with a kernel: one that a user has, or a sequential function to make parallel.

The whole reference is the one thing to make faster; what comes out is the fastest verified solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentforge.agents import check_agents
from agentforge.analysis import Report
from agentforge.config import Settings
from agentforge.devices import Roofline, detect
from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends.sequential import read_sequential, reference
from agentforge.harness import Evaluator
from agentforge.languages import write_solution
from agentforge.loop import Journal, OnEvent, Proposal, SearchResult, hand_in, make_supervisor, run_search
from agentforge.schema import (
    Bottleneck,
    Bound,
    CallSite,
    Definition,
    Plan,
    Profile,
    RunStatus,
    Target,
    TargetError,
    TensorInput,
    UsageError,
)
from agentforge.store import Store

from .given import Given, parallel_versions, read_kernel
from .optimize import check_language, check_out, create_run, for_device, go_on
from .phases import Phases

GIVEN = "kernel.given"
"""Event that makes a run one of this kind."""


def optimize_kernel(
    kernel: Path,
    against: str,
    options: FrontendOptions,
    settings: Settings,
    *,
    device: str = "auto",
    out: Path | None = None,
    on_event: OnEvent | None = None,
) -> Report:
    """Make a user's kernel faster; it is the first attempt.

    Args:
        kernel: a Python file or folder with `ModelNew`, or a bare C++ file.
        against: the reference, a target in any form that a frontend takes.
        options: what the user said of its inputs.
        settings: budget, search, referee, database.
        device: kind of device, or `auto`.
        out: folder for the fastest solution; None puts it below the run's own folder.
        on_event: called with each event of the run.

    Raises:
        AgentForgeError: the message says what to do.
    """
    where = detect(device)
    target = load_target(against, options)
    definition = whole(target.definition)
    given = read_kernel(kernel, definition, target.workloads[0], where.kind)
    named = target.model_copy(update={"name": kernel.stem, "origin": str(kernel)})
    return _begin(named, [given], settings, device, out, on_event)


def optimize_sequential(
    path: Path,
    sizes: Mapping[str, tuple[int, ...]],
    settings: Settings,
    *,
    device: str = "auto",
    out: Path | None = None,
    on_event: OnEvent | None = None,
) -> Report:
    """Turn a sequential C or C++ function into a parallel kernel, judged against running the original.

    Args:
        path: `.c` or `.cpp`.
        sizes: by parameter: shapes of arrays, values of sizes.
        settings: as for `optimize_kernel`; there is no torch.compile baseline of a C function.
        device: as for `optimize_kernel`.
        out: as for `optimize_kernel`.
        on_event: as for `optimize_kernel`.

    Raises:
        AgentForgeError: the message says what to do.
    """
    where = detect(device)
    found = read_sequential(path, sizes)
    file = settings.home / "references" / f"{path.stem}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(reference(found), encoding="utf-8")
    target = load_target(str(file), FrontendOptions(device=where.kind))
    named = target.model_copy(update={"name": path.stem, "origin": str(path)})
    referee = settings.referee.model_copy(update={"compile_baseline": False})
    return _begin(
        named,
        parallel_versions(found, whole(target.definition)),
        settings.model_copy(update={"referee": referee}),
        device,
        out,
        on_event,
    )


def whole(definition: Definition) -> Definition:
    """A reference as one operator to make faster."""
    return definition.model_copy(update={"op_type": "custom", "description": "The whole reference."})


def _begin(
    target: Target,
    given: list[Given],
    settings: Settings,
    device: str,
    out: Path | None,
    on_event: OnEvent | None,
) -> Report:
    where = detect(device)
    languages = {g.solution.spec.language for g in given} - {"python"}  # torch code is made faster in C++
    if "language" not in settings.search.model_fields_set and len(languages) == 1:
        search = settings.search.model_copy(update={"language": languages.pop()})
        settings = settings.model_copy(update={"search": search})
    settings = for_device(settings, where)
    check_agents(settings.search, settings.llm)
    check_out(out)
    check_language(settings.search.language)
    with Store(settings.url) as store:
        run = create_run(store, target, settings, where)
        for kernel in given:
            store.save_solution(kernel.solution)
        told = [{"strategy": g.strategy, "why": g.why, "solution": g.solution.hash} for g in given]
        store.append_event(run.id, GIVEN, {"kernels": told})
        return go_on(store, run, target, settings, where, out, on_event)


def begins_with_a_kernel(journal: Journal) -> bool:
    """Whether a run is one of this kind."""
    return journal.first(GIVEN) is not None


@dataclass(frozen=True)
class KernelPhases(Phases):
    """Profile, the given kernels, search, and the fastest solution as the result."""

    def make_profile(self, roofline: Roofline) -> Profile:
        """The whole reference as the only bottleneck."""
        return as_one(super().make_profile(roofline), self.target)

    def search(self, profile: Profile, roofline: Roofline, referee: Evaluator) -> SearchResult:
        """Judge the given kernels, then search on from them."""
        self.journal.set_status(RunStatus.SEARCHING, error="")
        session = self.session(roofline, referee)
        supervisor = make_supervisor(profile, self.journal, self.meter, session)
        for number, proposal in enumerate(self._given(profile), 1):
            attempt = hand_in(supervisor, proposal, number)
            if attempt.error:
                raise TargetError(attempt.error)
        checkpoint = self.folder / "checkpoint.db"
        return run_search(profile, self.journal, self.meter, session, checkpoint=checkpoint)

    def _given(self, profile: Profile) -> list[Proposal]:
        told = self.journal.first(GIVEN)
        kernels: Any = told.data["kernels"] if told else []
        bottleneck = profile.bottlenecks[0].definition.hash
        return [
            Proposal(
                bottleneck,
                Plan(
                    strategy=kernel["strategy"],
                    diagnosis=kernel["why"],
                    language=solution.spec.language,
                    author="person",
                ),
                solution,
            )
            for kernel in kernels
            for solution in [self.journal.solution(kernel["solution"])]
        ]

    def stitch(self, profile: Profile, result: SearchResult, referee: Evaluator) -> None:
        """Write the fastest verified solution out; there is nothing to put it into."""
        journal, folder = self.journal, self.out or self.folder / "artifact"
        win = result.wins[0] if result.wins else None
        if win is not None:
            folder.mkdir(parents=True, exist_ok=True)
            write_solution(win.solution, folder)
            (folder / "plan.json").write_text(win.evaluation.model_dump_json(indent=1))
            (folder / "reference.py").write_text(self.target.definition.reference)
        why = "the fastest verified solution" if win else self._unproven()
        journal.event(
            "stitch.done",
            chosen={win.bottleneck.definition.hash: win.solution.hash} if win else {},
            artifact=str(folder) if win else "",
            mode="kernel",
            summary=why,
            proven=win is not None,
            solution=win.solution.hash if win else None,
            evaluation=journal.put_evaluation(win.evaluation) if win else None,
            calls={},
            notes=list(self.target.notes),
        )
        journal.set_status(RunStatus.STITCHING, artifact=str(folder) if win else None)

    def _unproven(self) -> str:
        """Why nothing is written out; a kernel that is right and could not be timed is said to be that."""
        found = [e for e in map(self.journal.evaluation, self.journal.attempts()) if e is not None]
        untimed = next((e for e in found if e.passed and e.performance is None), None)
        if untimed is None:
            return "nothing was verified faster than the reference"
        return f"a kernel is right, and not verified: {'; '.join(untimed.reasons) or 'it was not timed'}"


def as_one(profile: Profile, target: Target) -> Profile:
    """A profile whose only bottleneck is the whole target; `at_ceilings` says what it could gain."""
    definition = whole(target.definition)
    if definition.op_type == target.definition.op_type:
        raise UsageError(f"{target.name} is no whole model")
    inputs = tuple(i for i in target.workloads[0].inputs if isinstance(i, TensorInput))
    sites = profile.call_sites
    site = CallSite(
        name=target.name,
        nodes=("whole",),
        operators=tuple(dict.fromkeys(o for s in sites for o in s.operators)) or ("original",),
        inputs=inputs,
        time_s=profile.total_s,
        flops=sum(s.flops for s in sites),
        bytes=sum(i.nbytes for i in inputs),
    )
    bottleneck = Bottleneck(
        definition=definition,
        workloads=target.workloads,
        call_sites=(site,),
        time_s=profile.total_s,
        share=1.0,
        sol_s=0.0,
        bound=Bound.MEMORY,
        gain_s=profile.total_s,
        speedup_limit=1.0,
    )
    return profile.model_copy(update={"bottlenecks": (bottleneck,), "call_sites": (site,)})

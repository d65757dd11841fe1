"""Runs that begin with kernels of the whole reference: a user's own, or versions of a sequential function.

The whole reference is the only bottleneck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from agentforge.config import Settings
from agentforge.devices import DeviceSpec, Roofline
from agentforge.frontends import FrontendOptions, check_target, load_target
from agentforge.frontends.sequential import without_sizes
from agentforge.knowledge import WHOLE_REFERENCE
from agentforge.loop import Proposal, SearchResult, make_supervisor, run_search, submit
from agentforge.referee import Evaluator
from agentforge.schema import (
    Bottleneck,
    Bound,
    CallSite,
    Definition,
    GivenKernel,
    GivenKernels,
    Plan,
    Profile,
    RunKind,
    RunStatus,
    StitchResult,
    Target,
    TargetError,
    TensorInput,
    UsageError,
    content_hash,
)

from .._base import RunInput
from ..artifacts import KERNEL, write_kernel
from ..checks import check_language
from ..evaluators.recording import is_recorded
from ..pipeline import RunPipeline
from ..run_settings import for_device, with_search
from ..user_kernels import UserKernel, check_kernel, read_kernel


@dataclass(frozen=True)
class KernelStart:
    """A user's kernel, which is the first attempt, and the reference that it computes."""

    kernel: Path
    """A Python file or folder with `ModelNew`, or a bare C++ file."""
    against: str
    """The reference, a target in any form that a frontend takes."""
    options: FrontendOptions
    """Of the reference."""
    kind: ClassVar[RunKind] = RunKind.KERNEL

    @property
    def ranged(self) -> bool:
        """Whether the target is a range of shapes."""
        return bool(self.options.shapes)

    def check(self, settings: Settings, device: DeviceSpec) -> None:
        """Refuse a kernel or a reference that cannot be read, and a language that cannot be built here."""
        if not self.kernel.exists():
            raise UsageError(f"{self.kernel} does not exist: name the kernel's file or folder")
        check_target(self.against, self.options, settings.frontend_options)
        searched = _in_language(settings, {check_kernel(self.kernel, device.torch_device)})
        check_language(for_device(searched, device).search.language)

    def load(self, settings: Settings, device: DeviceSpec) -> RunInput:
        """The reference, loaded in a child process, and the kernel as its solution."""
        options = replace(self.options, device=device.torch_device)
        target = load_target(self.against, options, settings.frontend_options)
        kernel = read_kernel(self.kernel, whole(target.definition), target.workloads[0], device.kind)
        named = target.model_copy(update={"name": self.kernel.stem, "origin": str(self.kernel)})
        return given_kernels(named, [kernel], settings)


def given_kernels(target: Target, kernels: Sequence[UserKernel], settings: Settings) -> RunInput:
    """A run's input that consists of kernels; unless the user names a language, theirs is searched."""
    settings = _in_language(settings, {k.solution.spec.language for k in kernels})
    given = tuple(GivenKernel(strategy=k.strategy, why=k.why, solution=k.solution.hash) for k in kernels)
    return RunInput(target, settings, (GivenKernels(kernels=given),), tuple(k.solution for k in kernels))


def _in_language(settings: Settings, languages: Set[str]) -> Settings:
    """Settings that search in the language of the kernels, unless the user names one."""
    compiled = languages - {"python"}  # torch code is made faster in C++
    if "language" in settings.search.model_fields_set or len(compiled) != 1:
        return settings
    return with_search(settings, language=next(iter(compiled)))


def whole(definition: Definition) -> Definition:
    """A reference as one operator to make faster."""
    return definition.model_copy(update={"op_type": WHOLE_REFERENCE, "description": "The whole reference."})


@dataclass(frozen=True)
class KernelRunPipeline(RunPipeline):
    """Profile, the given kernels, search, and the fastest solution as the result."""

    def make_profile(self, roofline: Roofline) -> Profile:
        """The whole reference as the only bottleneck."""
        return as_one(super().make_profile(roofline), self.target)

    def search(self, profile: Profile, roofline: Roofline, referee: Evaluator) -> SearchResult:
        """Judge the given kernels, then search on from them."""
        self.run_log.set_status(RunStatus.SEARCHING, error="")
        session = self.session(roofline, referee)
        supervisor = make_supervisor(profile, self.run_log, self.meter, session)
        for number, proposal in enumerate(self._given(profile), 1):
            attempt = submit(supervisor, proposal, number)
            if attempt.error:
                raise TargetError(attempt.error)
        checkpoint = self.folder / "checkpoint.db"
        return run_search(profile, self.run_log, self.meter, session, checkpoint=checkpoint)

    def _given(self, profile: Profile) -> list[Proposal]:
        record = self.run_log.record(GivenKernels)
        bottleneck = profile.bottlenecks[0].definition.hash
        return [
            Proposal(
                bottleneck,
                Plan(
                    strategy=kernel.strategy,
                    diagnosis=kernel.why,
                    language=solution.spec.language,
                    author="person",
                ),
                solution,
            )
            for kernel in (record.kernels if record else ())
            for solution in [self.run_log.solution(kernel.solution)]
        ]

    def stitch(self, result: SearchResult, referee: Evaluator) -> None:
        """Write the fastest verified solution out; there is nothing to put it into."""
        run_log, folder = self.run_log, self.out or self.folder / "artifact"
        win = result.wins[0] if result.wins else None
        if win is not None:
            write_kernel(folder, win.solution, win.evaluation, self.target.definition)
        why = "the fastest verified solution" if win else self._unproven()
        if win is not None and is_recorded(win.evaluation):
            why = "the fastest solution that was verified in the recording: verify it here"
        self.keep_result(
            StitchResult(
                chosen={win.bottleneck.definition.hash: win.solution.hash} if win else {},
                artifact=str(folder) if win else "",
                mode=KERNEL,
                summary=why,
                proven=win is not None and not is_recorded(win.evaluation),
                solution=win.solution.hash if win else None,
                evaluation=run_log.put_evaluation(win.evaluation) if win else None,
                notes=self.target.notes,
            )
        )

    def _unproven(self) -> str:
        """Why nothing is written out; a kernel that is right and could not be timed is said to be that."""
        found = [e for e in map(self.run_log.evaluation, self.run_log.attempts()) if e is not None]
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
    kinds = dict(sum((Counter(s.kinds) for s in sites), Counter[str]()))
    site = CallSite(
        name=target.name,
        nodes=("whole",),
        operators=tuple(dict.fromkeys(o for s in sites for o in s.operators)) or ("original",),
        kinds=kinds or {f"untraced-{content_hash(without_sizes(definition.reference))}": 1},
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
    return profile.model_copy(update={"bottlenecks": (bottleneck,), "call_sites": (site,), "merges": ()})

"""Builds and profiles what the referee has passed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentforge.languages import CommandRunner, languages
from agentforge.schema import Definition, Evaluation, Solution, Workload

from .profiler import KernelProfiler, Launch, Observation

_BUILD_S = 120.0


@dataclass(frozen=True)
class NsightObserver:
    """An `Observer` of GPU kernels."""

    profiler: KernelProfiler
    cache: Path
    """Of built objects: the referee's, so that nothing is compiled twice."""
    run: CommandRunner
    """For compilers, which read untrusted source."""

    def observe_evaluated(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        evaluation: Evaluation,
    ) -> Observation:
        """Profile a solution on its heaviest workload."""
        workload = max(workloads, key=lambda w: (w.nbytes, w.weight))
        with tempfile.TemporaryDirectory(prefix="agentforge-profiled-") as name:
            folder = Path(name)
            built = languages.create(solution.spec.language).build(
                solution, folder, cache=self.cache, run=self.run, timeout_s=_BUILD_S, device="cuda"
            )
            if not built.ok:
                return Observation(solution=solution.hash)
            return self.profiler.observe(
                Launch(
                    solution=solution,
                    folder=folder,
                    definition=definition,
                    workload=workload,
                    own_kernels=tuple(k.name for k in evaluation.kernels if k.own),
                    latency_s=evaluation.performance.latency_s if evaluation.performance else None,
                )
            )

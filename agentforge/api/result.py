"""`Result`: what a run reached, and the faster model."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentforge.schema import Evaluation, Evidence, RunStatus, Target, UsageError, baseline_name

from .artifact import LoadedArtifact, load
from .tables import Bottlenecks, html_table
from .targets import generator

if TYPE_CHECKING:
    import torch

    from agentforge.analysis import Report

BASELINES = ("torch.compile", "eager", "freezing", "max-autotune", "max-autotune-freezing", "cuda-graph")
"""Names of the baselines for callers."""


@dataclass(frozen=True, repr=False)
class Speedup:
    """Baseline time divided by optimized time, end to end. Prints as `1.24x [1.18, 1.31], verified`.

    Attributes:
        point: the estimate; NaN if nothing was measured.
        low: lower end of the 95% interval.
        high: upper end of the 95% interval.
        evidence: `verified`, `suspicious` or `unverified`.
        note: why nothing was measured; empty otherwise.
    """

    point: float
    low: float
    high: float
    evidence: str
    note: str = ""

    def __float__(self) -> float:
        return self.point

    def __str__(self) -> str:
        if self.note:
            return f"not measured: {self.note}"
        return f"{self.point:.2f}x [{self.low:.2f}, {self.high:.2f}], {self.evidence}"

    __repr__ = __str__


class Speedups(Mapping[str, Speedup]):
    """Speedups end to end by baseline: `torch.compile` (its default mode), `eager`, and what else was
    measured, `freezing` for example; `best` is that over the fastest of them.

    Iteration gives the baselines that were measured. Asking for another one gives a `Speedup` of NaN
    whose `note` says why, for example because eager was kept.
    """

    def __init__(self, measured: Mapping[str, Speedup], note: str) -> None:
        self._measured = dict(measured)
        self._note = note

    def __getitem__(self, baseline: str) -> Speedup:
        if baseline == "best" and self._measured:
            return min(self._measured.values(), key=float)
        if baseline in self._measured:
            return self._measured[baseline]
        if baseline in (*BASELINES, "best"):
            return Speedup(math.nan, math.nan, math.nan, Evidence.UNVERIFIED.value, self._note)
        raise KeyError(f"{baseline!r}: the baselines are {', '.join(map(repr, BASELINES))}")

    def __contains__(self, baseline: object) -> bool:
        return baseline in self._measured

    def __iter__(self) -> Iterator[str]:
        return iter(self._measured)

    def __len__(self) -> int:
        return len(self._measured)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {value}' for name, value in self._measured.items())}}}"


def speedups(evaluation: Evaluation | None, proven: bool, note: str) -> Speedups:
    """An evaluation's speedups; `verified` only if the run also saw every kernel run."""
    if evaluation is None or evaluation.performance is None:
        return Speedups({}, note)
    evidence = evaluation.evidence
    if evidence is Evidence.VERIFIED and not proven:
        evidence = Evidence.UNVERIFIED
    intervals = evaluation.performance.speedup
    measured = {
        "torch.compile" if name == "compile" else name: Speedup(i.point, i.low, i.high, evidence.value)
        for name, i in intervals.items()
    }
    return Speedups(measured, "this baseline was not part of the evaluation")


class Result:
    """What a run reached.

    Attributes:
        run: identifier of the run, for `agentforge.resume` and `agentforge runs show`.
        report: everything that was measured: profile, plan, regions, end-to-end evaluation.
        artifact: folder of the artifact, which imports without AgentForge; None before the run wrote one.
        speedup: end to end by baseline: `speedup["torch.compile"]`, `speedup["eager"]`, `speedup["best"]`.
        bottlenecks: where the time went, with what became of each; a table.
    """

    def __init__(self, report: Report, target: Target, module: torch.nn.Module | None) -> None:
        self.report = report
        self.run: str = report.run.id
        self.artifact: Path | None = Path(report.run.artifact) if report.run.artifact else None
        self.speedup = speedups(report.end_to_end, report.proven, report.headline.rstrip("."))
        self.bottlenecks = _bottlenecks(report)
        self._target = target
        self._module = module

    @cached_property
    def model(self) -> torch.nn.Module:
        """The optimized model: same class hierarchy and state_dict, a drop-in for the original.

        If the run was given a live module, this is a copy that shares its parameters and buffers, and the
        original stays as it was. Otherwise the model is built from its file. If no kernel won, the forward is
        the best baseline's: torch.compile or eager. Kernels run for calls like the example inputs, without
        gradients; other calls run the original forward.

        For a generation it is the model whose cache is an argument: `model.generate(input_ids,
        max_new_tokens)` decodes greedily, `model(input_ids, position, *model.new_cache())` is one step.

        Raises:
            UsageError: the run has written no artifact of a model, or its live module's weights are gone.
        """
        artifact = self.load()
        if self._module is not None and self._target.generation:
            return artifact.optimize(generator(self._target, self._module), inplace=True)
        if self._module is not None:
            return artifact.optimize(self._module)
        from agentforge.problems.kernelbench import load_problem
        from agentforge.problems.live_weights import check_weights

        check_weights(self._target)
        original = load_problem(self._target.definition).build(seed=0).to(self._target.device)
        return artifact.optimize(original, inplace=True)

    def load(self) -> LoadedArtifact:
        """The artifact, to optimize other models of the same kind.

        Raises:
            UsageError: the run has written no artifact of a model.
        """
        if self.artifact is None and self.finished:
            raise UsageError(
                f"run {self.run} has no artifact, because {self.report.headline.rstrip('.')}: search on "
                f"under new limits, for example agentforge.resume({self.run!r}, minutes=10)"
            )
        if self.artifact is None:
            raise UsageError(f"run {self.run} has no artifact: go on with agentforge.resume({self.run!r})")
        return load(self.artifact)

    @property
    def finished(self) -> bool:
        """Whether all phases of the run are done."""
        return self.report.run.status is RunStatus.FINISHED

    def __repr__(self) -> str:
        lines = [f"Result of run {self.run} ({self.report.run.status.value}): {self.report.headline}"]
        lines += [f"  speedup over {name}: {value}" for name, value in self.speedup.items()]
        for step, rates in self.report.tokens_per_second.items():
            said = ", ".join(f"{rate:,.1f} {baseline_name(name)}" for name, rate in rates.items())
            lines.append(f"  {step}, tokens per second: {said}")
        if self.artifact is not None:
            lines.append(f"  artifact: {self.artifact}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [[name, str(value)] for name, value in self.speedup.items()]
        speedup = html_table(["end to end, against", "speedup, 95% interval"], rows) if rows else ""
        where = f"<p>artifact: <code>{html.escape(str(self.artifact))}</code></p>" if self.artifact else ""
        head = f"<b>{html.escape(self.report.headline)}</b> (run {html.escape(self.run)})"
        return f"<div><p>{head}</p>{speedup}{self.bottlenecks._repr_html_()}{where}</div>"


def _bottlenecks(report: Report) -> Bottlenecks:
    entries = report.profile.bottlenecks if report.profile else ()
    outcomes = {region.definition: region.outcome for region in report.regions}
    return Bottlenecks(entries, [outcomes.get(b.definition.hash, "") for b in entries])

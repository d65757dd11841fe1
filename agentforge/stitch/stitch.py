"""`stitch`: promoted solutions go back into the model, and an artifact comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentforge.devices import DeviceSpec
from agentforge.profiling.on_device import WORTH_TELLING, host_share
from agentforge.schema import Evaluation, FrozenModel, Profile, Solution, Target

from . import products
from .artifact import write_artifact
from .files import Mode
from .report import report_data
from .select import Evaluator, Selector
from .streams import measured
from .variants import Variants, promoted


class Artifact(FrozenModel):
    """A written artifact and what it is worth."""

    folder: Path
    mode: Mode
    """What runs in the captured call; `eager` is the model as it was."""
    summary: str
    """Why this variant was taken, in a sentence."""
    kernels: tuple[str, ...]
    """Names of the kernels that were put in and seen to run."""
    solution: Solution
    """The whole model, as the referee judged it."""
    evaluation: Evaluation | None
    """End to end at level `full`; None for `eager`."""
    proven: bool
    """Verified, and every kernel was seen to run; true for `eager`, which is the original."""
    report: dict[str, Any]
    """What `report.json` holds."""


def stitch(
    target: Target,
    profile: Profile,
    chosen: Mapping[str, Solution],
    folder: Path,
    *,
    referee: Evaluator,
    device: DeviceSpec,
    cache: Path,
    evidence: Mapping[str, Evaluation] | None = None,
    seconds: float = 60.0,
    progress: Callable[[str], None] | None = None,
) -> Artifact:
    """Put solutions back into the model and keep what wins end to end.

    The kernels between eager operators, the same under torch.compile, plain torch.compile and eager are
    compared by the referee as whole models, and all launches as a CUDA graph where the GPU waits for the
    host, several streams where steps could run side by side, and on a CPU packed weights where products take
    the time; nothing of them runs in this process.
    Where no variant with kernels is at least as fast as the best baseline, the artifact keeps that baseline
    and says so.

    Args:
        target: the model.
        profile: of the target; its bottlenecks say where each definition's call sites are.
        chosen: promoted solution by its definition's hash; may be empty.
        folder: where the artifact goes; replaced where it holds an earlier one.
        referee: judges the variants.
        device: what the measurements are taken on, for the report.
        cache: of built objects.
        evidence: evaluations of the solutions alone, by definition hash, for the report.
        seconds: wall time after which no further variant is searched for; final verdicts come on top.
        progress: receives lines of progress.

    Raises:
        TargetError: the model cannot be captured any more.
        UsageError: the folder holds something else.
        MachineError: the folder cannot be written.
    """
    kernels = promoted(profile, chosen)
    on_gpu = target.device.startswith("cuda")
    variants = Variants(target, kernels, progress, measured(profile, device.threads) if on_gpu else ())
    selection = Selector(
        target,
        variants,
        kernels,
        referee,
        seconds=seconds,
        waits=host_share(profile) >= WORTH_TELLING,
        streams=on_gpu,
        packed=not on_gpu and products.share(profile) >= products.WORTH_TRYING,
        progress=progress,
    ).run()
    trial = selection.trial
    report = report_data(
        target,
        profile,
        device,
        kernels,
        evidence or {},
        selection,
        {site: why for site, why in variants.refused.items() if site not in selection.variant.sites},
        variants.notes,
    )
    write_artifact(folder, target, selection.variant.solution, report, cache=cache)
    return Artifact(
        folder=folder,
        mode=selection.variant.mode,
        summary=selection.reason,
        kernels=tuple(sorted(selection.variant.kernels)),
        solution=selection.variant.solution,
        evaluation=trial.evaluation if trial else None,
        proven=trial.proven if trial else True,
        report=report,
    )

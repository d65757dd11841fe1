"""`stitch`: install promoted solutions in the model and write an artifact."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentforge.devices import DeviceSpec, Fallback
from agentforge.profiling.measure.device import REPORTED_SHARE, host_share
from agentforge.referee import Evaluator
from agentforge.schema import Evaluation, FrozenModel, Move, Permission, Profile, Solution, Target

from .artifact import write_artifact
from .files import Mode
from .graph import products
from .graph.streams import measured
from .precision import LowerPrecision
from .report import report_data
from .select import Selector
from .trial import Forecast
from .variants import VariantBuilder, promoted


class StitchedArtifact(FrozenModel):
    """A written artifact and its evaluation."""

    folder: Path
    mode: Mode
    """What runs in the captured call; `eager` is the original model."""
    summary: str
    """Why this variant was selected, in one sentence."""
    kernels: tuple[str, ...]
    """Names of the installed kernels that were seen to run."""
    solution: Solution
    """The whole model as a solution, as the referee evaluated it."""
    evaluation: Evaluation | None
    """End-to-end evaluation at level `full`; None for `eager`."""
    proven: bool
    """True if verified and every kernel was seen to run; always true for `eager`, the original model."""
    cut_short: bool
    """Whether the time ended, or the whole model could not be judged, before all was tried."""
    unjudged: bool = False
    """See `Selection.unjudged`."""
    report: dict[str, Any]
    """Content of `report.json`."""


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
    moves: Sequence[Move] = (),
    seconds: float = 60.0,
    reserve_s: float | None = None,
    compiled: Sequence[str] = ("compile",),
    permission: Permission | None = None,
    metric: float | None = None,
    sol_s: float | None = None,
    progress: Callable[[str], None] | None = None,
    rewritten: VariantBuilder | None = None,
    first_verdict_s: float | None = None,
    forecast: Forecast | None = None,
) -> StitchedArtifact:
    """Install solutions in the model and keep the variant that is fastest end to end.

    The referee compares, all in other processes: kernels between eager operators, the same under
    torch.compile, one CUDA graph (if the GPU waits for the host), several streams (if steps are independent),
    packed weights (on a CPU, if matmuls take much of the time), plain torch.compile, and eager.

    Args:
        chosen: promoted solution by definition hash; may be empty.
        moves: that the plan proposes; tried on a CPU.
        folder: where the artifact goes; an earlier one is replaced.
        seconds: wall time after which no new variant is tried; final evaluations come on top.
        reserve_s: wall time after which no evaluation goes on; None for no limit.
        compiled: modes of torch.compile that may become the artifact, as baselines are named; may be empty.
        permission: lower precision that the user allowed; None tries none.
        metric: the permission's metric of the original model; None if it is not known.
        sol_s: speed-of-light seconds of one forward in the model's own precision; None if they are not known.
        rewritten: has rewritten the same model at the same call sites.
        first_verdict_s: seconds from the profile to the first verdict, for the report; None if there is none.
        forecast: tells how many variants are left; None tells nobody.

    Raises:
        UsageError: the folder is neither empty nor an artifact.
        MachineError: the folder cannot be written.
    """
    kernels = promoted(profile, chosen)
    on_gpu = target.device.startswith("cuda")
    forecast = forecast or Forecast()
    end = None if reserve_s is None else time.monotonic() + reserve_s
    variants = rewritten and rewritten.with_solutions(kernels, end)
    if variants is None:
        sites = measured(profile, device.threads) if on_gpu else ()
        variants = VariantBuilder(target, kernels, progress, sites, end)
    tell = progress or (lambda line: None)
    lower = permission and LowerPrecision(
        permission, target, variants, kernels, referee, cache, end, tell, metric, forecast
    )
    selection = Selector(
        target,
        variants,
        kernels,
        referee,
        seconds=seconds,
        end=end,
        waits=_waits(profile, device),
        streams=on_gpu and Fallback.NO_STREAMS not in device.fallbacks,
        moves=() if on_gpu else moves,
        packed=not on_gpu and products.share(profile) >= products.WORTH_TRYING,
        alone=not on_gpu and len(profile.call_sites) == 1,
        compiled=compiled,
        sol_s=sol_s,
        progress=progress,
        forecast=forecast,
    ).run()
    selection, precision = lower.improve(selection) if lower else (selection, None)
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
        precision,
        first_verdict_s,
    )
    write_artifact(folder, target, selection.variant.solution, report, cache=cache)
    return StitchedArtifact(
        folder=folder,
        mode=selection.variant.mode,
        summary=selection.reason,
        kernels=tuple(sorted(selection.variant.kernels)),
        solution=selection.variant.solution,
        evaluation=trial.evaluation if trial else None,
        proven=trial.proven if trial else True,
        cut_short=selection.cut_short,
        unjudged=selection.unjudged,
        report=report,
    )


def _waits(profile: Profile, device: DeviceSpec) -> bool:
    """Whether a CUDA graph is tried: the GPU waits for the host long enough, or it is unknown how long."""
    unknown = Fallback.NO_KERNEL_TIMES in device.fallbacks
    return (unknown or host_share(profile) >= REPORTED_SHARE) and Fallback.NO_GRAPHS not in device.fallbacks

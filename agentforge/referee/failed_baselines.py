"""Baselines that failed on this machine for a reason that lasts: they are not tried again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from agentforge.config import RefereeSettings
from agentforge.limits import free_memory
from agentforge.problems.failures import KnownFailures
from agentforge.schema import Definition, EvaluationStatus, Level, TargetError, Workload

from .baselines.baselines import Baselines
from .timing.gpu.telemetry import Telemetry
from .workers.failures import WorkerFailure

_MET = {EvaluationStatus.TIMEOUT: "seconds", EvaluationStatus.OUT_OF_MEMORY: "bytes"}
"""How the names of the limits end that a failure met."""


def without_failed(
    make: Callable[[], Baselines],
    known: KnownFailures,
    definition: Definition,
    workloads: Sequence[Workload],
    settings: RefereeSettings,
    gpu: int | str | None,
    *,
    later: bool = False,
) -> Baselines:
    """What `make` returns, without compiled baselines that are known to fail; it hears of those that do now.

    Args:
        later: a verdict's later process group, which has the baselines of the first one: no file is read.

    Raises:
        TargetError: as `make`, or the reference is known to fail.
    """
    if definition.import_root is not None:
        return make()  # the files that it imports may have changed
    task = [definition.hash, [w.hash for w in workloads], settings.threads]

    def limits(met: str = "") -> dict[str, float]:
        found = {"seconds": settings.compile_timeout_s + settings.call_timeout_s, "host_bytes": free_memory()}
        if gpu is not None:  # an unknown size is no number, and never enough
            found["device_bytes"] = (Telemetry(gpu).memory() or (math.nan,))[0]
        return {name: limit for name, limit in found.items() if name.endswith(met)}

    def keep(name: str, failure: WorkerFailure) -> None:
        met = _MET.get(failure.status)
        if met and not failure.starved:
            known.keep([name, *task], failure.reason.strip().partition("\n")[0][:200], limits(met))

    if not later and (why := known.find(["eager", *task], limits())):
        raise TargetError(f"the reference of {definition.name} does not run ({why})")
    try:
        made = make()
    except TargetError as error:
        if isinstance(error.__cause__, WorkerFailure):
            keep("eager", error.__cause__)
        raise
    made.on_lost = keep
    for name in () if later else made.missing(Level.FULL):
        if why := known.find([name, *task], limits()):
            made.leave_out(name, why)
    return made

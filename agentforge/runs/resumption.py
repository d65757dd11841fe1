"""Continue a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentforge.analysis import Report, build_report
from agentforge.config import Settings
from agentforge.devices import DeviceSpec, with_threads
from agentforge.ladder import find_device
from agentforge.loop import OnEvent
from agentforge.problems.live_weights import check_weights
from agentforge.schema import (
    MachineError,
    Run,
    RunSettings,
    RunStatus,
    SearchSummary,
    StitchResult,
    UsageError,
)
from agentforge.store import Store

from .checks import check_minutes, check_permission, check_run
from .execution import before_run, check_device, execute
from .run_settings import limited, restored


def resume(
    identifier: str,
    settings: Settings,
    *,
    limits: Mapping[str, float | int | None] | None = None,
    out: Path | None = None,
    on_event: OnEvent | None = None,
    store: Store | None = None,
) -> Report:
    """Continue a run where it stopped; a finished run is searched further only under new limits.

    If its proof was cut short, that is repeated with the solutions that won, unless the whole model could not
    be judged, this is another device, or the weights of its live module are gone.

    Args:
        settings: those of search, referee and models that are not set explicitly are the run's own.
        limits: `minutes`, `attempts`, `dollars`, `tokens` that replace the run's own; None is no limit.
            The budget of `settings` is for new runs.
        store: as for `start_run`.

    Raises:
        UsageError: no such run, another process works on it, it is not finished or has new limits and began
            on another device, the file of its permission's metric is gone, or it is finished and `out` is
            another folder.
        AgentForgeError, KeyboardInterrupt: as for `start_run`.
    """
    with store or Store(settings.url) as store:
        run = store.get_run(identifier)
        budget = limited(run.budget, limits or {})
        made, summary = store.get_record(run.id, StitchResult), store.get_record(run.id, SearchSummary)
        finished = run.status is RunStatus.FINISHED and not limits
        if finished and not (made and made.cut_short and not made.unjudged):
            return _finished(store, run, out)
        kept = store.get_record(run.id, RunSettings)
        try:
            settings = restored(kept, settings)
            where = _device(store, run, kept, settings, on_event)
        except (UsageError, MachineError):
            if finished:  # the proof cannot be repeated here
                return _finished(store, run, out)
            raise
        out = out or (Path(kept.out) if kept and kept.out else None)
        check_run(settings, out)
        check_minutes(budget)
        check_permission(kept.permission if kept else None, run.kind, where)
        # Only new limits let a search go further that its budget ended.
        searched = summary.reason if finished and summary and not summary.nothing_left else ""
        return execute(
            store, run, settings, where, out, on_event, budget=budget if limits else None, searched=searched
        )


def _finished(store: Store, run: Run, out: Path | None) -> Report:
    if out is not None and str(out.absolute()) != run.artifact:
        raise UsageError(
            f"run {run.id} is finished: write its artifact with "
            f"agentforge runs artifact {run.id} {out}{store.options}, or give new limits to search on"
        )
    return build_report(store, run.id)


def _device(
    store: Store, run: Run, kept: RunSettings | None, settings: Settings, on_event: OnEvent | None
) -> DeviceSpec:
    """The device that the run began on, if the run can go on here."""
    target = store.get_target(run.target)
    found = find_device((kept and kept.device) or target.device, settings.cache, before_run(on_event))
    check_device(run, found)
    check_weights(target)
    return with_threads(found, settings.referee.threads)

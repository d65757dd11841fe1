"""Continue a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentforge.analysis import Report, build_report
from agentforge.config import Settings
from agentforge.devices import with_threads
from agentforge.ladder import find_device
from agentforge.loop import OnEvent
from agentforge.schema import RunSettings, RunStatus, StitchResult, UsageError
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

    If its proof was cut short, that is repeated.

    Args:
        settings: those of search, referee and models that are not set explicitly are the run's own.
        limits: `minutes`, `attempts`, `dollars`, `tokens` that replace the run's own; None is no limit.
            The budget of `settings` is for new runs.
        store: as for `start_run`.

    Raises:
        UsageError: no such run, another process works on it, it began on another device, the file of its
            permission's metric is gone, or it is finished and `out` is another folder.
        AgentForgeError, KeyboardInterrupt: as for `start_run`.
    """
    with store or Store(settings.url) as store:
        run = store.get_run(identifier)
        budget = limited(run.budget, limits or {})
        made = store.get_record(run.id, StitchResult)
        if run.status is RunStatus.FINISHED and not limits and not (made and made.cut_short):
            if out is not None and str(out.absolute()) != run.artifact:
                raise UsageError(
                    f"run {run.id} is finished: write its artifact with "
                    f"agentforge runs artifact {run.id} {out}{store.options}, or give new limits to search on"
                )
            return build_report(store, run.id)
        kept = store.get_record(run.id, RunSettings)
        settings = restored(kept, settings)
        out = out or (Path(kept.out) if kept and kept.out else None)
        check_run(settings, out)
        check_minutes(budget)
        kind = (kept and kept.device) or store.get_target(run.target).device
        found = find_device(kind, settings.cache, before_run(on_event))
        where = with_threads(found, settings.referee.threads)
        check_device(run, where)
        check_permission(kept.permission if kept else None, run.kind, where)
        return execute(store, run, settings, where, out, on_event, budget=budget if limits else None)

"""The one path of every run: create it, open it under its lock, carry out its phases."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agentforge.agents import (
    check_agents,
    create_author,
    create_coder,
    create_editor,
    create_judge,
    create_model_planner,
    create_planner,
)
from agentforge.analysis import Report, build_report
from agentforge.config import Settings
from agentforge.devices import DeviceSpec
from agentforge.llm import Ledger, Prices
from agentforge.loop import Agents, BudgetMeter, OnEvent, RunLog
from agentforge.problems.live_weights import check_weights
from agentforge.schema import (
    Budget,
    LLMAnswered,
    LLMBegun,
    LLMCall,
    LLMFailed,
    NoDatabaseError,
    Permission,
    Progress,
    Run,
    RunFailed,
    RunFinished,
    RunInterrupted,
    RunKind,
    RunResumed,
    RunSettings,
    RunStarted,
    RunStatus,
    StoreError,
    UsageError,
)
from agentforge.search import allocators, policies
from agentforge.store import Store
from agentforge.trackers import Delivery

from . import slow_imports
from ._base import RunInput, RunStart
from .checks import check_language, check_start
from .evaluators.background import Background
from .evaluators.cached import shared_conditions
from .judging_code import keep_code
from .kinds.pipelines import PIPELINES
from .pipeline import RunPipeline
from .run_settings import for_device, remembered

_CALLS: dict[str, type[LLMBegun | LLMAnswered | LLMFailed]] = {
    "begun": LLMBegun,
    "answered": LLMAnswered,
    "failed": LLMFailed,
}
_ENDS: dict[RunStatus, type[RunFinished | RunInterrupted | RunFailed]] = {
    RunStatus.FINISHED: RunFinished,
    RunStatus.INTERRUPTED: RunInterrupted,
    RunStatus.FAILED: RunFailed,
}

MOST_ERROR = 2000
"""Most characters of an error that a run keeps: a user's exception may hold a whole tensor."""


def start_run(
    start: RunStart,
    settings: Settings,
    *,
    device: str | DeviceSpec = "auto",
    out: Path | None = None,
    permission: Permission | None = None,
    on_event: OnEvent | None = None,
    store: Store | None = None,
) -> Report:
    """Begin a run of any kind and carry out all its phases.

    Args:
        device: its kind, or what `check_start` returned for the same arguments.
        out: folder for the artifact; None puts it below the run's own folder.
        permission: lower precision that the user allows.
        on_event: called with each event, in the calling thread or the search's threads. Those of
            a GPU's first use are sent before there is a run, and have no `run`.
        store: the database of the settings if it is open already; its connections are closed at the end.

    Raises:
        AgentForgeError: the run can be resumed.
        KeyboardInterrupt: the run was interrupted and can be resumed.
    """
    where = device
    if isinstance(where, str):
        tell = before_run(on_event)
        where = check_start(start, settings, device=where, out=out, permission=permission, progress=tell)
    check_agents(settings.search, settings.llm, settings.budget)
    with suppress(NoDatabaseError), Store(settings.url, create=False):
        pass  # a database that cannot be opened is refused before the target is loaded
    loading = Background(lambda: start.load(settings, where))
    slow_imports.import_search(traces=":" not in settings.search.coder)  # while the target is loaded
    found = loading.result()  # before the store makes files, perhaps in the folder that is read
    found = replace(found, settings=for_device(found.settings, where))
    check_language(found.settings.search.language)
    with store or Store(settings.url) as store:
        run = create_run(store, found, where, kind=start.kind, out=out, permission=permission)
        return execute(store, run, found.settings, where, out, on_event)


def before_run(on_event: OnEvent | None) -> Callable[[str], None]:
    """Tells a run's viewer what happens before the run goes on: such events are not stored."""

    def tell(text: str) -> None:
        if on_event is not None:
            on_event(Progress(text=text))

    return tell


def create_run(
    store: Store,
    found: RunInput,
    device: DeviceSpec,
    *,
    kind: RunKind,
    out: Path | None = None,
    permission: Permission | None = None,
) -> Run:
    """A new run, in the store, with all records that it begins with."""
    now, target = datetime.now(UTC), found.target
    slug = re.sub(r"[^a-z0-9]+", "-", target.name.lower()).strip("-")[:24] or "target"
    run = Run(
        id=f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}",
        kind=kind,
        target=store.save_target(target),
        name=target.name,
        origin=target.origin,
        device=device.name,
        status=RunStatus.CREATED,
        budget=found.settings.budget,
        created=now,
        updated=now,
    )
    for solution in found.solutions:
        store.save_solution(solution)
    store.create_run(run, [remembered(found.settings, device, out, permission), *found.records])
    return run


def execute(
    store: Store,
    run: Run,
    settings: Settings,
    device: DeviceSpec,
    out: Path | None,
    on_event: OnEvent | None,
    *,
    budget: Budget | None = None,
    searched: str = "",
) -> Report:
    """Carry out all phases; whatever stops them, the run says so and can be resumed.

    Args:
        searched: why the search takes no further step; empty if it may.
    """
    with opened(store, run, settings, device, on_event, out=out, budget=budget) as pipeline:
        run_log = pipeline.run_log
        pipeline.meter.stop(searched)
        keep_code(run_log)
        opening = RunStarted if run.status is RunStatus.CREATED else RunResumed
        out_text = str(pipeline.out) if pipeline.out else None
        run_log.event(
            opening(
                target=pipeline.target.name,
                device=device.name,
                out=out_text,
                seconds_used=run.seconds_used,
            )
        )
        with failures_told(pipeline):
            pipeline.run()
        end(pipeline, RunStatus.FINISHED)
    return build_report(store, run.id)


@contextmanager
def opened(
    store: Store,
    run: Run,
    settings: Settings,
    device: DeviceSpec,
    on_event: OnEvent | None,
    *,
    out: Path | None = None,
    agents: Agents | None = None,
    budget: Budget | None = None,
) -> Iterator[RunPipeline]:
    """The run's pipeline, under the run's lock.

    Args:
        out: folder for the artifact; None is what the run began with.
        agents: who proposes; None creates those that the settings name.
        budget: takes the place of the run's own, unless that is None.

    Raises:
        UsageError: the run began on another device, another process works on it, or the weights of its live
            module are gone.
    """
    check_device(run, device)
    check_weights(target := store.get_target(run.target))
    with store.lock_run(run.id), ExitStack() as stack:
        run = store.get_run(run.id) if budget is None else store.update_run(run.id, budget=budget)
        delivery = stack.enter_context(Delivery(run, settings.trackers, settings.tracker_options))
        run_log = RunLog(store, run, delivery.after(on_event), shared_conditions(device, settings))
        kept = run_log.record(RunSettings)
        meter = BudgetMeter(
            run.budget,
            seconds_used=run.seconds_used,
            stitched_s=run.stitched_s,
            least_stitching_s=settings.search.least_stitching_s,
            limit_s=settings.search.limit_s,
        )
        pipeline = PIPELINES[run.kind](
            target=target,
            run_log=run_log,
            meter=meter,
            settings=settings,
            device=device,
            agents=agents or create_agents(settings, run_log, meter.limit),
            policy=policies.create(settings.search.policy, options=settings.search.policy_options),
            allocator=allocators.create(settings.search.allocator),
            out=out.absolute() if out else Path(kept.out) if kept and kept.out else None,
            permission=kept.permission if kept else None,
        )
        pipeline.folder.mkdir(parents=True, exist_ok=True)
        yield pipeline


def check_device(run: Run, device: DeviceSpec) -> None:
    """Refuse a device that the run's numbers were not measured on.

    Raises:
        UsageError: the run began on another one.
    """
    if device.name != run.device:
        raise UsageError(
            f"run {run.id} was begun on {run.device}, and this is {device.name}: "
            "resume it there, or start a new one here"
        )


def create_agents(settings: Settings, run_log: RunLog, deadline: float | None = None) -> Agents:
    """The agents that the settings name; their calls of language models go through one ledger.

    Args:
        deadline: when these calls end at the latest, by `time.monotonic`.
    """
    search, llm, run = settings.search, settings.llm, run_log.run

    def told(call: LLMCall) -> None:
        if call.status != "begun":
            run_log.pay(call)
        run_log.event(
            _CALLS[call.status](
                role=call.role,
                model=call.model,
                attempt=call.attempt,
                tokens_in=call.tokens_in,
                tokens_out=call.tokens_out,
                tokens_cached=call.tokens_cached,
                dollars=call.dollars,
                seconds=round(call.seconds, 3),
                error=call.error,
            )
        )

    ledger = Ledger(run_log.store, run.id, run.budget, Prices(llm.prices), told, deadline)
    return Agents(
        planner=create_planner(search.planner, ledger, llm, search.agent_options),
        coder=create_coder(search.coder, ledger, llm, search.agent_options),
        judge=create_judge(search.judge, ledger, llm, search.agent_options),
        model_planner=create_model_planner(search.planner, ledger, llm),
        author=create_author(search, ledger, llm),
        editor=create_editor(search, ledger, llm),
    )


@contextmanager
def failures_told(pipeline: RunPipeline) -> Iterator[None]:
    """If something stops the phases inside, the run's status says so, as far as it can still be written."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(StoreError):
            end(pipeline, RunStatus.INTERRUPTED, "interrupted by the user")
        raise
    except BaseException as failure:
        with suppress(StoreError):
            error = " ".join(str(failure).split())[:MOST_ERROR] or type(failure).__name__
            end(pipeline, RunStatus.FAILED, error)
        raise


def end(pipeline: RunPipeline, status: RunStatus, error: str = "") -> None:
    """Store how a session of the run ended."""
    meter = pipeline.meter
    pipeline.run_log.set_status(status, error=error, seconds_used=meter.seconds, stitched_s=meter.stitched_s)
    pipeline.run_log.event(_ENDS[status](error=error))

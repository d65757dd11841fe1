"""One run: profile, search, stitch, prove, report. Each phase is kept, so that `resume` goes on after it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentforge.agents import (
    check_agents,
    create_author,
    create_coder,
    create_judge,
    create_model_planner,
    create_planner,
)
from agentforge.analysis import Report, build_report
from agentforge.config import LLMSettings, RefereeSettings, SearchSettings, Settings
from agentforge.devices import DeviceSpec, detect
from agentforge.frontends import FrontendOptions, load_target
from agentforge.languages import languages
from agentforge.llm import Ledger, Prices
from agentforge.loop import Agents, Journal, Meter, OnEvent
from agentforge.schema import Budget, LLMCall, MachineError, Run, RunStatus, StoreError, Target, UsageError
from agentforge.search import policies
from agentforge.store import Store

from .meanwhile import Meanwhile
from .phases import Phases


def optimize(
    spec: str,
    options: FrontendOptions,
    settings: Settings,
    *,
    device: str = "auto",
    out: Path | None = None,
    on_event: OnEvent | None = None,
) -> Report:
    """Make a target faster, as a new run.

    Args:
        spec: what the user points at.
        options: what the user said of its inputs.
        settings: budget, search, referee, database.
        device: kind of device, or `auto`.
        out: folder for the artifact; None puts it below the run's own folder.
        on_event: called with each event of the run.

    Raises:
        AgentForgeError: the message says what to do; what was done so far can be resumed.
        KeyboardInterrupt: the run was interrupted and can be resumed.
    """
    where = detect(device)
    settings = for_device(settings, where)
    loading = Meanwhile(lambda: load_target(spec, options))  # a child runs it; SDKs and graph take as long
    check_agents(settings.search, settings.llm)
    check_out(out)
    check_language(settings.search.language)
    import_module("agentforge.loop.graph")
    with Store(settings.url) as store:
        target = loading.result()
        run = create_run(store, target, settings, where)
        return go_on(store, run, target, settings, where, out, on_event)


def resume(
    identifier: str,
    settings: Settings,
    *,
    limits: Mapping[str, float | int] | None = None,
    out: Path | None = None,
    on_event: OnEvent | None = None,
) -> Report:
    """Go on with a run where it stopped; a finished one is only searched further under new limits.

    Args:
        identifier: the run, or the beginning of its identifier.
        settings: as for `optimize`; search and referee settings that are not set there explicitly are
            those that the run began with.
        limits: `minutes`, `attempts`, `dollars`, `tokens` that take the place of the run's own.
        out: as for `optimize`; None is what the run began with.
        on_event: as for `optimize`.

    Raises:
        UsageError: no such run, or another process works on it.
    """
    check_out(out)
    with Store(settings.url) as store:
        run = store.get_run(identifier)
        if run.status is RunStatus.FINISHED and not limits:
            return build_report(store, run.id)
        if limits:
            run = store.update_run(run.id, budget=_budget(run.budget, limits))
        target = store.get_target(run.target)
        settings = _as_begun(Journal(store, run), settings)
        where = detect(target.device)
        if where.name != run.device:
            raise UsageError(
                f"run {run.id} was begun on {run.device}, and this is {where.name}: "
                "resume it there, or start a new one here"
            )
        return go_on(store, run, target, settings, where, out, on_event)


def go_on(
    store: Store,
    run: Run,
    target: Target,
    settings: Settings,
    where: DeviceSpec,
    out: Path | None,
    on_event: OnEvent | None,
) -> Report:
    """All phases under the run's lock; whatever stops them, the run says so and can be resumed."""
    with store.lock_run(run.id):
        journal = Journal(store, run, on_event)
        opening = "run.resumed" if journal.first("run.started") else "run.started"
        out = out or _first_out(journal)
        journal.event(
            opening,
            run=run.id,
            target=target.name,
            device=where.name,
            settings=begun(settings),
            out=str(out) if out else None,
        )
        phases = _kind(journal)(
            target=target,
            journal=journal,
            meter=Meter(run.budget, seconds_used=run.seconds_used),
            settings=settings,
            device=where,
            agents=_agents(settings, journal),
            policy=policies.create(settings.search.policy),
            out=out,
        )
        _carry_out(phases, journal)
    return build_report(store, run.id)


def _kind(journal: Journal) -> type[Phases]:
    """The phases of a run: of a model, of a kernel that the user gave, of words."""
    from .intent import IntentPhases, begins_with_words  # these import this module
    from .kernel import KernelPhases, begins_with_a_kernel

    if begins_with_words(journal):
        return IntentPhases
    return KernelPhases if begins_with_a_kernel(journal) else Phases


def _carry_out(phases: Phases, journal: Journal) -> None:
    """Run the phases; the run's status tells how they ended, as far as it can still be written."""
    status, error = RunStatus.FAILED, ""
    try:
        phases.run()
        status = RunStatus.FINISHED
    except KeyboardInterrupt:
        status, error = RunStatus.INTERRUPTED, "interrupted by the user"
        raise
    except BaseException as failure:
        error = " ".join(str(failure).split()) or type(failure).__name__
        raise
    finally:
        with suppress(StoreError) if error else nullcontext():
            journal.set_status(status, error=error, seconds_used=phases.meter.seconds)
            journal.event(f"run.{status.value}", run=journal.run.id, error=error)


def create_run(store: Store, target: Target, settings: Settings, where: DeviceSpec) -> Run:
    """A new run of a target, in the store."""
    now = datetime.now(UTC)
    slug = re.sub(r"[^a-z0-9]+", "-", target.name.lower()).strip("-")[:24] or "target"
    run = Run(
        id=f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}",
        target=store.save_target(target),
        name=target.name,
        origin=target.origin,
        device=where.name,
        status=RunStatus.CREATED,
        budget=settings.budget,
        created=now,
        updated=now,
    )
    store.create_run(run)
    return run


def _agents(settings: Settings, journal: Journal) -> Agents:
    """The run's proposers; what they ask of language models goes through one ledger."""
    search, llm, run = settings.search, settings.llm, journal.run

    def told(call: LLMCall) -> None:
        journal.event(
            f"llm.{call.status}",
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

    ledger = Ledger(journal.store, run.id, run.budget, Prices(llm.prices), told)
    return Agents(
        planner=create_planner(search.planner, ledger, llm),
        coder=create_coder(search.coder, ledger, llm),
        judge=create_judge(search.judge, ledger, llm),
        model_planner=create_model_planner(search.planner, ledger, llm),
        author=create_author(search, ledger, llm),
    )


def check_out(out: Path | None) -> None:
    """Say before hours of work, and not after, that the artifact cannot go there."""
    if out is None or not out.exists():
        return
    if not out.is_dir() or (any(out.iterdir()) and not (out / "plan.json").is_file()):
        raise UsageError(f"--out {out} holds something that is no artifact: choose an empty or new folder")


def for_device(settings: Settings, where: DeviceSpec) -> Settings:
    """Settings whose kernels run on a device: Triton for a GPU, where the user named no language."""
    if where.kind != "cuda" or "language" in settings.search.model_fields_set:
        return settings
    return settings.model_copy(update={"search": settings.search.model_copy(update={"language": "triton"})})


def check_language(name: str) -> None:
    """Say before anything is profiled that its kernels could not be built."""
    availability = languages.create(name).available()
    if not availability.ok:
        raise MachineError(f"kernels in {name} cannot be built here: {availability.detail}")


def _first_out(journal: Journal) -> Path | None:
    started = journal.first("run.started")
    out = started.data.get("out") if started else None
    return Path(out) if isinstance(out, str) else None


def begun(settings: Settings) -> dict[str, Any]:
    """What a run remembers of the settings that it began with."""
    return {
        "search": settings.search.model_dump(mode="json"),
        "referee": settings.referee.model_dump(mode="json"),
        "llm": settings.llm.model_dump(mode="json"),
    }


def _as_begun(journal: Journal, settings: Settings) -> Settings:
    """`settings`, with what is not set explicitly there as the run began."""
    started = journal.first("run.started")
    begun = started.data.get("settings") if started else None
    if not isinstance(begun, dict):
        return settings
    search = {**begun["search"], **settings.search.model_dump(exclude_unset=True)}
    referee = {**begun["referee"], **settings.referee.model_dump(exclude_unset=True)}
    llm = {**begun.get("llm", {}), **settings.llm.model_dump(exclude_unset=True)}
    return settings.model_copy(
        update={
            "search": SearchSettings.model_validate(search),
            "referee": RefereeSettings.model_validate(referee),
            "llm": LLMSettings.model_validate(llm),
        }
    )


def _budget(before: Budget, limits: Mapping[str, float | int]) -> Budget:
    try:
        return Budget.model_validate({**before.model_dump(), **limits})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"limit {first['loc'][0]}: {first['msg']}") from error

"""One item in a process of its own: a run that begins, or goes on, with the campaign's settings.

The server that forks such processes imports this module, and with it all that an item would import.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentforge.config import Settings, load_settings
from agentforge.frontends import FrontendOptions
from agentforge.ladder import find_device
from agentforge.runs import ModelStart, resume, slow_imports, start_run
from agentforge.schema import (
    Budget,
    CampaignItem,
    Event,
    HarnessError,
    Progress,
    Run,
    RunStatus,
    SuiteProblem,
    UnsupportedTargetError,
    UsageError,
)
from agentforge.store import Store

from .native.check import check_natively
from .report import run_of, run_speedup
from .start import of_campaign
from .suites._base import keep_copy, read_problem
from .suites.packages import check_packages

slow_imports.import_all()

CALLS = 100
"""A problem is unsupported if that many forwards take longer than an item may: a verdict alone needs them."""
_CHECKED = 0.9
"""Share of an item's time at whose end a task's own checker is ended; the rest is for our processes."""


def run_item(payload: Mapping[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Carry out an item that a worker has taken.

    Args:
        payload: `item`, `overrides` of settings, as on the command line, and `limit_s` of the item's wall
            time, for all its visits together.
        report: receives a line for each event.

    Returns:
        `run` and `headline`.

    Raises:
        AgentForgeError: as for `start_run` and `resume`.
    """
    ends = time.monotonic() + _CHECKED * payload["limit_s"]
    item = CampaignItem.model_validate(payload["item"])
    settings = load_settings(payload["overrides"])
    with Store(settings.url) as store:
        campaign = store.get_campaign(item.campaign)
        problem = store.campaign_problem(item.campaign, item.problem)
        arm = next(arm for arm in campaign.arms if arm.name == item.arm)
        run = run_of(store, item.run)  # an item whose run was removed begins anew
        if run is not None and run.device != find_device(campaign.device, settings.cache).name:
            item, run = item.model_copy(update={"run": None}), None  # so does one of another device
        budget = visited(campaign.budget, item.visits, run if item.visits > 1 else None)
        if arm.paid:
            budget = without(budget, _spent_by_others(store, item))
        campaign = campaign.model_copy(update={"budget": budget, "limit_s": payload["limit_s"]})
        settings, attached, lock = of_campaign(campaign, arm, settings), item.run, threading.Lock()

        def on_event(event: Event) -> None:
            nonlocal attached
            with lock:  # events also come from the search's threads
                if event.run and event.run != attached:
                    if not store.attach_run(item, event.run):
                        raise HarnessError("the item was given to another worker")
                    attached = event.run
                report(event.text if isinstance(event, Progress) else event.kind)

        if run is not None:
            store.free_run(run.id)  # the worker has the item's lease
            limits = budget.model_dump(exclude_none=True) if item.visits > 1 else None
            found = resume(run.id, settings, limits=limits, on_event=on_event, store=store)
        else:
            if problem.unsupported:
                raise UnsupportedTargetError(problem.unsupported)
            target = local_target(problem, settings)
            check_packages(problem, campaign.suite, campaign.name, local_file(problem, settings).parent)
            start = ModelStart(target, _options(problem, campaign.limit_s / CALLS))
            found = start_run(start, settings, device=campaign.device, on_event=on_event, store=store)
        several = problem.workloads or [{}]  # the first one is checked
        own = problem.native.get("tolerance", several[0].get("tolerance"))
        own = own if campaign.suite.startswith("sol:") else None  # earlier versions kept FlashInfer's too
        if problem.native.get("checker") or own is not None:
            report("the task's own checker")
            check_natively(store, found.run.id, settings, campaign.device, ends, own)
        if item.result_run not in (None, found.run.id) and (
            run_speedup(store, found.run.id) >= run_speedup(store, item.result_run)
        ):
            store.attach_result(item, found.run.id)
    return {"run": found.run.id, "headline": found.headline}


def visited(budget: Budget, visits: int, run: Run | None = None) -> Budget:
    """The budget of a run after a number of visits.

    A verdict in progress may take a search beyond its minutes. A run that has finished therefore gets at
    least the minutes of one visit beyond those that it used without stitching.

    Args:
        budget: of one visit.
        run: as the last visit left it; None before the first one.
    """
    limits = {name: value * visits for name, value in budget.model_dump(exclude_none=True).items()}
    if run is not None and budget.minutes is not None:
        finished = run.status is RunStatus.FINISHED
        used = (run.seconds_used - run.stitched_s) / 60
        least = used + budget.minutes if finished else run.budget.minutes or 0.0
        limits["minutes"] = max(limits["minutes"], least)
    return budget.model_copy(update=limits)


def without(budget: Budget, dollars: float) -> Budget:
    """The budget of a run whose item spent dollars in other runs, which were given up.

    Raises:
        UsageError: nothing is left.
    """
    if budget.dollars is None or not dollars:
        return budget
    if dollars >= budget.dollars:
        raise UsageError(
            f"its runs that were given up spent {dollars:.2f} dollars, and its share of --dollars is "
            f"{budget.dollars:.2f}: start another campaign with more for it"
        )
    return budget.model_copy(update={"dollars": budget.dollars - dollars})


def _spent_by_others(store: Store, item: CampaignItem) -> float:
    runs = store.campaign_runs(item.campaign).get(item.id, ())
    return sum(call.dollars or 0.0 for run in runs if run != item.run for call in store.calls(run))


def local_file(problem: SuiteProblem, settings: Settings) -> Path:
    """The problem's file on this machine: its own, or a copy if that is not there with this text."""
    path = Path(problem.file)
    try:
        same = not problem.file or read_problem(path) == problem.source
    except UsageError:
        same = False
    if not same:
        path = settings.home / "problems" / problem.hash / path.name
        keep_copy(path, problem.source.encode())  # another worker may read it now
    return path


def local_target(problem: SuiteProblem, settings: Settings) -> str:
    """The problem's target on this machine."""
    if not problem.file:
        return problem.target
    return problem.target.replace(problem.file, str(local_file(problem, settings)), 1)


def _options(problem: SuiteProblem, longest_s: float) -> FrontendOptions:
    return FrontendOptions(
        longest_s=longest_s,
        inputs=problem.inputs,
        input_shapes=problem.input_shapes,
        input_dtypes=problem.input_dtypes,
        init_args=problem.init_args,
        dtype=problem.dtype,
    )

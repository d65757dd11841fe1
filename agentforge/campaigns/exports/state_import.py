"""Take over a campaign's state from another machine's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from agentforge.schema import (
    CampaignItem,
    CampaignState,
    ItemState,
    LLMCall,
    StoreError,
    SuiteProblem,
    UsageError,
)
from agentforge.store import Store
from agentforge.store.campaigns.records import ELSEWHERE

from ..report import run_of, run_speedup
from ..start import HIDDEN, check_served
from ..suites import Selection, open_suite
from .state import ItemLine, ItemResult, State, published

_CUT = ("arms", "settings")
"""Fields of a campaign of which a file without solutions leaves out parts."""
_WORKER = f"{ELSEWHERE}:0"
"""Of an imported item: its run's checkpoints are not on this machine."""


class Imported(NamedTuple):
    """What an import did."""

    name: str
    """Of the campaign."""
    taken: int
    """Results that this database has now and lacked before."""
    left: int
    """Other results of the file: a worker has their items, or there are results that are as good."""


def import_state(store: Store, state: State, suite: str | None) -> Imported:
    """Keep a campaign with its results; one that is here already gets the results that it lacks.

    A result also takes the place of a failure, of a slower one, and of one as fast after fewer visits.
    What the item's runs spent elsewhere, and their wall time, count in any case, and once. The limit of time
    stays as it is here.

    Args:
        suite: `NAME:PLACE` of the problems on this machine. Empty only if the campaign is here already, the
            file has their text, or all items are over: then nothing can be retried. None for a store that is
            only read.

    Raises:
        UsageError: problems are missing or have another text, a campaign of this name has other settings, or
            one that is not over has a model whose URL is not in the file.
    """
    known = store.find_campaign(state.campaign.name)
    place = suite or (known or state.campaign).suite
    kept: dict[str, object] = {}
    if known:
        kept["limit_s"] = known.limit_s
        bare, theirs = published(known), published(state.campaign)
        kept |= {name: getattr(known, name) for name in _CUT if getattr(bare, name) == getattr(theirs, name)}
    campaign = state.campaign.model_copy(update={"state": CampaignState.OPEN, "suite": place, **kept})
    arms = campaign.arms
    if "arms" in kept:  # the file may say what an earlier one hid
        pairs = zip(arms, state.campaign.arms, strict=True)
        arms = tuple(theirs if HIDDEN in ours.agent else ours for ours, theirs in pairs)
    if suite is not None:
        unfinished = (line.item.arm for line in state.items if not line.item.state.over)
        check_served(campaign.model_copy(update={"arms": arms}), unfinished)
    problems = list({line.problem.id: line.problem for line in state.items}.values())
    whole = all(line.whole for line in state.items)
    if suite:
        problems = list(_with_text(suite, {line.problem.id: line.hash for line in state.items}))
    elif not (suite is None or known or all(line.whole or line.item.state.over for line in state.items)):
        raise UsageError(f"campaign {campaign.name} is not over: name the place of its problems with --suite")
    if known and (suite or whole):
        hashes = {problem.id: problem.hash for problem in store.campaign_problems(known.name)}
        lacking = [problem for problem in problems if hashes.get(problem.id) != problem.hash]
        if lacking or place != known.suite:  # it was imported without texts, or they are in another place
            store.restore_problems(campaign, problems if suite else lacking)
    store.create_campaign(campaign, problems)
    if arms != campaign.arms:
        store.set_campaign_arms(campaign.name, arms)
    found = {(item.problem, item.arm): item for item in store.campaign_items(campaign.name)}
    taken = left = 0
    for line in state.items:
        here = found[line.item.problem, line.item.arm]
        if line.result and here.result_run == line.result.run.id and run_of(store, here.result_run):
            _keep_artifact(store, line.result)  # an earlier file may have had no solutions
        took = _take(store, line, here)
        if line.result_run not in (None, here.result_run):
            taken += took
            left += not took
        for spent in line.spent:
            with suppress(StoreError):  # it is here already
                store.create_run(spent.run)
            _keep_calls(store, spent.calls)
            store.count_run(here.id, spent.run.id)
        store.count_seconds(here.id, line.seconds(here))
    return Imported(campaign.name, taken, left)


def _take(store: Store, line: ItemLine, here: CampaignItem) -> bool:
    """Give the item that is here what it lacks; returns whether its result is the file's now."""
    theirs, item = line.result_run, line.item
    new, old = line.result.speedup if line.result else 0.0, run_speedup(store, here.result_run)
    wins, better = theirs is not None and new >= old, _better(item, here)
    faster = theirs not in (None, here.result_run) and new > old and here.state is not ItemState.RUNNING
    if not (better or faster):
        return False
    if line.result is not None:
        _keep(store, line.result)
    known = here
    if better:
        state = item.state if item.state.over else ItemState.WAITING
        known = item.model_copy(update={"state": state, "worker": _WORKER})
    known = known.model_copy(update={"result_run": theirs if wins else here.result_run})
    return store.restore_item(here, known) and wins


def _better(item: CampaignItem, here: CampaignItem) -> bool:
    """Whether state and visits of the file's item take the place of those of the one here."""
    if here.state is ItemState.RUNNING:
        return False
    if here.state is ItemState.WAITING:
        begun = here.run or here.result_run
        over = item.state.over and item.visits >= here.visits
        return over or (item.result_run is not None and not begun)
    if item.state is not ItemState.DONE:
        return False
    failed = here.state is not ItemState.DONE and (item.visits == here.visits or here.result_run is None)
    return failed or item.visits > here.visits


def _with_text(suite: str, wanted: Mapping[str, str]) -> Iterator[SuiteProblem]:
    """Problems of a suite by identifier, in the wanted order, if they have the wanted hashes."""
    found = {problem.id: problem for problem in open_suite(suite).problems(Selection())}
    for identifier, content in wanted.items():
        problem = found.get(identifier)
        if problem is None or problem.hash != content:
            said = f"no problem {identifier}"
            if problem is not None:
                said = f"another text of {identifier}, or an older version of AgentForge made the campaign"
            raise UsageError(f"{suite} has {said}: name the suite that the campaign was over")
        yield problem


def _keep(store: Store, result: ItemResult) -> None:
    run, stitched, native = result.run, result.stitched, result.native
    with suppress(StoreError):  # it is here already
        store.create_run(run)
    ids = [store.save_evaluation(evaluation, run.id) for evaluation in result.evaluations]
    if stitched is not None and stitched.evaluation:  # the identifier is that of the whole evaluation
        changed = {"evaluation": ids[0]}
        native = native and native.model_copy(
            update=changed if native.evaluation == stitched.evaluation else {}
        )
        stitched = stitched.model_copy(update=changed)
    for record in (result.search, stitched, native, result.judged):
        if record is not None:
            store.save_record(run.id, record)
    _keep_calls(store, result.calls)
    _keep_artifact(store, result)


def _keep_calls(store: Store, calls: Iterable[LLMCall]) -> None:
    for call in calls:
        here = store.find_call(call.key)
        if here is None or here.status == "begun":  # else its answer is here
            store.save_call(call)


def _keep_artifact(store: Store, result: ItemResult) -> None:
    if result.target is not None and (key := store.save_target(result.target)) != result.run.target:
        store.update_run(result.run.id, target=key)
    if result.solution is not None:
        store.save_solution(result.solution)
    if result.artifact is not None:
        store.save_record(result.run.id, result.artifact)

"""A campaign's state as one compressed file: another machine imports it, reports it and does the rest.

The first line of the file names the format, the second one is the campaign, and each other line is an item.
Without solutions it has no text of problems and solutions, and no path of this machine, so it can be
published. With solutions, the other machine can write artifacts.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from agentforge.schema import (
    ArtifactReport,
    Campaign,
    CampaignItem,
    CampaignState,
    Evaluation,
    FrozenModel,
    ItemState,
    JudgingCode,
    LLMCall,
    NativeVerdict,
    ReasonCode,
    Run,
    SearchSummary,
    Solution,
    StitchResult,
    StoreError,
    SuiteProblem,
    Target,
    UsageError,
)
from agentforge.store import Store
from agentforge.whole_file import whole_file

from ..report import run_of, run_speedup
from ..scores import has_kernels, result_speedup
from ..suites import Selection, open_suite

FORMAT, VERSION = "agentforge-campaign", 1
_ELSEWHERE = "elsewhere:0"
"""Worker of an imported item: its run's checkpoints are not on this machine."""


class ItemResult(FrozenModel):
    """The run that has an item's result, or that failed, as far as reports need it."""

    run: Run
    search: SearchSummary | None = None
    stitched: StitchResult | None = None
    native: NativeVerdict | None = None
    judged: JudgingCode | None = None
    evaluations: tuple[Evaluation, ...] = ()
    """The end-to-end evaluation, then those that say that the problem is weak."""
    calls: tuple[LLMCall, ...] = ()
    target: Target | None = None
    """This and the next two make the artifact; None without solutions, or if the artifact has no kernels."""
    solution: Solution | None = None
    artifact: ArtifactReport | None = None

    @property
    def speedup(self) -> float:
        """As `run_speedup`."""
        final = self.evaluations[0] if self.stitched and self.stitched.evaluation else None
        return result_speedup(self.stitched, final)


class Spent(FrozenModel):
    """A run that called language models."""

    run: Run
    calls: tuple[LLMCall, ...]


class ItemLine(FrozenModel):
    """One line: an item, its problem, its result if there is one, and what its runs spent."""

    item: CampaignItem
    problem: SuiteProblem
    hash: str
    """Of the problem with its text."""
    result: ItemResult | None = None
    others: tuple[Spent, ...] = ()
    """Its runs that have no result here: given up, or in progress. Old files lack them."""

    @property
    def result_run(self) -> str | None:
        """The run with the item's result; old files have no word for it."""
        return self.item.result_run or (self.item.run if self.item.state is ItemState.DONE else None)

    @property
    def spent(self) -> tuple[Spent, ...]:
        """All runs that called language models."""
        own = self.result
        return (*([Spent(run=own.run, calls=own.calls)] if own and own.calls else ()), *self.others)

    @property
    def whole(self) -> bool:
        """Whether the problem has its text."""
        return self.problem.hash == self.hash


class State(FrozenModel):
    """A whole file."""

    campaign: Campaign
    items: tuple[ItemLine, ...]


def export_state(store: Store, name: str, path: Path, home: Path, *, solutions: bool = False) -> None:
    """Write a campaign to a file, atomically, with the results that there are.

    Args:
        home: AgentForge's folder on this machine, which messages may name.
        solutions: with the text of solutions and problems, and with paths of this machine.

    Raises:
        UsageError: there is no such campaign, or the file cannot be written.
    """
    campaign = store.get_campaign(name)
    problems = {problem.id: problem for problem in store.campaign_problems(name)}
    kind, _, place = campaign.suite.partition(":")
    public = campaign.model_copy(update={"suite": f"{kind}:{Path(place).name}"})
    runs = store.campaign_runs(name)
    lines = [json.dumps({"format": FORMAT, "version": VERSION}), public.model_dump_json()]
    for item in store.campaign_items(name):
        problem = problems[item.problem]
        run = run_of(store, item.result_run or (item.run if item.state.over else None))
        result = None if run is None else _result(store, run)
        ours, content = item.model_copy(update={"worker": ""}), problem.hash
        if solutions:
            result = result and _with_artifact(store, result)
        else:
            bare = {"source": "", "file": "", "target": Path(problem.target).name}
            problem = problem.model_copy(update=bare)
        others = tuple(
            Spent(run=_bare(store.get_run(other)), calls=calls)
            for other in sorted(runs.get(item.id, ()))
            if (run is None or other != run.id) and (calls := _calls(store, other))
        )
        line = ItemLine(item=ours, problem=problem, hash=content, result=result, others=others)
        lines.append(line.model_dump_json(exclude_defaults=not solutions))  # a target needs its defaults
    text = "\n".join(lines) + "\n"
    for folder, stands_for in ((home.absolute(), "HOME"), (Path(place), "SUITE"), (Path.cwd(), "FOLDER")):
        if len(folder.parts) > 1 and not solutions:  # a solution with another text is another one
            text = re.sub(_path(folder), stands_for, text)
    try:
        with whole_file(path) as draft:
            draft.write_bytes(gzip.compress(text.encode(), mtime=0))
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): name another file") from error


def _path(folder: Path) -> str:
    """Pattern of an absolute folder, alone or before a `/`, in JSON: not `/work` in `a/work` or `/worker`."""
    begins = r"(?:(?<![\w.~-])|(?<=\\[nrt]))"  # JSON writes a new line as two characters, the last a letter
    return rf"{begins}{re.escape(str(folder))}(?![\w~-]|\.\w)"


def _result(store: Store, run: Run) -> ItemResult:
    stitched = store.get_record(run.id, StitchResult)
    final = store.get_evaluation(stitched.evaluation) if stitched and stitched.evaluation else None
    trials = store.run_evaluations(run.id, store.definition_of(run))
    weak = (e for e in trials if e.because(ReasonCode.WEAK_TASK))
    return ItemResult(
        run=_bare(run),
        search=store.get_record(run.id, SearchSummary),
        stitched=stitched and stitched.model_copy(update={"artifact": ""}),
        native=store.get_record(run.id, NativeVerdict),
        judged=store.get_record(run.id, JudgingCode),
        evaluations=tuple(map(_public, ([final] if final else []) + [e for e in weak if e != final])),
        calls=_calls(store, run.id),
    )


def _bare(run: Run) -> Run:
    """A run without paths of this machine."""
    return run.model_copy(update={"origin": Path(run.origin).name, "artifact": None})


def _calls(store: Store, run: str) -> tuple[LLMCall, ...]:
    """What a run's calls cost, without what was said."""
    return tuple(call.model_copy(update={"response": "", "error": ""}) for call in store.calls(run))


def _with_artifact(store: Store, result: ItemResult) -> ItemResult:
    """The result with what its artifact is made of, if it has kernels and they are here."""
    stitched = result.stitched
    if stitched is None or stitched.solution is None or not has_kernels(stitched):
        return result
    try:
        target, solution = store.get_target(result.run.target), store.get_solution(stitched.solution)
    except UsageError:  # it was imported without them
        return result
    artifact = store.get_record(result.run.id, ArtifactReport)
    return result.model_copy(update={"target": target, "solution": solution, "artifact": artifact})


def _public(evaluation: Evaluation) -> Evaluation:
    return evaluation.model_copy(update={"log": "", "diagnostics": (), "findings": (), "metrics": ()})


def read_state(path: Path) -> State:
    """The content of a file of `export_state`.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            head, campaign, *items = file
        if json.loads(head) != {"format": FORMAT, "version": VERSION}:
            raise ValueError("it begins with another format")
        state = State(
            campaign=Campaign.model_validate_json(campaign),
            items=tuple(map(ItemLine.model_validate_json, items)),
        )
        found = {(line.problem.id, line.item.arm) for line in state.items}
        wanted = state.campaign.problems * len(state.campaign.arms)
        if len(found) != wanted or len(items) != wanted:
            raise ValueError(f"it has {len(items)} of {wanted} items")
        return state
    except (OSError, EOFError, zlib.error, ValueError, ValidationError) as error:
        why = str(error).partition("\n")[0]
        raise UsageError(
            f"{path} is no state of a campaign ({why}): write one with `agentforge campaign export NAME "
            f"{path.name} --format state`"
        ) from error


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
    What the item's runs spent elsewhere counts in any case.

    Args:
        suite: `NAME:PLACE` of the problems on this machine. Empty only if the campaign is here already, the
            file has their text, or all items are over: then nothing can be retried. None for a store that is
            only read.

    Raises:
        UsageError: problems are missing or have another text, or a campaign of this name has other settings.
    """
    known = next((one for one in store.list_campaigns() if one.name == state.campaign.name), None)
    place = suite or (known or state.campaign).suite
    campaign = state.campaign.model_copy(update={"state": CampaignState.OPEN, "suite": place})
    problems = list({line.problem.id: line.problem for line in state.items}.values())
    whole = all(line.whole for line in state.items)
    if suite:
        problems = list(_with_text(suite, {line.problem.id: line.hash for line in state.items}))
    elif not (suite is None or known or all(line.whole or line.item.state.over for line in state.items)):
        raise UsageError(f"campaign {campaign.name} is not over: name the place of its problems with --suite")
    if known and (suite or whole):
        hashes = {problem.id: problem.hash for problem in store.campaign_problems(known.name)}
        if lacking := [problem for problem in problems if hashes.get(problem.id) != problem.hash]:
            store.restore_problems(campaign, lacking)  # it was imported without texts
    store.create_campaign(campaign, problems)
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
        known = item.model_copy(update={"state": state, "worker": _ELSEWHERE})
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
            what = "no problem" if problem is None else "another text of"
            raise UsageError(f"{suite} has {what} {identifier}: name the suite that the campaign was over")
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

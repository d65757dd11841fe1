"""A campaign's state as one compressed file: another machine imports it, reports it and does the rest.

The first line of the file names the format, the second one is the campaign, and each other line is an item.
Without solutions it has no text of problems and solutions, and no path or name of this machine or of one that
serves a model, so it can be published. With solutions, the other machine can write artifacts.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from agentforge.schema import (
    ArtifactReport,
    Campaign,
    CampaignItem,
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
    SuiteProblem,
    Target,
    UsageError,
)
from agentforge.store import Store
from agentforge.whole_file import whole_file

from ..report import run_of
from ..scores import has_kernels, result_speedup
from ..start import HIDDEN, NAME
from ..suites._base import is_id

FORMAT, VERSION = "agentforge-campaign", 1
_WHOLE = "all"
"""Key of all tries of an item in an old file."""
_SERVER = re.compile(r"(?<=@)(https?:)//(?!localhost\b|127\.|\[::1\])[^/\s\"\\]+")
"""In a model's specification, the machine that serves it, unless that is the worker's own."""
_DRIFT_S = 0.5
"""Seconds by which those of an item and of its tries may differ: a server reads its clock for each."""


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
    tries: dict[str, float] = {}
    """Wall seconds of each try that has ended, by `Try.key`. Old files lack them."""

    def seconds(self, here: CampaignItem) -> dict[str, float]:
        """As `tries`; all seconds of an old file as one try, unless the item that is here has some."""
        whole = self.item.seconds and not here.seconds
        return self.tries or ({_WHOLE: self.item.seconds} if whole else {})

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
    named = {"suite": f"{kind}:{Path(place).name}"}
    public = (campaign if solutions else published(campaign)).model_copy(update=named)
    runs, tries = store.campaign_runs(name), _seconds_of_tries(store, name)
    lines = [json.dumps({"format": FORMAT, "version": VERSION}), public.model_dump_json()]
    for item in store.campaign_items(name):
        problem = problems[item.problem]
        run = run_of(store, item.result_run or (item.run if item.state.over else None))
        result = None if run is None else _result(store, run)
        ours, content = item.model_copy(update={"worker": ""}), problem.hash
        if solutions:
            result = result and _with_artifact(store, result)
        else:
            bare = {"source": "", "file": "", "files": {}, "target": Path(problem.target).name}
            problem = problem.model_copy(update=bare)
        others = tuple(
            Spent(run=_bare(store.get_run(other)), calls=calls)
            for other in sorted(runs.get(item.id, ()))
            if (run is None or other != run.id) and (calls := _calls(store, other))
        )
        line = ItemLine(
            item=ours,
            problem=problem,
            hash=content,
            result=result,
            others=others,
            tries=_whole(tries[item.id], item.seconds),
        )
        lines.append(line.model_dump_json(exclude_defaults=not solutions))  # a target needs its defaults
    text = "\n".join(lines) + "\n"
    if not solutions:  # a solution with another text is another one
        text = _without_places(text, ((home.absolute(), "HOME"), (Path(place), "SUITE")))
        for server in filter(None, (_SERVER.search(arm.agent) for arm in campaign.arms)):
            text = text.replace(server[0], f"{server[1]}{HIDDEN}")  # also in reasons
        text = _without_server(text)
    try:
        with whole_file(path) as draft:
            draft.write_bytes(gzip.compress(text.encode(), mtime=0))
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): name another file") from error


def published(campaign: Campaign) -> Campaign:
    """A campaign whose arms and settings name no file and no machine."""
    llm = {name: value for name, value in campaign.settings.llm.items() if name not in ("prices", "record")}
    arms = tuple(arm.model_copy(update={"agent": _without_place(arm.agent)}) for arm in campaign.arms)
    return campaign.model_copy(
        update={"arms": arms, "settings": campaign.settings.model_copy(update={"llm": llm})}
    )


def _without_place(agent: str) -> str:
    kind, _, place = agent.partition(":")
    return f"{kind}:{Path(place).name}" if kind == "replay" else _without_server(agent)


def _without_server(text: str) -> str:
    return _SERVER.sub(rf"\1{HIDDEN}", text)


def _seconds_of_tries(store: Store, name: str) -> dict[int, dict[str, float]]:
    """See `ItemLine.tries`, by item."""
    found = defaultdict[int, dict[str, float]](dict)
    for one in store.campaign_tries(name):
        if one.seconds:
            found[one.item][one.key] = one.seconds
    return found


def _whole(tries: dict[str, float], seconds: float) -> dict[str, float]:
    """With what an older version imported: the item's seconds without those of its tries."""
    rest = seconds - sum(tries.values())
    return tries | ({_WHOLE: tries.get(_WHOLE, 0.0) + rest} if rest > _DRIFT_S else {})


def _without_places(text: str, known: Sequence[tuple[Path, str]]) -> str:
    """A text with words for this machine's folders, and for the machines of workers that died.

    Args:
        known: folders with their words, which come before others.
    """
    own = Path(sys.prefix if sys.prefix != sys.base_prefix else "/")
    more = ((Path.cwd(), "FOLDER"), (own, "PYTHON"), (Path(tempfile.gettempdir()), "TMP"), (Path.home(), "~"))
    for folder, word in (*known, *more):
        if len(folder.parts) > 1:
            text = re.sub(_path(folder), word, text)
    return re.sub(r"worker \S+:[\d.]+ died", "worker HOST died", text)


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
        _check(state)
        return state
    except (OSError, EOFError, zlib.error, ValueError, ValidationError) as error:
        why = str(error).partition("\n")[0]
        raise UsageError(
            f"{path} is no state of a campaign ({why}): write one with `agentforge campaign export NAME "
            f"{path.name} --format state`"
        ) from error


def _check(state: State) -> None:
    """Refuse names that would be other paths for exports and commands, and lines that do not fit together.

    Raises:
        ValueError: there is one.
    """
    arms = {arm.name for arm in state.campaign.arms}
    names = {state.campaign.name, *arms}
    for line in state.items:
        names |= {one.run.id for one in line.others} | ({line.result.run.id} if line.result else set())
        if not (is_id(line.problem.id) and is_id(line.problem.definition)):
            raise ValueError(f"problem {line.problem.id!r} or its definition has no usable name")
        if line.item.problem != line.problem.id or line.item.arm not in arms:
            raise ValueError(f"the item of {line.problem.id!r} has another problem or an unknown arm")
    if wrong := sorted(name for name in names if not NAME.fullmatch(name)):
        raise ValueError(f"{wrong[0]!r} is no name of a campaign, an arm or a run")

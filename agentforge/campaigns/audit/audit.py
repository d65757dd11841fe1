"""Judge submissions with the referee, and compare the verdicts with the claims."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path

from agentforge._version import __version__
from agentforge.config import Settings, check_threads
from agentforge.devices import DeviceSpec
from agentforge.frontends import FrontendOptions, load_target
from agentforge.ladder import find_device
from agentforge.languages import read_solution
from agentforge.loop.run_log import spoiled
from agentforge.referee import EvaluationRequest, Referee
from agentforge.runs.evaluators.cached import conditions_of
from agentforge.schema import (
    AgentForgeError,
    Definition,
    Evaluation,
    EvaluationStatus,
    FrozenModel,
    HarnessError,
    Interval,
    Level,
    Solution,
    StoreError,
    Target,
    UsageError,
    Workload,
)
from agentforge.store import Store

from ..suites.packages import missing_package
from ._base import Claim, Submission

_VARIANTS = {"ada", "d", "laptop", "max", "mobile", "super", "ti"}
"""Words that make another device of a GPU's name."""


class Outcome(StrEnum):
    """A verdict beside its claim."""

    CONFIRMED = "confirmed"
    """Verified, and at least as fast as claimed within the interval; or no speedup was claimed."""
    SLOWER = "slower"
    """Verified, and slower than claimed."""
    RIGHT = "right"
    """It passed all checks; its speed is not decided, or was claimed on another device."""
    CLAIMED_WRONG = "claimed wrong"
    """It passed all checks, and its author says that it is wrong."""
    REFUTED = "refuted"
    """The verdict is against it, or a reason makes it suspicious."""
    AS_CLAIMED_WRONG = "wrong as claimed"
    """The verdict is against it, and its author says so too."""
    UNSUPPORTED = "unsupported"
    """It cannot be judged here; the reason says why."""
    UNDECIDED = "undecided"
    """The referee failed; the next audit judges it again."""


class AuditedItem(FrozenModel):
    """One submission with its verdict."""

    id: str
    problem: str
    claim: Claim
    outcome: Outcome
    status: str = ""
    """Of the evaluation, `EvaluationStatus`; empty if there is none."""
    evidence: str = ""
    caught_by: str = ""
    """Of a refuted one: the check that failed, or the code of the reason."""
    reasons: tuple[str, ...] = ()
    speedup: dict[str, Interval] = {}
    """As the referee measured it, by baseline."""
    evaluation: str | None = None
    """Identifier in the database."""


class Audit(FrozenModel):
    """All judged submissions of a place."""

    place: str
    layout: str
    level: Level
    device: str
    version: str
    """Of AgentForge."""
    items: tuple[AuditedItem, ...]

    @property
    def outcomes(self) -> dict[str, int]:
        """Items by outcome."""
        return dict(Counter(item.outcome.value for item in self.items))

    @property
    def caught(self) -> dict[str, int]:
        """Refuted items by the check that caught them, the most first."""
        found = Counter(item.caught_by for item in self.items if item.outcome is Outcome.REFUTED)
        return dict(found.most_common())


def audit(
    place: str,
    layout: str,
    submissions: Sequence[Submission],
    settings: Settings,
    store: Store,
    *,
    level: Level = Level.FULL,
    device: str = "auto",
    again: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Judge submissions one after the other. Each verdict is in the database before the next begins.

    A verdict that was made on this machine since it started, for the same program and with the same tools and
    settings, is taken from the database unless a busy machine spoiled it, so an audit that was interrupted
    continues.

    Args:
        again: judge all anew.

    Raises:
        UsageError, MachineError: the settings or the device cannot be used.
        StoreError: the database cannot be used.
    """
    check_threads(settings.referee)
    spec, items = find_device(device, settings.cache, progress), []
    with closing(_Auditor(settings, store, spec, level, again)) as auditor:
        for number, submission in enumerate(submissions, 1):
            items.append(item := auditor.judge(submission))
            first = f": {item.reasons[0]}" if item.reasons else ""
            progress(f"[{number}/{len(submissions)}] {item.id}, {item.outcome.value}{first}")
    return Audit(
        place=place, layout=layout, level=level, device=spec.name, version=__version__, items=tuple(items)
    )


class _Auditor:
    """One referee for all submissions; the last problem stays loaded. For one thread."""

    def __init__(
        self, settings: Settings, store: Store, device: DeviceSpec, level: Level, again: bool
    ) -> None:
        self._settings, self._store, self._device = settings, store, device
        self._level, self._again = level, again
        self._referee = Referee(settings.referee, device=device, cache=settings.cache)
        self._conditions = conditions_of(device, settings.referee)
        self._problem: tuple[Path, Target | AgentForgeError] | None = None
        """The reference, or why it cannot be used: one that hangs is not run for each submission."""

    def close(self) -> None:
        self._referee.close()

    def judge(self, submission: Submission) -> AuditedItem:
        item = AuditedItem(
            id=submission.id,
            problem=submission.problem,
            claim=submission.claim,
            outcome=Outcome.UNSUPPORTED,
            status=EvaluationStatus.UNSUPPORTED.value,
        )
        if submission.unusable or submission.reference is None or submission.solution is None:
            return item.model_copy(update={"reasons": (submission.unusable or "a file is missing",)})
        try:
            definition, workloads = self._load(submission.reference, submission)
        except (StoreError, HarnessError):
            raise
        except AgentForgeError as error:
            return item.model_copy(update={"reasons": (f"the reference cannot be used: {error}",)})
        try:
            solution = read_solution(submission.solution, definition.hash)
        except UsageError as error:
            wrong = submission.claim.correct is False
            refused = {
                "outcome": Outcome.AS_CLAIMED_WRONG if wrong else Outcome.REFUTED,
                "status": EvaluationStatus.COMPILE_ERROR.value,
                "caught_by": "read",
                "reasons": (str(error),),
            }
            return item.model_copy(update=refused)
        if missing := missing_package(solution):
            why = f"it imports {missing}, which is not installed here: install it to judge this one"
            return item.model_copy(update={"reasons": (why,)})
        try:
            identifier, evaluation = self._evaluate(definition, workloads, solution)
        except (StoreError, HarnessError):
            raise
        except AgentForgeError as error:
            return item.model_copy(update={"reasons": (str(error),)})
        outcome, reason = compare(submission.claim, evaluation)
        return item.model_copy(
            update={
                "outcome": outcome,
                "status": evaluation.status.value,
                "evidence": evaluation.evidence.value,
                "caught_by": caught_by(evaluation) if outcome is Outcome.REFUTED else "",
                "reasons": (*((reason,) if reason else ()), *evaluation.reasons),
                "speedup": evaluation.performance.speedup if evaluation.performance else {},
                "evaluation": identifier,
            }
        )

    def _load(self, path: Path, submission: Submission) -> tuple[Definition, tuple[Workload, ...]]:
        if self._problem is None or self._problem[0] != path:
            options = FrontendOptions(device=self._device.torch_device)
            try:
                self._problem = path, load_target(str(path), options, self._settings.frontend_options)
            except AgentForgeError as error:
                self._problem = path, error
        target = self._problem[1]
        if isinstance(target, AgentForgeError):
            raise target
        definition = target.definition
        if submission.policy is not None:
            definition = Definition.model_validate({**definition.model_dump(), "policy": submission.policy})
        return definition, target.workloads

    def _evaluate(
        self, definition: Definition, workloads: Sequence[Workload], solution: Solution
    ) -> tuple[str, Evaluation]:
        hashes = [workload.hash for workload in workloads]
        if self._conditions and not self._again:
            key = definition.hash, solution.hash, hashes, self._level, self._device.name
            found = self._store.find_evaluation(*key, conditions=self._conditions)
            if found is not None and not spoiled(found[1]):
                return found
        request = EvaluationRequest(definition, workloads, solution, self._level)
        evaluation = self._referee.evaluate(request)
        self._store.save_definition(definition)
        self._store.save_solution(solution)
        return self._store.save_evaluation(evaluation, conditions=self._conditions), evaluation


def compare(claim: Claim, evaluation: Evaluation) -> tuple[Outcome, str]:
    """The outcome, and a reason that the evaluation itself does not have."""
    if evaluation.status is EvaluationStatus.HARNESS_ERROR:
        return Outcome.UNDECIDED, ""
    if evaluation.status is EvaluationStatus.UNSUPPORTED:
        return Outcome.UNSUPPORTED, ""
    if not evaluation.passed:
        return (Outcome.AS_CLAIMED_WRONG if claim.correct is False else Outcome.REFUTED), ""
    if evaluation.suspicious:
        return Outcome.REFUTED, ""
    if claim.correct is False:
        return Outcome.CLAIMED_WRONG, "its author says that it is wrong, and it passes all checks here"
    if not evaluation.verified or evaluation.performance is None:
        return Outcome.RIGHT, ""
    if claim.speedup is None:
        return Outcome.CONFIRMED, ""
    here = evaluation.environment.device
    if claim.device and not _names(claim.device, here):
        return Outcome.RIGHT, f"its speedup was claimed on {claim.device}, and this is {here}"
    measured = evaluation.performance.speedup.get(claim.baseline)
    if measured is None:
        return Outcome.RIGHT, f"its speedup was claimed over {claim.baseline}, which was not measured"
    if claim.speedup > measured.high:
        return Outcome.SLOWER, f"claimed {claim.speedup:.2f}x over {claim.baseline}, measured {measured}"
    return Outcome.CONFIRMED, ""


def _names(device: str, here: str) -> bool:
    """Whether a claim's device is this one.

    `a100` names an NVIDIA A100-SXM4-80GB, but h20 no H200, and `RTX 4070` no RTX 4070 Ti.
    """
    claimed, found = (re.findall(r"[^\W_]+", name.casefold()) for name in (device, here))
    other = _VARIANTS & (set(found) - set(claimed))
    return not other and f" {' '.join(claimed)} " in f" {' '.join(found)} "


def caught_by(evaluation: Evaluation) -> str:
    """The check that spoke against a solution: a stage that did not pass, else the code of a reason."""
    failed = (stage.name for stage in evaluation.stages if stage.status is not EvaluationStatus.PASSED)
    codes = (code.value for code in evaluation.codes)
    return next(failed, "") or next(codes, "") or evaluation.status.value

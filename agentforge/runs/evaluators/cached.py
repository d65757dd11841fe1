"""A referee whose evaluations are stored: a stitch repeats none, and other runs can take them."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from agentforge.config import RefereeSettings, Settings
from agentforge.devices import DeviceSpec
from agentforge.isolation.procfs import boot_id
from agentforge.loop import RunLog
from agentforge.loop.run_log import spoiled
from agentforge.referee import EvaluationRequest, Evaluator, OnStage
from agentforge.schema import Evaluation, EvaluationStatus, Level, ReasonCode, content_hash

from ..judging_code import judging_code


class CachedEvaluator:
    """Returns an evaluation that is stored, if nothing differs; otherwise asks `evaluator` and stores it.

    What a busy machine spoiled is asked for again.

    Args:
        run_log: of the run; it knows which of other runs' evaluations may be taken.
        longer: evaluations may take longer now than when the run began: full ones that ended by their limit
            are asked for again.
        again: ask once more if the referee itself failed; False if the caller does.
    """

    def __init__(
        self, evaluator: Evaluator, run_log: RunLog, *, longer: bool = False, again: bool = True
    ) -> None:
        self._evaluator = evaluator
        self._run_log = run_log
        self._longer = longer
        self._again = again
        self.spoiled = False
        """Whether the referee failed, or a busy machine or the limit of time spoiled a full evaluation."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        found = self._run_log.finished_evaluation(
            request.definition, request.workloads, request.solution, request.level
        )
        stored = found is not None and self._counts(found[1])
        evaluation = found[1] if found is not None and stored else self._ask(request, progress)
        self.spoiled |= evaluation.status is EvaluationStatus.HARNESS_ERROR or (
            request.level is Level.FULL and (spoiled(evaluation) or _late(evaluation))
        )
        return evaluation

    def _counts(self, stored: Evaluation) -> bool:
        late = self._longer and stored.level is Level.FULL and _late(stored)
        return not (late or spoiled(stored))

    def _ask(self, request: EvaluationRequest, progress: OnStage | None) -> Evaluation:
        evaluation = self._evaluator.evaluate(request, progress=progress)
        failed = evaluation.status is EvaluationStatus.HARNESS_ERROR
        if failed and self._again:  # one hitch must not lose a variant
            evaluation = self._evaluator.evaluate(request, progress=progress)
        conditions = self._run_log.conditions(request.definition, request.workloads)
        self._run_log.put_evaluation(evaluation, conditions)
        return evaluation


def _late(evaluation: Evaluation) -> bool:
    return evaluation.status is EvaluationStatus.TIMEOUT or ReasonCode.TIMEOUT in evaluation.codes


def shared_conditions(device: DeviceSpec, settings: Settings) -> str:
    """`conditions_of` a run that shares verdicts with others; empty if it does not.

    A run with a cassette shares none: what it records was measured by it, and what it replays elsewhere.
    """
    cassette = settings.llm.record is not None or settings.llm.replay_verdicts
    shares = settings.search.reuse_verdicts and not cassette
    return conditions_of(device, settings.referee) if shares else ""


def conditions_of(device: DeviceSpec, settings: RefereeSettings) -> str:
    """Hash of all that a verdict depends on beside its task and solution; empty if the machine is unknown.

    A machine counts as another one after it was started again, and its visible GPUs as another device.
    """
    machine = boot_id()
    if not machine:
        return ""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    specified = [device.model_dump(mode="json"), settings.model_dump(mode="json")]
    return content_hash([machine, *specified, judging_code(), _packages(), os.geteuid(), visible])


@cache
def _packages() -> list[str]:
    """Names and versions of the installed packages, which references and kernels may import."""
    return sorted({found.name for place in sys.path for found in Path(place).glob("*.dist-info")})

"""What a run measured, kept in its cassette, so that a replay asks the same questions on any machine.

The profile and the verdicts decide which regions are planned, on which parents, and what prompts say.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

from agentforge.agents import agents_in
from agentforge.config import Settings
from agentforge.llm import Measured, append_line, read_measured
from agentforge.referee import AroundReferee, EvaluationRequest, Evaluator, OnStage
from agentforge.schema import Evaluation, Level, Profile, Target

RECORDED = "recorded"
"""Key of the environment's note in an evaluation that comes from a cassette: it was not measured here."""

_Key = tuple[str, str, tuple[str, ...], Level]


def replayed_cassette(settings: Settings) -> Path | None:
    """The first cassette that a role is replayed from."""
    search = settings.search
    specs = [part for role in (search.planner, search.coder, search.judge) for part in agents_in(role)]
    return next((Path(s.removeprefix("replay:")) for s in specs if s.startswith("replay:")), None)


def recorded_profile(settings: Settings, target: Target) -> Profile | None:
    """The profile in the cassette that is replayed, if it is of the same target."""
    path = replayed_cassette(settings)
    found = [m.profile for m in read_measured(path) if m.profile] if path else []
    return next((p for p in reversed(found) if p.target == target.definition.hash), None)


def is_recorded(evaluation: Evaluation) -> bool:
    """Whether a cassette gave this evaluation, so that nothing of it was measured here."""
    return RECORDED in evaluation.environment.notes


class RecordingEvaluator(AroundReferee):
    """Appends each verdict of `referee` to a cassette. Thread-safe.

    Args:
        referee: whose verdicts are recorded.
        path: the cassette.
    """

    def __init__(self, referee: Evaluator, path: Path) -> None:
        self.referee = referee
        self._path = path

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        evaluation = self.referee.evaluate(request, progress=progress)
        append_line(self._path, Measured(evaluation=evaluation))
        return evaluation


class ReplayedEvaluator(AroundReferee):
    """Gives the verdicts of a cassette in recorded order, the last one again and again. Thread-safe.

    Args:
        referee: judges what the cassette has no verdict on.
        path: the cassette.
    """

    def __init__(self, referee: Evaluator, path: Path) -> None:
        self.referee = referee
        self._path = path
        self._left: dict[_Key, deque[Evaluation]] = defaultdict(deque)
        for line in read_measured(path):
            if line.evaluation is not None:
                e = line.evaluation
                self._left[_key(e.definition, e.solution, e.workloads, e.level)].append(e)
        self._lock = threading.Lock()

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        workloads = [w.hash for w in request.workloads]
        key = _key(request.definition.hash, request.solution.hash, workloads, request.level)
        with self._lock:
            left = self._left[key]
            found = (left.popleft() if len(left) > 1 else left[0]) if left else None
        if found is None:
            return self.referee.evaluate(request, progress=progress)
        notes = {**found.environment.notes, RECORDED: self._path.name}
        return found.model_copy(update={"environment": found.environment.model_copy(update={"notes": notes})})


def _key(definition: str, solution: str, workloads: Sequence[str], level: Level) -> _Key:
    return definition, solution, tuple(workloads), level

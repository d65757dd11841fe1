"""An artifact, judged again: with this torch, compiler and driver, is it still right and still faster?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agentforge.config import Settings
from agentforge.runs import verify
from agentforge.schema import (
    AgentForgeError,
    Definition,
    Evaluation,
    EvaluationStatus,
    FrozenModel,
    Interval,
    Level,
    Permission,
    UsageError,
    baseline_name,
    first_fault,
)
from agentforge.stitch.precision import permitted
from agentforge.stitch.proof import seen_runs
from agentforge.stitch.sources import FOLDER
from agentforge.stitch.trial import NOISE
from agentforge.whole_file import only_a_kernel


class Recheck(FrozenModel):
    """What became of one artifact."""

    artifact: str
    mode: str = ""
    """What runs in its call: `kernels`, `compile`, `eager`, ..."""
    ok: bool = False
    """It is right, and still as fast as `faster` asks if it is not `eager`."""
    right: bool | None = None
    """It passed every check, and each of its kernels ran as often as expected; None if it was not judged."""
    faster: bool | None = None
    """Verified, with the low end of the speedup above 1, or above 0.98 if it tied with torch.compile when it
    was made; None if that is not decided, or it is `eager`."""
    baseline: str = "eager"
    """Of the speedups: the fastest one when the artifact was made; `eager` if the artifact is torch.compile
    itself, or was slower than the fastest one."""
    before: Interval | None = None
    """Speedup when the artifact was made."""
    now: Interval | None = None
    changed: dict[str, tuple[str, str]] = {}
    """Versions then and now, by program, if they differ; empty for one that was not there."""
    sentence: str = ""
    evaluation: Evaluation | None = None


class Made(BaseModel):
    """The part of an artifact's `report.json` that this module reads."""

    class Performance(BaseModel):
        """The artifact's speed when it was made."""

        best_baseline: str | None = None
        speedup: dict[str, Interval] | None = None
        minimum_effect: float | None = None

    class Kernel(BaseModel):
        """A kernel, and how often one forward runs it."""

        name: str
        runs_expected: int

    class Provenance(BaseModel):
        """Where the artifact was made."""

        class Environment(BaseModel):
            """Versions by program."""

            toolchain: dict[str, str] | None = None

        environment: Environment | None = None

    performance: Performance | None = None
    kernels: tuple[Kernel, ...] = ()
    precision: dict[str, Any] | None = None
    provenance: Provenance | None = None

    @property
    def toolchain(self) -> dict[str, str]:
        """Versions by program; empty if the report does not say."""
        environment = self.provenance.environment if self.provenance else None
        return (environment.toolchain if environment else None) or {}


def recheck(folder: Path, settings: Settings, progress: Callable[[str], None] | None = None) -> Recheck:
    """Build an artifact's sources with the tools of now, and judge them at level full.

    What the artifact cannot be judged for, for example a GPU that is missing, is in the sentence. A
    folder with a kernel, not a model, is not judged either.

    Raises:
        UsageError: the folder is no artifact.
    """
    if sentence := only_a_kernel(folder):
        return Recheck(artifact=str(folder), sentence=sentence)
    plan, made, definition = _read(folder)
    bare = as_made(Recheck(artifact=str(folder), mode=str(plan.get("mode", ""))), made)
    try:
        solution = folder / "kernelbench_solution.py"
        evaluation = verify(definition, solution, Level.FULL, str(plan["device"]), settings, progress)
    except AgentForgeError as error:
        return bare.model_copy(update={"sentence": _not_judged(bare, str(error))})
    return judged(bare, made, evaluation)


def as_made(bare: Recheck, made: Made) -> Recheck:
    """An artifact with the speedup that it was made for.

    Each artifact but the original model beat eager, and must do so again. If it also beat or tied with the
    fastest baseline, that one counts. An artifact that is torch.compile differs from it only by chance.
    """
    performance = made.performance or Made.Performance()
    before, baseline = performance.speedup or {}, performance.best_baseline or "eager"
    least = 1 - max(NOISE, performance.minimum_effect or 0.0)
    if bare.mode.startswith("compile") or (baseline in before and before[baseline].low < least):
        baseline = "eager"
    return bare.model_copy(update={"baseline": baseline, "before": before.get(baseline)})


def judged(bare: Recheck, made: Made, evaluation: Evaluation) -> Recheck:
    """An artifact with the verdict of now."""
    if evaluation.status in (EvaluationStatus.HARNESS_ERROR, EvaluationStatus.UNSUPPORTED):
        sentence = _not_judged(bare, next(iter(evaluation.reasons), evaluation.status.value))
        return bare.model_copy(update={"evaluation": evaluation, "sentence": sentence})
    idle = _idle(made, evaluation)
    right = evaluation.passed and not evaluation.suspicious and not idle
    performance = evaluation.performance if right else None
    now = performance.speedup.get(bare.baseline) if performance else None
    faster = None
    if performance and now and evaluation.verified and bare.mode != "eager":
        faster = now.low > 1 - (max(NOISE, performance.minimum_effect) if _tied(bare) else 0.0)
    changed = _changed(made, evaluation)
    return bare.model_copy(
        update={
            "ok": right and (bare.mode == "eager" or faster is True),
            "right": right,
            "faster": faster,
            "now": now,
            "changed": changed,
            "evaluation": evaluation,
            "sentence": _sentence(bare, right, faster, now, idle or list(evaluation.reasons), changed),
        }
    )


def check_artifact(folder: Path) -> None:
    """Refuse a folder that is no artifact, and neither a kernel, which `recheck` leaves alone.

    Raises:
        UsageError: it lacks a file, or one has a wrong content.
    """
    if not only_a_kernel(folder):
        _read(folder)


def _read(folder: Path) -> tuple[dict[str, Any], Made, Definition]:
    """Plan, report and definition of an artifact."""
    try:
        plan, report = (json.loads((folder / name).read_text()) for name in ("plan.json", "report.json"))
        reference = (folder / "reference_model.py").read_text()
        if not (isinstance(report, dict) and isinstance(plan["device"], str)):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{folder} is no artifact: give the folder with plan.json and report.json that a run wrote"
        ) from error
    modules = folder.absolute() / FOLDER
    root = str(modules) if modules.is_dir() else None
    definition = Definition(name="artifact", op_type="model", reference=reference, import_root=root)
    try:
        made = Made.model_validate(report)
        precision = made.precision or {}
        if precision.get("installed"):
            fields = {k: v for k, v in precision.items() if k in Permission.model_fields}
            definition = permitted(definition, Permission.model_validate(fields))
    except ValidationError as error:
        place, message = first_fault(error)
        raise UsageError(
            f"{folder}/report.json is not as a run wrote it ({place}: {message}): "
            "give the folder that a run wrote"
        ) from error
    return plan, made, definition


def _idle(made: Made, evaluation: Evaluation) -> list[str]:
    """Kernels that did not run as often as when the artifact was made."""
    if not evaluation.passed:
        return []
    seen, expected = seen_runs(evaluation), {k.name: k.runs_expected for k in made.kernels}
    return [
        f"kernel {name} ran {seen.get(name, 0)} times in one forward, not {runs}"
        for name, runs in expected.items()
        if seen.get(name, 0) != runs
    ]


def _changed(made: Made, evaluation: Evaluation) -> dict[str, tuple[str, str]]:
    then, now = made.toolchain, evaluation.environment.toolchain
    names = sorted(then.keys() | now.keys()) if then else []
    return {n: (then.get(n, ""), now.get(n, "")) for n in names if then.get(n, "") != now.get(n, "")}


def _sentence(
    bare: Recheck,
    right: bool,
    faster: bool | None,
    now: Interval | None,
    reasons: list[str],
    changed: Mapping[str, tuple[str, str]],
) -> str:
    why = f": {reasons[0]}" if reasons else ""
    measured = f": {now} over {baseline_name(bare.baseline)}" if now else ""
    measured += f", {bare.before} when it was made" if now and bare.before else ""
    if not right:
        said = f"is no longer right{why}"
    elif bare.mode == "eager":
        said = "is still right, and runs the original model"
    elif faster is None:
        said = f"is still right; whether it is faster is not decided{why or measured}"
    else:
        speed = "as fast" if _tied(bare) else "faster"
        said = f"is still right and {'still' if faster else 'no longer'} {speed}{measured}"
    versions = ", ".join(f"{n} {a or 'none'} is now {b or 'none'}" for n, (a, b) in changed.items())
    return " ".join(f"{_name(bare)} {said}{f' ({versions})' if versions else ''}".split())


def _not_judged(bare: Recheck, why: str) -> str:
    return " ".join(f"{_name(bare)} cannot be judged here: {why}".split())


def _name(bare: Recheck) -> str:
    return Path(bare.artifact).name or bare.artifact


def _tied(bare: Recheck) -> bool:
    """Whether it was as fast as a mode of torch.compile when it was made, and not faster."""
    return bare.baseline != "eager" and bare.before is not None and bare.before.low <= 1
